"""Bare pointers for numba, which counts the references to an array at every function that it passes through."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from kinopt_ros.compiler_options import FAST_INLINE, FAST_INNER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.kernels.lanes import lanes_at, put_lanes

_NUMBER_POINTER, _INDEX_POINTER = types.CPointer(types.float64), types.CPointer(types.int64)


@intrinsic
def new_memory(typing_context, size):
    """Reserve so many numbers on the stack of the function that calls this."""

    def generate(context, builder, sig, args):
        memory = builder.alloca(ir.DoubleType(), size=args[0])
        memory.align = 64
        return memory

    return _NUMBER_POINTER(types.int64), generate


@intrinsic
def pointer_to(typing_context, array):
    """Return a pointer to the first element of an array, which the caller of the function keeps alive.

    What the function itself has made is freed at once where no later line names it: point to arguments only.
    """

    def generate(context, builder, sig, args):
        return context.make_array(sig.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def after(typing_context, pointer, count):
    """Return the pointer so many elements on."""

    def generate(context, builder, sig, args):
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), generate


@intrinsic
def get(typing_context, pointer, index):
    """Return one element."""

    def generate(context, builder, sig, args):
        return builder.load(builder.gep(args[0], [args[1]]), align=8)

    return pointer.dtype(pointer, types.int64), generate


@intrinsic
def put(typing_context, pointer, index, value):
    def generate(context, builder, sig, args):
        builder.store(args[2], builder.gep(args[0], [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, types.float64), generate


@intrinsic
def as_indices(typing_context, pointer):
    """Cast a pointer to numbers to a pointer to integers."""

    def generate(context, builder, sig, args):
        return builder.bitcast(args[0], ir.IntType(64).as_pointer())

    return _INDEX_POINTER(pointer), generate


@njit(**FAST_INLINE)
def six_at(rows, i):
    """Return row i of a table of six columns, in all lanes."""
    return (
        lanes_at(rows, 6 * i), lanes_at(rows, 6 * i + 1), lanes_at(rows, 6 * i + 2),
        lanes_at(rows, 6 * i + 3), lanes_at(rows, 6 * i + 4), lanes_at(rows, 6 * i + 5),
    )  # fmt: skip


@njit(**FAST_INLINE)
def put_six(rows, i, a, b, c, d, e, f):
    put_lanes(rows, 6 * i, a)
    put_lanes(rows, 6 * i + 1, b)
    put_lanes(rows, 6 * i + 2, c)
    put_lanes(rows, 6 * i + 3, d)
    put_lanes(rows, 6 * i + 4, e)
    put_lanes(rows, 6 * i + 5, f)


@njit(**FAST_INNER)
def _copy(source, target):
    """Copy target[:] = source, which numba would take two more seconds to compile."""
    for j in range(target.shape[0]):
        target[j] = source[j]
