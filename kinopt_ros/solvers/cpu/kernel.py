"""Compiled inverse kinematics: damped least squares from many seeds, some at once, one thread, no allocation.

A robot comes as two packed arrays, ``numbers`` and ``shape`` (written by ``chain.py``): every further array
argument would add some 0.1 us to each call. Inside, arrays are bare pointers, as numba counts the references to an
array at every function it passes through. ``LANES`` attempts are made in step with each other by vector
instructions, and the first to succeed ends them all: an attempt fails in one case of four and takes 4 to 8 steps,
the quickest of four hardly ever fails and takes 5. All poses are relative to the frame before the first motion, and
every motion is about or along its local z axis.

Source of the damping, proportional to the squared error: T. Sugihara, "Solvability-unconcerned inverse kinematics
by the Levenberg-Marquardt method", IEEE Transactions on Robotics 27 (2011).
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from kinopt_ros.numba_cache import njit

# Columns of the table of motions: joint value = MULTIPLIER * q + OFFSET.
MULTIPLIER, OFFSET, COS_TWIST, SIN_TWIST, SHIFT_X, SHIFT_Y, SHIFT_Z, COS_FIXED, SIN_FIXED = range(9)
MOTION_SIZE = 9
# Rows of the table of variables.
LOWER, UPPER, SAMPLE_LOWER, SAMPLE_UPPER, PERIOD, STEP_LIMIT = range(6)
NUM_VARIABLE_ROWS = 6
# Entries of ``shape``, followed by a row for every motion; ADDS marks a motion whose variable moved one before.
NUM_VARIABLES, NUM_MOTIONS, NUM_SEEDS = range(3)
SHAPE_HEADER = 3
IS_TRANSLATION, COLUMN, ADDS = range(3)
KIND_SIZE = 3
# A table seed is its pose (x, y, z, qw, qx, qy, qz); the table is stored one pose component after the other.
POSE_SIZE = 7
# ``numbers`` starts with the inverse of the first fixed transform (position, rotation rows) and the transposed
# rotation of the last one (rows), then the last one's position.
BASE_SIZE = 21
TIP_SIZE = 3

# Entries of ``effort``.
AIM_POSITION, AIM_ORIENTATION = 0, 1  # an attempt that comes so near ends,
ACCEPT_POSITION, ACCEPT_ORIENTATION = 2, 3  # one that ends so near is a solution,
SLACK_POSITION, SLACK_ORIENTATION = 4, 5  # and errors below this do not count
EFFORT_SIZE = 6

# Tuned on 10,000 Panda targets and checked on 6R, 7R and prismatic arms.
ORIENTATION_WEIGHT = 0.4  # metres per radian
MAX_STEPS = 16
STALL_RATIO = 0.75  # a step that leaves more of the error than this is a stall ...
MAX_STALLS = 2  # ... and so many of them end an attempt
DAMPING = 0.05
MIN_DAMPING = 1e-9
FAR = 10.0  # squared errors above this raise the damping no more: endless axes would creep to far targets
POLISH_STEPS = 40
FARTHEST_TURN = 1e6  # rad: beyond, adding turns to an angle costs more precision than requests leave
QUICK_TABLE_TRIES = 12
LANES = 4  # attempts at once; eight are hardly quicker with AVX-512 and slower without
HALF_TURN = 1e-10  # 1 + trace of a rotation error below which its axis cannot be seen

# Fused multiply-add is allowed; NaN and infinity keep their meaning.
_OUTER = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}
# Without wrappers for callers in Python, and files of their own, which only cost compile time.
_INNER = _OUTER | {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_INLINE = _INNER | {"forceinline": True}

_TWO_OVER_PI = 2.0 / np.pi
# pi/2 as a sum (fdlibm, e_rem_pio2.c): k * the first is exact for |k| < 2**20.
_HALF_PI_1 = 1.57079632673412561417e00
_HALF_PI_2 = 6.07710050650619224932e-11
_U30, _U27, _U31, _U11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_MIX_0 = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


class Lanes(types.Type):  # type: ignore[misc]
    """A few float64 numbers side by side, one for each of the attempts that are made at once.

    Arithmetic is by LLVM's vector instructions, so that several attempts take little more time than one.
    """

    def __init__(self):
        super().__init__(name=f"Lanes({LANES})")


_LANES = Lanes()
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_NUMBER_POINTER, _INDEX_POINTER = types.CPointer(types.float64), types.CPointer(types.int64)


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
def _choose(typing_context, a, b, x, y):
    """Return per lane x where a > b, else y (also where a or b is not a number)."""

    def generate(context, builder, sig, args):
        a, b, x, y = (_spread(builder, value, kind) for value, kind in zip(args, sig.args, strict=True))
        return builder.select(builder.fcmp_ordered(">", a, b), x, y)

    return _LANES(a, b, x, y), generate


@intrinsic
def _lanes_below(typing_context, a, b):
    """Return bits of the lanes in which a <= b."""

    def generate(context, builder, sig, args):
        a, b = (_spread(builder, value, kind) for value, kind in zip(args, sig.args, strict=True))
        bits = builder.bitcast(builder.fcmp_ordered("<=", a, b), ir.IntType(LANES))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(a, b), generate


# Bare memory: arrays that are handed on cost counting of references, which is slower than a step's arithmetic.


@intrinsic
def _memory(typing_context, size):
    """Reserve so many numbers on the stack of the function that calls this."""

    def generate(context, builder, sig, args):
        memory = builder.alloca(ir.DoubleType(), size=args[0])
        memory.align = 64
        return memory

    return _NUMBER_POINTER(types.int64), generate


@intrinsic
def _pointer(typing_context, array):
    """Return a pointer to the first element of an array, which the caller keeps alive."""

    def generate(context, builder, sig, args):
        return context.make_array(sig.args[0])(context, builder, args[0]).data

    return types.CPointer(array.dtype)(array), generate


@intrinsic
def _after(typing_context, pointer, count):
    """Return the pointer so many elements on."""

    def generate(context, builder, sig, args):
        return builder.gep(args[0], [args[1]])

    return pointer(pointer, types.int64), generate


@intrinsic
def _at(typing_context, pointer, index):
    """Return one element."""

    def generate(context, builder, sig, args):
        return builder.load(builder.gep(args[0], [args[1]]), align=8)

    return pointer.dtype(pointer, types.int64), generate


@intrinsic
def _put(typing_context, pointer, index, value):
    def generate(context, builder, sig, args):
        builder.store(args[2], builder.gep(args[0], [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, types.float64), generate


@intrinsic
def _lanes_at(typing_context, pointer, index):
    """Return the index-th group of lanes."""

    def generate(context, builder, sig, args):
        place = builder.bitcast(args[0], _VECTOR.as_pointer())
        return builder.load(builder.gep(place, [args[1]]), align=8)

    return _LANES(pointer, types.int64), generate


@intrinsic
def _put_lanes(typing_context, pointer, index, value):
    def generate(context, builder, sig, args):
        place = builder.bitcast(args[0], _VECTOR.as_pointer())
        builder.store(_spread(builder, args[2], sig.args[2]), builder.gep(place, [args[1]]), align=8)
        return context.get_dummy_value()

    return types.void(pointer, types.int64, value), generate


@intrinsic
def _as_indices(typing_context, pointer):
    """Cast a pointer to numbers to a pointer to integers."""

    def generate(context, builder, sig, args):
        return builder.bitcast(args[0], ir.IntType(64).as_pointer())

    return _INDEX_POINTER(pointer), generate


@intrinsic
def _lane_numbers(typing_context):
    """Return the number of every lane: 0, 1, 2 ..."""

    def generate(context, builder, sig, args):
        return ir.Constant(_VECTOR, [float(lane) for lane in range(LANES)])

    return _LANES(), generate


@njit(**_INLINE)
def _sin_cos(x):
    """Return sine and cosine for |x| < 1e6, within 1e-15: three times as quick as two calls of the C library.

    Polynomials of fdlibm (k_sin.c, k_cos.c) on [-pi/4, pi/4].
    """
    k = np.floor(x * _TWO_OVER_PI + 0.5)
    r = (x - k * _HALF_PI_1) - k * _HALF_PI_2
    z = r * r
    s = 1.58969099521155010221e-10
    s = s * z - 2.50507602534068634195e-08
    s = s * z + 2.75573137070700676789e-06
    s = s * z - 1.98412698298579493134e-04
    s = s * z + 8.33333333332248946124e-03
    s = s * z - 1.66666666666666324348e-01
    s = r + r * z * s
    c = -1.13596475577881948265e-11
    c = c * z + 2.08757232129817482790e-09
    c = c * z - 2.75573143513906633035e-07
    c = c * z + 2.48015872894767294178e-05
    c = c * z - 1.38888888888741095749e-03
    c = c * z + 4.16666666666666019037e-02
    c = 1.0 - 0.5 * z + z * z * c
    # Quadrant by arithmetic: joint angles make a branch here unpredictable.
    half = np.floor(0.5 * k)
    odd = k - 2.0 * half  # k modulo 2
    even = 1.0 - odd
    second = half - 2.0 * np.floor(0.5 * half)  # k modulo 4 is 2 or 3
    sign_s = 1.0 - 2.0 * second
    sign_c = sign_s * (even - odd)
    return sign_s * (even * s + odd * c), sign_c * (even * c + odd * s)


@njit(**_INNER)
def _forward(motions, kinds, q, tip, axes):
    """Compute the pose of the tip; z axis and origin of every motion go to the rows of ``axes``.

    The fixed transform before a motion is a shift and a twist about x: the turns about z on both sides of it
    were moved into the joint offsets. 33 multiplications per joint instead of 48.
    """
    px, py, pz = 0.0, 0.0, 0.0
    xx, xy, xz = 1.0, 0.0, 0.0
    yx, yy, yz = 0.0, 1.0, 0.0
    zx, zy, zz = 0.0, 0.0, 1.0
    for i in range(motions.shape[0]):
        tx, ty, tz = motions[i, SHIFT_X], motions[i, SHIFT_Y], motions[i, SHIFT_Z]
        px += xx * tx + yx * ty + zx * tz
        py += xy * tx + yy * ty + zy * tz
        pz += xz * tx + yz * ty + zz * tz
        c, s = motions[i, COS_TWIST], motions[i, SIN_TWIST]
        yx, zx = c * yx + s * zx, c * zx - s * yx
        yy, zy = c * yy + s * zy, c * zy - s * yy
        yz, zz = c * yz + s * zz, c * zz - s * yz
        value = motions[i, MULTIPLIER] * q[kinds[i, COLUMN]] + motions[i, OFFSET]
        if kinds[i, IS_TRANSLATION] == 0:
            s, c = _sin_cos(value)
        else:
            c, s = motions[i, COS_FIXED], motions[i, SIN_FIXED]
            px += value * zx
            py += value * zy
            pz += value * zz
        axes[i, 0], axes[i, 1], axes[i, 2] = zx, zy, zz
        axes[i, 3], axes[i, 4], axes[i, 5] = px, py, pz
        xx, yx = c * xx + s * yx, c * yx - s * xx
        xy, yy = c * xy + s * yy, c * yy - s * xy
        xz, yz = c * xz + s * yz, c * yz - s * xz
    tx, ty, tz = tip[0], tip[1], tip[2]
    px += xx * tx + yx * ty + zx * tz
    py += xy * tx + yy * ty + zy * tz
    pz += xz * tx + yz * ty + zz * tz
    return px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz


@njit(**_INNER)
def _quaternion(xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """Return the unit quaternion (w, x, y, z) of the rotation whose columns are x, y, z (Shepperd 1978)."""
    trace = xx + yy + zz
    if trace >= xx and trace >= yy and trace >= zz:
        w = 0.5 * np.sqrt(max(0.0, 1.0 + trace))
        f = 0.25 / w
        return w, f * (yz - zy), f * (zx - xz), f * (xy - yx)
    if xx >= yy and xx >= zz:
        x = 0.5 * np.sqrt(max(0.0, 1.0 + xx - yy - zz))
        f = 0.25 / x
        return f * (yz - zy), x, f * (xy + yx), f * (zx + xz)
    if yy >= zz:
        y = 0.5 * np.sqrt(max(0.0, 1.0 + yy - xx - zz))
        f = 0.25 / y
        return f * (zx - xz), f * (xy + yx), y, f * (yz + zy)
    z = 0.5 * np.sqrt(max(0.0, 1.0 + zz - xx - yy))
    f = 0.25 / z
    return f * (xy - yx), f * (zx + xz), f * (yz + zy), z


@njit(**_INLINE)
def _solve_6x6(
    a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
    b0, b1, b2, b3, b4, b5,
):  # fmt: skip
    """Solve A x = b for a symmetric positive definite A by A = L D L^T, unrolled, in registers."""
    d0 = 1.0 / a00
    l10, l20, l30, l40, l50 = a10 * d0, a20 * d0, a30 * d0, a40 * d0, a50 * d0
    d1 = 1.0 / (a11 - l10 * a10)
    m21, m31, m41, m51 = a21 - l20 * a10, a31 - l30 * a10, a41 - l40 * a10, a51 - l50 * a10
    l21, l31, l41, l51 = m21 * d1, m31 * d1, m41 * d1, m51 * d1
    d2 = 1.0 / (a22 - l20 * a20 - l21 * m21)
    m32 = a32 - l30 * a20 - l31 * m21
    m42 = a42 - l40 * a20 - l41 * m21
    m52 = a52 - l50 * a20 - l51 * m21
    l32, l42, l52 = m32 * d2, m42 * d2, m52 * d2
    d3 = 1.0 / (a33 - l30 * a30 - l31 * m31 - l32 * m32)
    m43 = a43 - l40 * a30 - l41 * m31 - l42 * m32
    m53 = a53 - l50 * a30 - l51 * m31 - l52 * m32
    l43, l53 = m43 * d3, m53 * d3
    d4 = 1.0 / (a44 - l40 * a40 - l41 * m41 - l42 * m42 - l43 * m43)
    m54 = a54 - l50 * a40 - l51 * m41 - l52 * m42 - l53 * m43
    l54 = m54 * d4
    d5 = 1.0 / (a55 - l50 * a50 - l51 * m51 - l52 * m52 - l53 * m53 - l54 * m54)
    b1 -= l10 * b0
    b2 -= l20 * b0 + l21 * b1
    b3 -= l30 * b0 + l31 * b1 + l32 * b2
    b4 -= l40 * b0 + l41 * b1 + l42 * b2 + l43 * b3
    b5 -= l50 * b0 + l51 * b1 + l52 * b2 + l53 * b3 + l54 * b4
    x5 = b5 * d5
    x4 = b4 * d4 - l54 * x5
    x3 = b3 * d3 - l43 * x4 - l53 * x5
    x2 = b2 * d2 - l32 * x3 - l42 * x4 - l52 * x5
    x1 = b1 * d1 - l21 * x2 - l31 * x3 - l41 * x4 - l51 * x5
    x0 = b0 * d0 - l10 * x1 - l20 * x2 - l30 * x3 - l40 * x4 - l50 * x5
    return x0, x1, x2, x3, x4, x5


@njit(**_INLINE)
def _six_at(rows, i):
    """Return row i of a table of six columns, in all lanes."""
    return (
        _lanes_at(rows, 6 * i), _lanes_at(rows, 6 * i + 1), _lanes_at(rows, 6 * i + 2),
        _lanes_at(rows, 6 * i + 3), _lanes_at(rows, 6 * i + 4), _lanes_at(rows, 6 * i + 5),
    )  # fmt: skip


@njit(**_INLINE)
def _put_six(rows, i, a, b, c, d, e, f):
    _put_lanes(rows, 6 * i, a)
    _put_lanes(rows, 6 * i + 1, b)
    _put_lanes(rows, 6 * i + 2, c)
    _put_lanes(rows, 6 * i + 3, d)
    _put_lanes(rows, 6 * i + 4, e)
    _put_lanes(rows, 6 * i + 5, f)


@njit(**_INLINE)
def _forward_lanes(motions, kinds, num_motions, q, tip, axes):
    """Compute ``_forward`` in all lanes: six rows of ``axes`` for every motion."""
    px = py = pz = xy = xz = yx = yz = zx = zy = 0.0 * _lanes_at(q, 0)
    xx = yy = zz = 1.0 + px
    for i in range(num_motions):
        motion, kind = _after(motions, MOTION_SIZE * i), _after(kinds, KIND_SIZE * i)
        tx, ty, tz = _at(motion, SHIFT_X), _at(motion, SHIFT_Y), _at(motion, SHIFT_Z)
        px += xx * tx + yx * ty + zx * tz
        py += xy * tx + yy * ty + zy * tz
        pz += xz * tx + yz * ty + zz * tz
        ct, st = _at(motion, COS_TWIST), _at(motion, SIN_TWIST)
        yx, zx = ct * yx + st * zx, ct * zx - st * yx
        yy, zy = ct * yy + st * zy, ct * zy - st * yy
        yz, zz = ct * yz + st * zz, ct * zz - st * yz
        value = _at(motion, MULTIPLIER) * _lanes_at(q, _at(kind, COLUMN)) + _at(motion, OFFSET)
        if _at(kind, IS_TRANSLATION) == 0:
            s, c = _sin_cos(value)
        else:
            c, s = 0.0 * value + _at(motion, COS_FIXED), 0.0 * value + _at(motion, SIN_FIXED)
            px += value * zx
            py += value * zy
            pz += value * zz
        _put_six(axes, i, zx, zy, zz, px, py, pz)
        xx, yx = c * xx + s * yx, c * yx - s * xx
        xy, yy = c * xy + s * yy, c * yy - s * xy
        xz, yz = c * xz + s * yz, c * yz - s * xz
    tx, ty, tz = _at(tip, 0), _at(tip, 1), _at(tip, 2)
    px += xx * tx + yx * ty + zx * tz
    py += xy * tx + yy * ty + zy * tz
    pz += xz * tx + yz * ty + zz * tz
    return px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz


@njit(**_INLINE)
def _rotation_error(goal, xx, xy, xz, yx, yy, yz, zx, zy, zz):
    """Return 2 sin(angle / 2) * axis of the rotation that brings the tip's rotation to the goal's.

    The antisymmetric part of R_goal R_tip^T is sin(angle) * axis, and cos(angle / 2) follows from its trace.
    """
    # Columns of the goal's rotation, as those of the tip.
    gxx, gxy, gxz = _at(goal, 3), _at(goal, 6), _at(goal, 9)
    gyx, gyy, gyz = _at(goal, 4), _at(goal, 7), _at(goal, 10)
    gzx, gzy, gzz = _at(goal, 5), _at(goal, 8), _at(goal, 11)
    trace = gxx * xx + gxy * xy + gxz * xz + gyx * yx + gyy * yy + gyz * yz + gzx * zx + gzy * zy + gzz * zz
    ex = (xy * gxz - xz * gxy) + (yy * gyz - yz * gyy) + (zy * gzz - zz * gzy)
    ey = (xz * gxx - xx * gxz) + (yz * gyx - yx * gyz) + (zz * gzx - zx * gzz)
    ez = (xx * gxy - xy * gxx) + (yx * gyy - yy * gyx) + (zx * gzy - zy * gzx)
    rest = 1.0 + trace
    f = 1.0 / np.sqrt(_choose(rest, HALF_TURN, rest, HALF_TURN))  # 1 / (2 cos(angle / 2))
    # At half a turn the antisymmetric part vanishes: any axis leads away from there.
    return (
        _choose(rest, HALF_TURN, f * ex, 1.1),
        _choose(rest, HALF_TURN, f * ey, 1.2),
        _choose(rest, HALF_TURN, f * ez, 1.16),
    )


@njit(**_INLINE)
def _step(
    kinds, motions, variables, n, num_motions, axes, jacobian, moves, q, px, py, pz, e0, e1, e2, e3, e4, e5, weight
):  # fmt: skip
    """Make one damped step inside the limits: change = J^T (J J^T + damping * I)^-1 error, q += change.

    A variable at a limit that the error's gradient pushes outwards is taken out, so that the others make up for
    it (D. Bertsekas, "Projected Newton methods for optimization problems with simple constraints", SIAM Journal
    on Control and Optimization 20, 1982).
    """
    squared = e0 * e0 + e1 * e1 + e2 * e2 + e3 * e3 + e4 * e4 + e5 * e5
    a00 = DAMPING * _choose(squared, FAR, FAR, squared) + MIN_DAMPING
    a11 = a22 = a33 = a44 = a55 = a00
    a10 = a20 = a21 = a30 = a31 = a32 = a40 = a41 = a42 = a43 = a50 = a51 = a52 = a53 = a54 = 0.0 * e0
    for i in range(num_motions):
        kind = _after(kinds, KIND_SIZE * i)
        column = _at(kind, COLUMN)
        f = _at(_after(motions, MOTION_SIZE * i), MULTIPLIER)
        zx, zy, zz, ox, oy, oz = _six_at(axes, i)
        zx, zy, zz = f * zx, f * zy, f * zz
        if _at(kind, IS_TRANSLATION) == 0:
            rx, ry, rz = px - ox, py - oy, pz - oz
            c0, c1, c2 = zy * rz - zz * ry, zz * rx - zx * rz, zx * ry - zy * rx
            c3, c4, c5 = weight * zx, weight * zy, weight * zz
        else:
            c0, c1, c2 = zx, zy, zz
            c3 = c4 = c5 = 0.0 * zx
        if _at(kind, ADDS) != 0:  # a mimic joint
            b0, b1, b2, b3, b4, b5 = _six_at(jacobian, column)
            c0, c1, c2, c3, c4, c5 = c0 + b0, c1 + b1, c2 + b2, c3 + b3, c4 + b4, c5 + b5
        _put_six(jacobian, column, c0, c1, c2, c3, c4, c5)
    for j in range(n):
        c0, c1, c2, c3, c4, c5 = _six_at(jacobian, j)
        push = (c0 * e0 + c1 * e1 + c2 * e2) + (c3 * e3 + c4 * e4 + c5 * e5)
        value = _lanes_at(q, j)
        room = _choose(
            push, 0.0, _at(variables, UPPER * n + j) - value, value - _at(variables, LOWER * n + j)
        )
        f = _choose(room, 0.0, 1.0, 0.0)
        _put_lanes(moves, j, f)
        d0, d1, d2, d3, d4, d5 = f * c0, f * c1, f * c2, f * c3, f * c4, f * c5
        a00 += c0 * d0
        a10 += c1 * d0
        a11 += c1 * d1
        a20 += c2 * d0
        a21 += c2 * d1
        a22 += c2 * d2
        a30 += c3 * d0
        a31 += c3 * d1
        a32 += c3 * d2
        a33 += c3 * d3
        a40 += c4 * d0
        a41 += c4 * d1
        a42 += c4 * d2
        a43 += c4 * d3
        a44 += c4 * d4
        a50 += c5 * d0
        a51 += c5 * d1
        a52 += c5 * d2
        a53 += c5 * d3
        a54 += c5 * d4
        a55 += c5 * d5
    y0, y1, y2, y3, y4, y5 = _solve_6x6(
        a00, a10, a11, a20, a21, a22, a30, a31, a32, a33, a40, a41, a42, a43, a44, a50, a51, a52, a53, a54, a55,
        e0, e1, e2, e3, e4, e5,
    )  # fmt: skip
    for j in range(n):
        c0, c1, c2, c3, c4, c5 = _six_at(jacobian, j)
        change = _lanes_at(moves, j) * ((c0 * y0 + c1 * y1 + c2 * y2) + (c3 * y3 + c4 * y4 + c5 * y5))
        most = _at(variables, STEP_LIMIT * n + j)
        change = _choose(change, -most, change, -most)
        value = _lanes_at(q, j) + _choose(most, change, change, most)
        lower, upper = _at(variables, LOWER * n + j), _at(variables, UPPER * n + j)
        value = _choose(value, lower, value, lower)
        _put_lanes(q, j, _choose(upper, value, value, upper))


@njit(**_INNER)
def _descend(
    kinds, motions, tip, variables, n, num_motions, goal, effort, work, q, weight, max_steps, max_stalls, in_order
):  # fmt: skip
    """Make steps from q, in place, in all lanes, until one reaches the aim or none makes progress.

    The first ``in_order`` lanes are waited for while they make progress, even if a later one was quicker. Returns
    position errors and 2 sin(half the angle errors), both squared, steps made, and bits of the lanes at their aim.
    """
    axes = work
    jacobian = _after(axes, LANES * 6 * num_motions)
    moves = _after(jacobian, LANES * 6 * n)
    aim_p2 = _at(effort, AIM_POSITION) ** 2
    aim_o2 = _at(effort, AIM_ORIENTATION) ** 2
    accept_p2, accept_o2 = _at(effort, ACCEPT_POSITION) ** 2, _at(effort, ACCEPT_ORIENTATION) ** 2
    slack_p, slack_o = _at(effort, SLACK_POSITION), _at(effort, SLACK_ORIENTATION)
    stalls = 0.0 * _lanes_at(q, 0)
    previous = np.inf + stalls
    steps = 0
    while True:
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = _forward_lanes(
            motions, kinds, num_motions, q, tip, axes
        )
        e0, e1, e2 = _at(goal, 0) - px, _at(goal, 1) - py, _at(goal, 2) - pz
        e3, e4, e5 = _rotation_error(goal, xx, xy, xz, yx, yy, yz, zx, zy, zz)
        p2 = e0 * e0 + e1 * e1 + e2 * e2
        o2 = e3 * e3 + e4 * e4 + e5 * e5
        reached = _lanes_below(p2, aim_p2) & _lanes_below(o2, aim_o2)
        if slack_p > 0.0 or slack_o > 0.0:
            # Loose tolerances: only what exceeds them counts, so that the rest of the target can be met.
            f = 1.0 - slack_p / np.sqrt(p2 + 1e-300)
            f = _choose(f, 0.0, f, 0.0)
            e0, e1, e2 = f * e0, f * e1, f * e2
            f = 1.0 - slack_o / np.sqrt(o2 + 1e-300)
            f = weight * _choose(f, 0.0, f, 0.0)
            e3, e4, e5 = f * e3, f * e4, f * e5
        else:
            e3, e4, e5 = weight * e3, weight * e4, weight * e5
        error = (e0 * e0 + e1 * e1 + e2 * e2) + (e3 * e3 + e4 * e4 + e5 * e5)
        stalls += 1.0 - _choose(STALL_RATIO * previous, error, 1.0, 0.0)
        previous = error
        good_enough = _lanes_below(p2, accept_p2) & _lanes_below(o2, accept_o2)
        moving = (_lanes_below(stalls, max_stalls - 1.0) | good_enough) & ~reached
        if reached != 0:
            first = (reached & -reached) - 1  # the lanes before the first that reached its aim
            if moving & first & ((1 << in_order) - 1) == 0:
                return p2, o2, steps, reached
        if steps >= max_steps or moving == 0:
            return p2, o2, steps, reached
        _step(
            kinds, motions, variables, n, num_motions, axes, jacobian, moves, q, px, py, pz,
            e0, e1, e2, e3, e4, e5, weight,
        )  # fmt: skip
        steps += 1


@njit(**_INNER)
def _random_value(random_seed, number, n, j, low, high):
    """Return variable j of the number-th random configuration: a pure function of its arguments.

    It is splitmix64 (Steele et al. 2014), so there is no generator state to keep between calls or to share between
    threads.
    """
    start = np.uint64(random_seed) * _MIX_1 + np.uint64(number) * np.uint64(n)
    x = (start + np.uint64(j) + np.uint64(1)) * _MIX_0
    x = (x ^ (x >> _U30)) * _MIX_1
    x = (x ^ (x >> _U27)) * _MIX_2
    x = x ^ (x >> _U31)
    u = float(x >> _U11) * (1.0 / 9007199254740992.0)
    return min(max(low + u * (high - low), low), high)


@njit(**_INNER)
def _random_configuration(random_seed, number, variables, q):
    """Write the number-th random configuration."""
    n = q.shape[0]
    for j in range(n):
        q[j] = _random_value(
            random_seed, number, n, j, variables[SAMPLE_LOWER, j], variables[SAMPLE_UPPER, j]
        )


@njit(**_INNER)
def _copy(source, target):
    """Copy target[:] = source, which numba would take two more seconds to compile."""
    for j in range(target.shape[0]):
        target[j] = source[j]


@njit(**_INLINE)
def _nearest_turn(value, reference, lower, upper, period):
    """Return the value of a joint of that period that is nearest to the reference among those inside the limits."""
    if period > 0.0:
        turns = np.rint((reference - value) / period)
        if value + period * turns > upper:
            turns = np.floor((upper - value) / period)
        if value + period * turns < lower:
            turns = np.ceil((lower - value) / period)
        turned = value + period * turns
        if lower <= turned <= upper and abs(turned) < FARTHEST_TURN:
            return turned
    return value


@njit(**_INNER)
def _choose_turn(variables, reference, q):
    """Apply ``_nearest_turn`` to every variable."""
    for j in range(q.shape[0]):
        q[j] = _nearest_turn(
            q[j], reference[j], variables[LOWER, j], variables[UPPER, j], variables[PERIOD, j]
        )


@njit(**_INLINE)
def _set_goal(base, target, goal):
    """Compute goal = base^-1 target tip_rotation^-1.

    ``base`` holds the inverse of the first fixed transform (position, rotation rows) and then the transposed rotation
    of the last one.
    """
    for i in range(3):
        b0, b1, b2 = _at(base, 3 + 3 * i), _at(base, 4 + 3 * i), _at(base, 5 + 3 * i)
        r0 = b0 * _at(target, 0) + b1 * _at(target, 4) + b2 * _at(target, 8)
        r1 = b0 * _at(target, 1) + b1 * _at(target, 5) + b2 * _at(target, 9)
        r2 = b0 * _at(target, 2) + b1 * _at(target, 6) + b2 * _at(target, 10)
        _put(goal, i, _at(base, i) + b0 * _at(target, 3) + b1 * _at(target, 7) + b2 * _at(target, 11))
        for j in range(3):
            _put(
                goal, 3 + 3 * i + j, r0 * _at(base, 12 + j) + r1 * _at(base, 15 + j) + r2 * _at(base, 18 + j)
            )


@njit(**_INNER)
def _score_table(poses, size, goal, scores):
    """Compute the squared distance of every table pose from the goal: |dp|^2 + (w 2 sin(angle / 2))^2."""
    gx, gy, gz = _at(goal, 0), _at(goal, 1), _at(goal, 2)
    w, x, y, z = _quaternion(
        _at(goal, 3), _at(goal, 6), _at(goal, 9), _at(goal, 4), _at(goal, 7), _at(goal, 10),
        _at(goal, 5), _at(goal, 8), _at(goal, 11),
    )  # fmt: skip
    f = 4.0 * ORIENTATION_WEIGHT * ORIENTATION_WEIGHT
    px, py, pz, qw = poses, _after(poses, size), _after(poses, 2 * size), _after(poses, 3 * size)
    qx, qy, qz = _after(poses, 4 * size), _after(poses, 5 * size), _after(poses, 6 * size)
    for i in range((size + LANES - 1) // LANES):
        dx, dy, dz = _lanes_at(px, i) - gx, _lanes_at(py, i) - gy, _lanes_at(pz, i) - gz
        dot = _lanes_at(qw, i) * w + _lanes_at(qx, i) * x + _lanes_at(qy, i) * y + _lanes_at(qz, i) * z
        _put_lanes(scores, i, (dx * dx + dy * dy + dz * dz) + f * (1.0 - dot * dot))
    for i in range(size, (size + LANES - 1) // LANES * LANES):
        _put(scores, i, np.inf)


@njit(**_INNER)
def _nearest_of_each_lane(scores, size, nearest):
    """Write the index of the smallest score of every lane: so some good seeds are found in one pass, if not quite the
    best."""
    index = _lane_numbers()
    best, smallest = 0.0 * index, np.inf + index
    for i in range((size + LANES - 1) // LANES):
        score = _lanes_at(scores, i)
        best = _choose(smallest, score, index, best)
        smallest = _choose(smallest, score, score, smallest)
        index += float(LANES)
    _put_lanes(nearest, 0, best)


@njit(**_INNER)
def _search(robot, goal, effort, seeds, num_seeds, table_tries, first, last, random_seed, work, best):
    """Make attempts, some at once: seeds, near ones of the table, random numbers first to last.

    Ends when one reaches the aim, or ends inside the accepted tolerances; seeds go first. ``best`` receives the
    solution, or the attempt of the smallest normalised error. Returns that error, steps made, success.
    """
    n, m, k, kinds, _, tip, motions, variables, poses, table = robot
    accept_p2, accept_o2 = _at(effort, ACCEPT_POSITION) ** 2, _at(effort, ACCEPT_ORIENTATION) ** 2
    table_end = num_seeds + table_tries
    count = table_end + last - first
    q, errors, nearest, scores, rest = _work_parts(work, n, k)
    smallest = np.inf
    steps = 0
    for group in range(0, count, LANES):
        if group < table_end and table_end > num_seeds:
            if group <= num_seeds < group + LANES:
                _score_table(poses, k, goal, scores)
            if num_seeds < group + LANES:
                _nearest_of_each_lane(scores, k, nearest)
        for lane in range(LANES):
            attempt = group + lane
            if attempt < num_seeds:
                seed = _after(seeds, n * attempt)
                for j in range(n):
                    lower, upper, period = _limits(variables, n, j)
                    value = _at(seed, j)
                    if period > 0.0:  # an endless joint may have been turned far: stay precise
                        value -= period * np.rint(value / period)
                        if not (lower <= value <= upper):
                            value = _at(seed, j)
                    _put(q, LANES * j + lane, min(max(value, lower), upper))
            elif attempt < table_end:
                chosen = int(_at(nearest, lane))
                _put(scores, chosen, np.inf)
                seed = _after(table, n * chosen)
                for j in range(n):
                    _put(q, LANES * j + lane, _at(seed, j))
            elif attempt < count:
                number = first + attempt - table_end
                for j in range(n):
                    low, high = _at(variables, SAMPLE_LOWER * n + j), _at(variables, SAMPLE_UPPER * n + j)
                    _put(q, LANES * j + lane, _random_value(random_seed, number, n, j, low, high))
            else:  # none left: as the first, which changes nothing
                for j in range(n):
                    _put(q, LANES * j + lane, _at(q, LANES * j))
        p2, o2, made, reached = _descend(
            kinds, motions, tip, variables, n, m, goal, effort, rest, q, ORIENTATION_WEIGHT, MAX_STEPS, MAX_STALLS,
            min(max(num_seeds - group, 0), LANES),
        )  # fmt: skip
        steps += made
        accepted = _lanes_below(p2, accept_p2) & _lanes_below(o2, accept_o2)
        if reached != 0:
            accepted = reached
        _put_lanes(errors, 0, p2 / accept_p2 + o2 / accept_o2)
        for lane in range(LANES):
            error = _at(errors, lane)
            found = (accepted >> lane) & 1 != 0
            if found or error < smallest:
                smallest = error
                for j in range(n):
                    _put(best, j, _at(q, LANES * j + lane))
            if found:
                return smallest, steps, True
    return smallest, steps, False


@njit(**_INLINE)
def _limits(variables, n, j):
    """Return lower limit, upper limit and period of variable j."""
    return _at(variables, LOWER * n + j), _at(variables, UPPER * n + j), _at(variables, PERIOD * n + j)


@njit(**_INLINE)
def _work_size(n, m, k):
    """Return the size of the memory that ``_work_parts`` divides, in numbers."""
    return LANES * (8 * n + 6 * m + 2) + (k + LANES - 1) // LANES * LANES


@njit(**_INLINE)
def _work_parts(work, n, k):
    """Divide memory: configurations, errors, table seeds chosen, scores of the table, and the rest for ``_descend``."""
    errors = _after(work, LANES * n)
    nearest = _after(errors, LANES)
    scores = _after(nearest, LANES)
    return work, errors, nearest, scores, _after(scores, (k + LANES - 1) // LANES * LANES)


@njit(**_INLINE)
def _unpack(numbers, shape):
    """Return numbers of variables, motions and seeds, and pointers into the packed arrays, see
    ``chain.PackedChain``."""
    n, m, k = _at(shape, NUM_VARIABLES), _at(shape, NUM_MOTIONS), _at(shape, NUM_SEEDS)
    kinds = _after(shape, SHAPE_HEADER)
    tip = _after(numbers, BASE_SIZE)
    motions = _after(tip, TIP_SIZE)
    variables = _after(motions, MOTION_SIZE * m)
    poses = _after(variables, NUM_VARIABLE_ROWS * n)
    table = _after(poses, POSE_SIZE * k)
    return n, m, k, kinds, numbers, tip, motions, variables, poses, table


_NUMBERS, _SHAPE = "float64[::1]", "int64[::1]"


@njit("boolean(float64[:, ::1], float64[::1], float64[::1])", **_OUTER)
def solve_one(target, packed, q):
    """Search one answer the quickest way: table seeds, then random ones. Return whether q solves the target to 1e-6.

    ``packed``: shape, as if its integers were floats, and numbers in one array.
    """
    shape = _as_indices(_pointer(packed))
    robot = _unpack(_after(_pointer(packed), SHAPE_HEADER + KIND_SIZE * _at(shape, NUM_MOTIONS) + 1), shape)
    n, m, k, _, base, _, _, variables, _, table = robot
    goal = _memory(12)
    work = _memory(_work_size(n, m, k))
    best = _pointer(q)
    _set_goal(base, _pointer(target), goal)
    _, _, success = _search(
        robot, goal, _after(table, k * n), table, 0, min(QUICK_TABLE_TRIES, k),
        0, _at(shape, SHAPE_HEADER + KIND_SIZE * m), 0, work, best,
    )  # fmt: skip
    for j in range(n):
        lower, upper, period = _limits(variables, n, j)
        q[j] = _nearest_turn(q[j], 0.0, lower, upper, period)
    return success


@njit(
    f"void(float64[:, :, ::1], float64[:, :, ::1], float64[:, ::1], {_NUMBERS}, {_SHAPE}, float64[::1], int64[::1], "
    "float64[:, ::1], float64[::1], int64[::1], boolean[::1])",
    **_OUTER,
)
def solve_many(targets, seeds, reference, numbers, shape, effort, search, q, errors, steps, solved):
    """Search for every request that is not yet ``solved``; q, errors, steps and solved are updated in place.

    ``search``: table seeds to try, first and last random number, random seed, polish the best attempt (0 or 1).
    ``reference``: per request values that joints with several equivalent turns shall be near to.
    """
    robot = _unpack(_pointer(numbers), _pointer(shape))
    n, m, k, kinds, base, tip, motions, variables, _, _ = robot
    goal, best = _memory(12), _memory(n)
    work = _memory(_work_size(n, m, k))
    lanes_q, lanes_errors, _, _, rest = _work_parts(work, n, k)
    efforts = _pointer(effort)
    accept_p2, accept_o2 = effort[ACCEPT_POSITION] ** 2, effort[ACCEPT_ORIENTATION] ** 2
    tries, first, last, random_seed, polish = search[0], search[1], search[2], search[3], search[4]
    weight = min(max(effort[ACCEPT_POSITION] / effort[ACCEPT_ORIENTATION], 0.05), 1.0)
    for b in range(targets.shape[0]):
        if solved[b]:
            continue
        _set_goal(base, _after(_pointer(targets), 16 * b), goal)
        error, made, success = _search(
            robot, goal, efforts, _after(_pointer(seeds), seeds.shape[1] * n * b), seeds.shape[1], min(tries, k),
            first, last, random_seed, work, best,
        )  # fmt: skip
        steps[b] += made
        if error < errors[b] or success:
            errors[b] = error
            for j in range(n):
                q[b, j] = _at(best, j)
        if polish and not success:
            # An attempt was abandoned once it could not succeed; bring the best one as near as it gets.
            for j in range(n):
                for lane in range(LANES):
                    _put(lanes_q, LANES * j + lane, q[b, j])
            p2, o2, made, _ = _descend(
                kinds, motions, tip, variables, n, m, goal, efforts, rest, lanes_q, weight, POLISH_STEPS,
                POLISH_STEPS, 0,
            )  # fmt: skip
            steps[b] += made
            success = _lanes_below(p2, accept_p2) & _lanes_below(o2, accept_o2) & 1 != 0
            _put_lanes(lanes_errors, 0, p2 / accept_p2 + o2 / accept_o2)
            error = _at(lanes_errors, 0)
            if error < errors[b] or success:
                errors[b] = error
                for j in range(n):
                    q[b, j] = _at(lanes_q, LANES * j)
        for j in range(n):
            lower, upper, period = _limits(variables, n, j)
            q[b, j] = _nearest_turn(q[b, j], reference[b, j], lower, upper, period)
        solved[b] = success


@njit(f"void({_NUMBERS}, {_SHAPE}, float64[:, ::1], float64[:, ::1])", **_OUTER)
def tip_poses(numbers, shape, configurations, poses):
    """Compute poses (x, y, z, qw, qx, qy, qz) of the tip, for the table of seeds."""
    m = shape[NUM_MOTIONS]
    kinds = shape[SHAPE_HEADER : SHAPE_HEADER + KIND_SIZE * m].reshape((m, KIND_SIZE))
    tip = numbers[BASE_SIZE : BASE_SIZE + TIP_SIZE]
    motions = numbers[BASE_SIZE + TIP_SIZE : BASE_SIZE + TIP_SIZE + MOTION_SIZE * m].reshape((m, MOTION_SIZE))
    axes = np.empty((m, 6))
    for i in range(configurations.shape[0]):
        px, py, pz, xx, xy, xz, yx, yy, yz, zx, zy, zz = _forward(
            motions, kinds, configurations[i], tip, axes
        )
        poses[0, i], poses[1, i], poses[2, i] = px, py, pz
        w, x, y, z = _quaternion(xx, xy, xz, yx, yy, yz, zx, zy, zz)
        poses[3, i], poses[4, i], poses[5, i], poses[6, i] = w, x, y, z
