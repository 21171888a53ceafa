"""Bare pointers for numba: the trees of large obstacles lie at addresses."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

STACK = 256
_POINTER = types.CPointer(types.float64)


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
def get(typing_context, pointer, index):
    def generate(context, builder, sig, args):
        return builder.load(builder.gep(args[0], [args[1]]), align=8)

    return types.float64(pointer, types.int64), generate


@intrinsic
def put(typing_context, pointer, index, value):
    def generate(context, builder, sig, args):
        builder.store(args[2], builder.gep(args[0], [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, types.float64), generate
