"""Kernels between requests and lanes: what is given is spread over lanes, and one lane is chosen for an answer. They do
not depend on the robot."""

import warp as wp

from kinopt_ros.solvers.hjcd.chain import LOWER, PERIOD, UPPER
from kinopt_ros.solvers.turns import FARTHEST_TURN

MODULE = "kinopt_hjcd_transfer"
LOW, HIGH, TURN = wp.constant(LOWER), wp.constant(UPPER), wp.constant(PERIOD)
FARTHEST = wp.constant(wp.float64(FARTHEST_TURN))
POSE = wp.constant(12)
"""Numbers of a target pose: position and rotation rows."""
THERE, TARGET, STATE = wp.constant(0), wp.constant(1), wp.constant(13)
"""Columns of what is given: whether the request is there, the target pose, the state, and starts behind it."""
POSITION, ORIENTATION, STEPS, CHOSEN = wp.constant(0), wp.constant(1), wp.constant(2), wp.constant(3)
"""Columns of an answer: errors (m, rad), steps of all lanes, and the configuration."""


@wp.kernel(enable_backward=False, module=MODULE)
def spread(
    given: wp.array2d(dtype=wp.float64),
    starts: int,
    lanes: int,
    idle: wp.array(dtype=int),
    targets: wp.array2d(dtype=float),
    targets_double: wp.array2d(dtype=wp.float64),
    q: wp.array2d(dtype=float),
):
    """Write targets in both precisions, and the ``starts`` of each to its first lanes."""
    t = wp.tid()
    idle[t] = 1
    if given[t, THERE] > wp.float64(0.0):
        idle[t] = 0
    for k in range(POSE):
        value = given[t, TARGET + k]
        targets[t, k] = wp.float32(value)
        targets_double[t, k] = value
    n = q.shape[0]
    for s in range(starts):
        for k in range(n):
            q[k, t * lanes + s] = wp.float32(given[t, STATE + (1 + s) * n + k])


@wp.func
def turned(value: wp.float64, near: wp.float64, ranges: wp.array2d(dtype=wp.float64), k: int):
    """Return a value turned by whole turns to the one nearest to ``near``, where limits allow it."""
    period = ranges[TURN, k]
    if period <= wp.float64(0.0):
        return value
    away = value - near
    other = near + (away - period * wp.rint(away / period))
    if ranges[LOW, k] <= other and other <= ranges[HIGH, k] and wp.abs(other) < FARTHEST:
        return other
    return value


@wp.kernel(enable_backward=False, module=MODULE)
def choose(
    given: wp.array2d(dtype=wp.float64),
    ranges: wp.array2d(dtype=wp.float64),
    q: wp.array2d(dtype=wp.float64),
    errors: wp.array2d(dtype=wp.float64),
    steps: wp.array(dtype=int),
    lanes: int,
    steps_before: wp.array(dtype=int),
    lanes_before: int,
    position: wp.float64,
    orientation: wp.float64,
    answers: wp.array2d(dtype=wp.float64),
):
    """Take the lane nearest to the state of those whose errors are within ``position`` (m) and ``orientation`` (rad);
    where there is none, the one whose errors are the least parts of these."""
    t = wp.tid()
    n = q.shape[0]
    chosen = int(t * lanes)
    least = wp.float64(wp.inf)
    nearest = wp.float64(wp.inf)
    reached = int(0)
    count = int(0)
    for i in range(lanes):
        lane = t * lanes + i
        count += steps[lane]
        part = wp.max(errors[0, lane] / position, errors[1, lane] / orientation)
        if errors[0, lane] <= position and errors[1, lane] <= orientation:
            away = wp.float64(0.0)
            for k in range(n):
                state = given[t, STATE + k]
                d = turned(q[k, lane], state, ranges, k) - state
                away += d * d
            if reached == 0 or away < nearest:
                nearest = away
                chosen = lane
            reached = 1
        elif reached == 0 and wp.isfinite(errors[0, lane]) and wp.isfinite(errors[1, lane]) and part < least:
            least = part
            chosen = lane
    for i in range(lanes_before):
        count += steps_before[t * lanes_before + i]
    answers[t, POSITION] = errors[0, chosen]
    answers[t, ORIENTATION] = errors[1, chosen]
    answers[t, STEPS] = wp.float64(count)
    for k in range(n):
        answers[t, CHOSEN + k] = turned(q[k, chosen], given[t, STATE + k], ranges, k)
