"""Sums of short rows in vector instructions, which numba does not make of loops as short as these.

Addresses are in bytes; rows have whole chunks of ``CHUNK`` numbers.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

CHUNK = 8
_FLAGS = ("contract",)
_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, CHUNK)
_INT = ir.IntType(64)


def _load(builder, address, kind):
    value = builder.load(builder.inttoptr(address, kind.as_pointer()))
    value.align = 8
    return value


def _splat(builder, value):
    vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), CHUNK), [0] * CHUNK)
    return builder.shuffle_vector(vector, ir.Constant(_VECTOR, ir.Undefined), zeros)


@intrinsic
def subtract_rows(typing_context, target, factors, rows, stride, count):
    """Subtract from a chunk the sum over p < count of numbers times chunks.

    The number is at factors + p stride and the chunk at rows + p stride; the result is at ``target``.
    """

    def generate(context, builder, sig, args):
        target, factors, rows, stride, count = args
        total = cgutils.alloca_once_value(builder, _load(builder, target, _VECTOR))
        with cgutils.for_range(builder, count) as loop:
            step = builder.mul(loop.index, stride)
            factor = _splat(builder, _load(builder, builder.add(factors, step), _DOUBLE))
            row = _load(builder, builder.add(rows, step), _VECTOR)
            product = builder.fmul(factor, row, flags=_FLAGS)
            builder.store(builder.fsub(builder.load(total), product, flags=_FLAGS), total)
        store = builder.store(builder.load(total), builder.inttoptr(target, _VECTOR.as_pointer()))
        store.align = 8
        return context.get_dummy_value()

    return types.void(*(types.int64,) * 5), generate


@intrinsic
def subtract_scaled(typing_context, target, row, factor, chunks):
    """Subtract ``factor`` times the chunks at ``row`` from those at ``target``."""

    def generate(context, builder, sig, args):
        target, row, factor, chunks = args
        factor = _splat(builder, factor)
        with cgutils.for_range(builder, chunks) as loop:
            step = builder.mul(loop.index, ir.Constant(_INT, 8 * CHUNK))
            place = builder.add(target, step)
            product = builder.fmul(factor, _load(builder, builder.add(row, step), _VECTOR), flags=_FLAGS)
            value = builder.fsub(_load(builder, place, _VECTOR), product, flags=_FLAGS)
            store = builder.store(value, builder.inttoptr(place, _VECTOR.as_pointer()))
            store.align = 8
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.float64, types.int64), generate


@intrinsic
def dot(typing_context, one, two, chunks):
    """Return the sum of the products of the numbers in chunks at two places."""

    def generate(context, builder, sig, args):
        one, two, chunks = args
        total = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * CHUNK))
        with cgutils.for_range(builder, chunks) as loop:
            step = builder.mul(loop.index, ir.Constant(_INT, 8 * CHUNK))
            a = _load(builder, builder.add(one, step), _VECTOR)
            product = builder.fmul(a, _load(builder, builder.add(two, step), _VECTOR), flags=_FLAGS)
            builder.store(builder.fadd(builder.load(total), product, flags=_FLAGS), total)
        vector = builder.load(total)
        parts = [builder.extract_element(vector, ir.Constant(ir.IntType(32), k)) for k in range(CHUNK)]
        while len(parts) > 1:
            parts = [builder.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    return types.float64(types.int64, types.int64, types.int64), generate
