"""Tests of how far spheres stick out, against coal's distances, and of what the optimizer makes of it."""

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.arm_scenes import READY, scene_of

from kinopt_ros.array import Float64
from kinopt_ros.collision.contacts import Placement
from kinopt_ros.collision.packed_bodies import packed_bodies_of
from kinopt_ros.geometry.shapes import Box
from kinopt_ros.problems.trajectory import JointGoal, TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths.compiling import workspace
from kinopt_ros.solvers.cpu.paths.kernels import nearness_cost
from kinopt_ros.solvers.cpu.paths.model import PathModel, path_model
from kinopt_ros.solvers.cpu.paths.optimize import accepted, optimize_paths
from kinopt_ros.solvers.cpu.paths.sphere_slack import _made, _near_anchors, sphere_slack
from kinopt_ros.solvers.paths import PathRequest
from kinopt_ros.verification.collision import clearance_of

T = 32
WANTED = 0.05
TURN = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


def turning(problem_of: Callable, gap: float, robot: RobotModel) -> tuple[TrajectoryProblem, Float64]:
    """The arm turns about its upright axis, below a board that is so far (m) above its shapes."""
    path = np.linspace(READY - TURN / 2.0, READY + TURN / 2.0, T)
    high = scene_of((Box(4.0, 4.0, 0.1), (0.0, 0.0, 2.0)))
    problem = problem_of(path[0], path[-1], scene=high, num_points=T)
    packed = packed_bodies_of(robot, high)
    pairs = [k for k in packed.every_pair.tolist() if any(name in high.objects for name in packed.names(k))]
    placement = Placement(packed, problem.start)
    board = 2.0 - min(placement.distance_of(pair) for pair in pairs) + gap
    return replace(problem, scene=scene_of((Box(4.0, 4.0, 0.1), (0.0, 0.0, board)))), path


def spheres_apart(model: PathModel, path: Float64, wanted: float) -> tuple[Float64, np.ndarray, Float64]:
    around = model.around
    S, P, B = len(around.radii), len(around.pairs), len(around.body_node)
    gaps, obstacle = np.empty((len(path), S)), np.empty((len(path), S), dtype=np.int64)
    pair_gaps = np.empty((len(path), P))
    memory = workspace(1, path.shape[1], len(model.tree.parent), S, B)
    nearness_cost.sphere_distances(
        model.tree.arrays, around.arrays, path, wanted, memory, gaps, obstacle, pair_gaps
    )
    return gaps, obstacle, pair_gaps


def test_it_is_the_difference_to_the_distance_of_the_shapes(panda: RobotModel, problem_of: Callable) -> None:
    problem, path = turning(problem_of, 0.01, panda)
    # Beside a post, too, so that bodies are near to several things.
    scene = problem.scene
    assert scene is not None
    post = scene_of((Box(0.1, 0.1, 0.8), (0.32, 0.2, 0.6))).objects["object 0"]
    scene = replace(scene, objects={**scene.objects, "post": replace(post, id="post")})
    problem = replace(problem, scene=scene)
    model = path_model(panda, problem)
    around = model.around
    found = sphere_slack(panda, problem, model, path, [0, T - 1], WANTED, 0.005)
    gaps, obstacle, pair_gaps = spheres_apart(model, path, WANTED)
    packed = packed_bodies_of(panda, scene)
    by_names: dict[frozenset[str], list[int]] = {}
    for pair in packed.every_pair.tolist():
        by_names.setdefault(frozenset(packed.names(pair)), []).append(pair)
    body = np.repeat(np.arange(len(around.names)), np.diff(around.body_first))
    compared = overlapping = 0
    for t in range(T):
        placement = Placement(packed, problem.whole(path[t]))

        def true(*names: str, placement: Placement = placement) -> float:
            return min(placement.distance_of(pair) for pair in by_names[frozenset(names)])

        for s in np.flatnonzero(obstacle[t] >= 0).tolist():
            names = around.names[body[s]], around.owners[obstacle[t, s]]
            own = (body == body[s]) & (obstacle[t] >= 0)
            same = [k for k in np.flatnonzero(own) if around.owners[obstacle[t, k]] == names[1]]
            least, distance = gaps[t, same].min(), min(true(*names), WANTED)
            if distance <= 0.0:
                overlapping += found.world[t, s] > 0.0
                assert 0.0 <= found.world[t, s] <= max(-least, 0.0) + 1e-9
                continue
            compared += 1
            # Both shapes are convex, or nearly: bounds are what coal says.
            assert distance - least - 2e-3 <= found.world[t, s] <= max(distance - least, 0.0) + 1e-6
        for k in np.flatnonzero(np.isfinite(pair_gaps[t])).tolist():
            one, two = (around.names[i] for i in around.pairs[k])
            distance = min(true(one, two), WANTED)
            assert distance > 0.0
            more = max(distance - pair_gaps[t, k], 0.0)
            assert more - 2e-3 <= found.pairs[t, k] <= more + 1e-6
            compared += 1
    assert compared > 100
    assert overlapping > 0
    assert (found.world[~(obstacle >= 0)] == 0.0).all()
    assert np.isnan(found.pairs[~np.isfinite(pair_gaps)]).all()


def test_what_will_do_grows_from_the_anchors_by_2_cm_per_rad() -> None:
    path = np.linspace([0.0, 0.0], [0.6, 0.8], 11)  # 0.1 rad apart
    distance = np.full((11, 3), np.inf)
    distance[0], distance[10] = [0.001, np.inf, np.inf], [0.004, 0.002, np.inf]
    distance[5] = -1.0  # no anchor
    found = _near_anchors(path, [0, 10, 10], distance)
    way = np.linspace(0.0, 1.0, 11)
    one, other = 0.001 + 0.02 * way, 0.004 + 0.02 * (1.0 - way)
    np.testing.assert_allclose(found[:, 0], np.minimum(one, other), atol=1e-12)
    np.testing.assert_allclose(found[:, 1], 0.002 + 0.02 * (1.0 - way), atol=1e-12)
    assert np.isinf(found[:, 2]).all()


def test_slack_is_what_the_shapes_have(panda: RobotModel, problem_of: Callable) -> None:
    problem, path = turning(problem_of, 0.01, panda)
    model = path_model(panda, problem)
    # At the ends there is 1 cm, which will do there, and more is wanted of a board the farther away from them.
    for enough, slack in ((0.004, 0.006), (0.02, -0.01)):
        found = sphere_slack(panda, problem, model, path, [0, T - 1], WANTED, enough)
        assert found.slack == pytest.approx(slack, abs=1e-6)


def test_a_path_that_shapes_leave_room_for_is_kept_to(panda: RobotModel, problem_of: Callable) -> None:
    problem, path = turning(problem_of, 0.0075, panda)
    moved = {}
    for rough in (False, True):
        request = PathRequest(
            path[None], np.zeros(1, dtype=np.int64), np.zeros((1, 0), dtype=np.int64), 0.002, rough
        )
        found = optimize_paths(panda, problem, request)
        assert found.clearance[0] >= accepted(problem, 0.002)
        moved[rough] = np.abs(found.paths[0] - path).max()
    # Spheres stick out into what is wanted, so that those who believe them duck.
    assert moved[False] > 3e-3
    assert moved[True] < 1e-4


def test_a_path_too_near_is_moved_by_what_is_missing(panda: RobotModel, problem_of: Callable) -> None:
    """Shapes are 2 mm away in the middle; spheres, which overlap by more than that, tell where to go."""
    problem, path = turning(problem_of, 0.002, panda)
    # Ends that are free: lower.
    lower = np.array([0.0, 0.15, 0.0, 0.0, 0.0, 0.0, 0.0])
    path = path + np.abs(np.linspace(-1.0, 1.0, T))[:, None] * lower
    q = problem.start.copy()
    q[:7] = path[0]
    problem = problem_of(path[0], path[-1], scene=problem.scene, num_points=T)
    request = PathRequest(
        path[None], np.zeros(1, dtype=np.int64), np.zeros((1, 0), dtype=np.int64), 0.01, True
    )
    found = optimize_paths(panda, problem, request)
    assert problem.scene is not None
    least = min(clearance_of(panda, problem.scene, problem.whole(row)).distance for row in found.paths[0])
    before = min(clearance_of(panda, problem.scene, problem.whole(row)).distance for row in path)
    assert before < accepted(problem, 0.01)
    assert least >= min(accepted(problem, 0.01), clearance_of(panda, problem.scene, q).distance) - 1e-4


@pytest.mark.parametrize("rough", [False, True])
def test_spheres_that_leave_no_room_are_not_believed(
    panda: RobotModel, problem_of: Callable, rough: bool
) -> None:
    """Only one joint may move, so that there is no way out from under the board; shapes have room there."""
    problem, path = turning(problem_of, 0.006, panda)
    problem = replace(
        problem,
        joints=problem.joints[:1],
        variables=problem.variables[:1],
        goals=(JointGoal(path[-1, :1]),),
    )
    model = path_model(panda, problem)
    assert spheres_apart(model, path[:, :1].copy(), WANTED)[0].min() < accepted(problem, 0.01)
    request = PathRequest(
        path[None, :, :1].copy(), np.zeros(1, dtype=np.int64), np.zeros((1, 0), dtype=np.int64), 0.01, rough
    )
    found = optimize_paths(panda, problem, request)
    assert found.clearance[0] >= accepted(problem, 0.01)
    assert found.violation[0] == 0.0


def test_thousands_of_objects_need_no_table_of_them_all(panda: RobotModel, problem_of: Callable) -> None:
    count = 2_000
    rng = np.random.default_rng(0)
    spots = rng.uniform(1.0, 2.0, (count, 3)).tolist()
    scene = scene_of(*((Box(0.02, 0.02, 0.02), (x, y, z)) for x, y, z in spots))
    problem = problem_of(READY, READY + 0.1 * TURN, scene=scene, num_points=T)
    model, packed = path_model(panda, problem), packed_bodies_of(panda, scene)
    tracemalloc.start()
    places = _made(packed, model)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * count**2  # bytes; a table of numbers has twice as many
    # Every pair has the group of its two bodies, and no other pair of bodies has it.
    moving = [k for k in range(len(model.around.names)) if model.around.body_mask[k] >= 0]
    others = len(model.around.names) * count + len(model.around.pairs)
    of_bodies: dict[int, set[frozenset[str]]] = {}
    for pair, group in zip(packed.every_pair.tolist(), places.group.tolist(), strict=True):
        of_bodies.setdefault(group, set()).add(frozenset(packed.names(pair)))
    of_bodies.pop(others, None)
    assert len(of_bodies) == len(moving) * count + len(model.around.pairs)
    assert all(len(names) == 1 for names in of_bodies.values())
    for name in scene.objects:
        k = moving[0]
        group = k * count + list(scene.objects).index(name)
        assert of_bodies[group] == {frozenset((model.around.names[k], name))}
