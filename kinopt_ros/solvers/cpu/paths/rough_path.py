"""Rough paths, free by the optimizer's spheres, found by growing trees where straight lines do not lead around."""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.sampling import range_around
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths.kernels import connect, levenberg_marquardt
from kinopt_ros.solvers.cpu.paths.model import need_compiled, path_model
from kinopt_ros.solvers.cpu.paths.optimize import accepted

PIECE = 1_000
"""Number of collision checks between two questions whether to go on."""
MOST_NODES = 4_000
"""Most nodes of each of the two trees."""
SHORTCUTS = 60
REACH_FROM = 16
"""Configurations, beside start and ends, by which it is seen how far each variable moves the robot."""
NEAR = 1.0
"""Spread of every second configuration around the region between the start and one of the ends, rad or m."""


def rough_path(
    robot: RobotModel,
    problem: TrajectoryProblem,
    ends: Annotated[Float64, "G n"],
    margin: float,
    looks: int,
    seed: int,
    go_on: Callable[[], bool],
) -> Annotated[Float64, "K n"] | None:
    """Search a path from the start to one of some ends, both taken to be clear; return its corners, or None.

    Args:
        robot: the robot.
        problem: what is asked, with a scene.
        ends: configurations, of which the path ends at one.
        margin: distance of spheres (m) beside the problem's clearance, where the start and the ends have it.
        looks: configurations to look at, at most about so many.
        seed: same arguments, same seed, same path.
        go_on: asked after every PIECE; False ends the search.

    Raises:
        NotReadyError: the kernel was not compiled yet, which a deadline does not wait for.
    """
    need_compiled(problem)
    model = path_model(robot, problem)
    wanted = accepted(problem, margin)
    q0 = problem.start[problem.variables]
    G, n = ends.shape
    roots = np.concatenate([q0[None], ends])
    low, high = (limit[problem.variables] for limit in range_around(robot, problem.whole(roots)))
    model_arrays = model.tree.arrays, model.around.arrays
    S, M = len(model.around.radii), len(model.tree.parent)
    anchors = np.full((1 + G, S), np.inf), np.zeros((1 + G, S, 3)), model.floor.copy()
    levenberg_marquardt.anchor_path(*model_arrays, anchors, np.ascontiguousarray(roots), wanted)
    nodes, parents = np.empty((2, MOST_NODES, n)), np.zeros((2, MOST_NODES), dtype=np.int64)
    nodes[0, 0], nodes[1, :G] = q0, ends
    parents[1, :G] = np.arange(G)
    counts = np.array([1, G])
    work = connect.work_of(n, M, S, len(model.around.body_node))
    state = np.array([0, 0, 0, -1, -1])
    rng = np.random.default_rng(seed)
    somewhere = rng.uniform(low, high, (REACH_FROM, n))
    connect.set_reach(*model_arrays, np.concatenate([roots, somewhere]), work)
    while state[connect.MEETING] < 0:
        if not go_on() or state[connect.LOOKS] >= looks or counts.max() >= MOST_NODES:
            return None
        state[connect.DRAWN] = 0
        draws = _draws(rng, q0, ends, low, high)
        connect.grow(*model_arrays, anchors, wanted, draws, nodes, parents, counts, work, state, PIECE)
    near, far = (_back(nodes[side], parents[side], state[connect.MEETING + side]) for side in (0, 1))
    corners = np.concatenate([near[::-1], far[1:]])
    count = len(corners)
    new = np.empty_like(corners)
    draws = rng.random((SHORTCUTS, 2))
    while len(draws):
        if not go_on():
            return None
        length = float(np.abs(work.reach * np.diff(corners[:count], axis=0)).max(axis=1).sum())
        looks_each = min(length / connect.RESOLUTION, connect.LONGEST) + 1.0
        some = min(max(int(2 * PIECE / looks_each), 1), SHORTCUTS // 3)
        now, draws = draws[:some], draws[some:]
        count = connect.shorten(*model_arrays, anchors, wanted, corners, count, now, new, work, state)
    return corners[:count].copy()


def _draws(
    rng: np.random.Generator, q0: Float64, ends: Float64, low: Float64, high: Float64
) -> Annotated[Float64, "K n"]:
    """Return random configurations: all over, and near to lines between start and ends."""
    count = PIECE // 10
    drawn = rng.uniform(low, high, (count, len(low)))
    some = ends[rng.integers(len(ends), size=count // 2)]
    near = q0 + rng.random((len(some), 1)) * (some - q0) + NEAR * rng.normal(size=some.shape)
    drawn[::2][: len(near)] = np.clip(near, low, high)
    return drawn


def _back(nodes: Float64, parents: np.ndarray, node: int) -> Float64:
    """Return the path from a node to its root."""
    found = [node]
    while parents[node] != node:
        node = parents[node]
        found.append(node)
    return np.asarray(nodes[found])
