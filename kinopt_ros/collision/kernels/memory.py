"""Bare pointers for numba: the trees of large obstacles lie at addresses; and bits."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

STACK = 256
WORDS = 256
"""Words of a set of bits."""
_POINTER = types.CPointer(types.float64)
_BITS = types.CPointer(types.int64)


@intrinsic
def tree_at(typing_context, address):
    """Return the numbers at an address."""

    def generate(context, builder, sig, args):
        return builder.inttoptr(args[0], ir.DoubleType().as_pointer())

    return _POINTER(types.int64), generate


@intrinsic
def new_stack(typing_context):
    """Reserve memory for STACK numbers on the stack of the calling function."""

    def generate(context, builder, sig, args):
        size = ir.Constant(ir.IntType(64), STACK)
        return cgutils.alloca_once(builder, ir.DoubleType(), size=size)

    return _POINTER(), generate


@intrinsic
def new_bits(typing_context):
    """Reserve memory for WORDS words of 64 bits on the stack of the calling function."""

    def generate(context, builder, sig, args):
        size = ir.Constant(ir.IntType(64), WORDS)
        return cgutils.alloca_once(builder, ir.IntType(64), size=size)

    return _BITS(), generate


@intrinsic
def lowest_bit(typing_context, word):
    """Return the number of the lowest bit that is set; 64 if there is none."""

    def generate(context, builder, sig, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), generate


@intrinsic
def get(typing_context, pointer, index):
    def generate(context, builder, sig, args):
        return builder.load(builder.gep(args[0], [args[1]]), align=8)

    return pointer.dtype(pointer, types.int64), generate


@intrinsic
def put(typing_context, pointer, index, value):
    def generate(context, builder, sig, args):
        builder.store(args[2], builder.gep(args[0], [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, pointer.dtype), generate
