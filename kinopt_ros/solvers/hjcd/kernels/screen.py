"""Selection kernels: which starts are refined, and which results of the coarse stage. They do not depend on the
robot."""

import warp as wp

from kinopt_ros.solvers.hjcd.kernels.lm import WEIGHT

MODULE = "kinopt_hjcd_screen"
WEIGHT_SQUARED = wp.constant(4.0 * WEIGHT * WEIGHT)


@wp.kernel(enable_backward=False, module=MODULE)
def begin(
    idle: wp.array(dtype=int),
    lanes: int,
    done: wp.array(dtype=int),
    errors: wp.array2d(dtype=float),
    strikes: wp.array(dtype=int),
    strikes_double: wp.array(dtype=int),
    steps: wp.array(dtype=int),
):
    """Reset all lanes. Targets that are ``idle`` are done from the beginning."""
    lane = wp.tid()
    errors[0, lane] = 0.0
    errors[1, lane] = 0.0
    strikes[lane] = 0
    strikes_double[lane] = 0
    steps[lane] = 0
    if lane % lanes == 0:
        done[lane // lanes] = idle[lane // lanes]


@wp.kernel(enable_backward=False, module=MODULE)
def screen(
    targets: wp.array2d(dtype=float),
    starts: wp.array2d(dtype=float),
    poses: wp.array2d(dtype=float),
    first: int,
    lanes: int,
    q: wp.array2d(dtype=float),
):
    """Lanes from ``first`` on share the starts out, every one of them takes the best of its share: the one whose tip is
    nearest to the target. No two take the same, and none waits for another one. (The best of all are better lanes by
    2 to 3 in 100, and solve as many targets.)"""
    t, i = wp.tid()
    R = wp.mat33(
        targets[t, 3], targets[t, 4], targets[t, 5],
        targets[t, 6], targets[t, 7], targets[t, 8],
        targets[t, 9], targets[t, 10], targets[t, 11],
    )  # fmt: skip
    turn = wp.quat_from_matrix(R)
    p = wp.vec3(targets[t, 0], targets[t, 1], targets[t, 2])
    best = int(i)
    least = float(wp.inf)
    s = int(i)
    while s < poses.shape[1]:
        away = wp.vec3(poses[0, s], poses[1, s], poses[2, s]) - p
        cosine = turn[0] * poses[3, s] + turn[1] * poses[4, s] + turn[2] * poses[5, s] + turn[3] * poses[6, s]
        # 4 sin(angle / 2)^2, which damped least squares measures rotations by, too
        distance = wp.dot(away, away) + WEIGHT_SQUARED * (1.0 - cosine * cosine)
        if distance < least:
            least = distance
            best = s
        s += lanes - first
    for k in range(starts.shape[0]):
        q[k, t * lanes + first + i] = starts[k, best]


@wp.kernel(enable_backward=False, module=MODULE)
def begin_refinement(
    idle: wp.array(dtype=int),
    lanes: int,
    first_damping: wp.float64,
    done: wp.array(dtype=int),
    damping: wp.array(dtype=wp.float64),
    best_scores: wp.array(dtype=wp.float64),
    steps: wp.array(dtype=int),
):
    """Reset, as ``begin`` does, the lanes that Algorithm 4 refines."""
    lane = wp.tid()
    damping[lane] = first_damping
    best_scores[lane] = wp.float64(wp.inf)
    steps[lane] = 0
    if lane % lanes == 0:
        done[lane // lanes] = idle[lane // lanes]


@wp.kernel(enable_backward=False, module=MODULE)
def keep_best(
    scores: wp.array(dtype=float),
    lanes: int,
    keep: int,
    q: wp.array2d(dtype=float),
    kept: wp.array2d(dtype=float),
):
    """Lines 3 to 6 of Algorithm 2: the lanes of every target with the least scores, in order; of equal ones the first
    comes first."""
    t, i = wp.tid()
    own = scores[t * lanes + i]
    place = int(0)
    for other in range(lanes):
        score = scores[t * lanes + other]
        if score < own or (score == own and other < i):
            place += 1
    if place < keep:
        for k in range(q.shape[0]):
            kept[k, t * keep + place] = q[k, t * lanes + i]


@wp.kernel(enable_backward=False, module=MODULE)
def settle(errors: wp.array2d(dtype=float), lanes: int, near: float, done: wp.array(dtype=int)):
    """Targets of which a lane has both errors (m, rad) below ``near`` are done."""
    t = wp.tid()
    for i in range(lanes):
        if wp.max(errors[0, t * lanes + i], errors[1, t * lanes + i]) < near:
            done[t] = 1


@wp.kernel(enable_backward=False, module=MODULE)
def settle_double(
    errors: wp.array2d(dtype=wp.float64), lanes: int, near: wp.float64, done: wp.array(dtype=int)
):
    """Mark targets as done that have a lane with errors below ``near``, in double precision."""
    t = wp.tid()
    for i in range(lanes):
        if wp.max(errors[0, t * lanes + i], errors[1, t * lanes + i]) < near:
            done[t] = 1


@wp.kernel(enable_backward=False, module=MODULE)
def widen(
    q: wp.array2d(dtype=float),
    errors: wp.array2d(dtype=float),
    ranges: wp.array2d(dtype=wp.float64),
    q_double: wp.array2d(dtype=wp.float64),
    errors_double: wp.array2d(dtype=wp.float64),
):
    """Convert lanes to double precision, inside its limits."""
    lane = wp.tid()
    for k in range(q.shape[0]):
        q_double[k, lane] = wp.min(wp.max(wp.float64(q[k, lane]), ranges[0, k]), ranges[1, k])
    for k in range(2):
        errors_double[k, lane] = wp.float64(errors[k, lane])
