"""A type of numba for a few float64 numbers side by side, with arithmetic by LLVM's vector instructions."""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

LANES = 4  # attempts at once; eight are hardly quicker with AVX-512 and slower without


class Lanes(types.Type):  # type: ignore[misc]
    """A few float64 numbers side by side, one for each of the attempts that are made at once.

    Arithmetic is by LLVM's vector instructions, so that several attempts take little more time than one.
    """

    def __init__(self):
        super().__init__(name=f"Lanes({LANES})")


_LANES = Lanes()
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager, front_end_type):
        super().__init__(manager, front_end_type, _VECTOR)


def _spread(builder, value, kind):
    """Copy a number to all lanes."""
    if kind == _LANES:
        return value
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    zero = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(nothing, value, zero)
    return builder.shuffle_vector(
        one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    )


def _operator(function, instruction):
    """Build arithmetic between lanes, or lanes and a number."""

    @infer_global(function)
    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args, kws):
            if _LANES in args and all(kind in (_LANES, types.float64) for kind in args):
                return signature(_LANES, *args)
            return None

    def lower(context, builder, sig, args):
        x, y = (_spread(builder, value, kind) for value, kind in zip(args, sig.args, strict=True))
        return getattr(builder, instruction)(x, y, flags=("contract", "nsz", "arcp"))

    for kinds in ((_LANES, _LANES), (_LANES, types.float64), (types.float64, _LANES)):
        lower_builtin(function, *kinds)(lower)


_operator(operator.add, "fadd")
_operator(operator.iadd, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.isub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


def _function(function, instruction):
    """Build an instruction of one argument."""

    @infer_global(function)
    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args, kws):
            return signature(_LANES, *args) if args == (_LANES,) else None

    @lower_builtin(function, _LANES)
    def lower(context, builder, sig, args):
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        name = f"llvm.{instruction}.v{LANES}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


_function(np.floor, "floor")
_function(np.sqrt, "sqrt")


@intrinsic
def choose(typing_context, a, b, x, y):
    """Return per lane x where a > b, else y (also where a or b is not a number)."""

    def generate(context, builder, sig, args):
        a, b, x, y = (_spread(builder, value, kind) for value, kind in zip(args, sig.args, strict=True))
        return builder.select(builder.fcmp_ordered(">", a, b), x, y)

    return _LANES(a, b, x, y), generate


@intrinsic
def lanes_below(typing_context, a, b):
    """Return bits of the lanes in which a <= b."""

    def generate(context, builder, sig, args):
        a, b = (_spread(builder, value, kind) for value, kind in zip(args, sig.args, strict=True))
        bits = builder.bitcast(builder.fcmp_ordered("<=", a, b), ir.IntType(LANES))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(a, b), generate


@intrinsic
def lanes_at(typing_context, pointer, index):
    """Return the index-th group of lanes."""

    def generate(context, builder, sig, args):
        place = builder.bitcast(args[0], _VECTOR.as_pointer())
        return builder.load(builder.gep(place, [args[1]]), align=8)

    return _LANES(pointer, types.int64), generate


@intrinsic
def put_lanes(typing_context, pointer, index, value):
    def generate(context, builder, sig, args):
        place = builder.bitcast(args[0], _VECTOR.as_pointer())
        builder.store(_spread(builder, args[2], sig.args[2]), builder.gep(place, [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, value), generate


@intrinsic
def lane_numbers(typing_context):
    """Return the number of every lane: 0, 1, 2 ..."""

    def generate(context, builder, sig, args):
        return ir.Constant(_VECTOR, [float(lane) for lane in range(LANES)])

    return _LANES(), generate
