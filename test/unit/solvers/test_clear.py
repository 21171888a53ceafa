"""Inverse kinematics that avoids collisions; judged by coal on the original shapes, every pair, nothing pruned."""

import time
from dataclasses import replace

import coal
import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.errors import InvalidRequestError, NotReadyError, UnknownLinkError
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Octomap,
    PlacedShape,
    PointCloud,
    Shape,
    Sphere,
)
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import EMPTY_SCENE, AttachedObject, Scene, SceneObject
from kinopt_ros.solvers import clear
from kinopt_ros.solvers.asking import Asking
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import check_collisions

GROUP, HAND = "panda_arm", "panda_hand"


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    robot = load_robot("panda")
    prepare_collisions(robot)
    return robot


@pytest.fixture(scope="module")
def cpu(panda: RobotModel) -> Solver:
    return create_solver("cpu", panda)


def at(x: float, y: float, z: float) -> Float64:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def thing(name: str, shape: Shape, x: float, y: float, z: float) -> SceneObject:
    return SceneObject(name, (PlacedShape(shape, np.eye(4)),), at(x, y, z))


def scene_of(*things: SceneObject) -> Scene:
    return Scene(version=7, objects={item.id: item for item in things})


def cluttered(seed: int) -> Scene:
    rng = np.random.default_rng(seed)
    things = []
    for k in range(9):
        shape = (
            Box(*rng.uniform(0.05, 0.25, 3)),
            Sphere(rng.uniform(0.04, 0.12)),
            Cylinder(0.06, rng.uniform(0.1, 0.4)),
        )[k % 3]
        angle, radius = rng.uniform(-np.pi, np.pi), rng.uniform(0.4, 0.8)
        things.append(
            thing(f"thing{k}", shape, radius * np.cos(angle), radius * np.sin(angle), rng.uniform(0.1, 0.8))
        )
    return scene_of(*things)


def solid(shape: Shape) -> object:
    if isinstance(shape, Box):
        return coal.Box(shape.x, shape.y, shape.z)
    if isinstance(shape, Sphere):
        return coal.Sphere(shape.radius)
    if isinstance(shape, Capsule):
        return coal.Capsule(shape.radius, shape.length)
    assert isinstance(shape, Cylinder)
    return coal.Cylinder(shape.radius, shape.length)


def least_distance(robot: RobotModel, scene: Scene, q: Float64) -> float:
    """Return the least distance of all pairs that must not touch, m."""
    poses = dict(zip(robot.link_names, forward_kinematics(robot, q), strict=True))
    shapes = {
        name: [(solid(s.shape), poses[name] @ s.T_frame_shape) for s in placed]
        for name, placed in robot.collision_shapes.items()
    }
    pairs = list(checked_pairs(robot).checked)
    for item in scene.attached.values():
        T = poses[item.link] @ item.T_link_object
        shapes[item.id] = [(solid(s.shape), T @ s.T_frame_shape) for s in item.shapes]
        pairs += [(item.id, link) for link in robot.collision_shapes if link not in item.touch_links]
    moving = [*robot.collision_shapes, *scene.attached]
    for thing in scene.objects.values():
        shapes[thing.id] = [(solid(s.shape), thing.T_root_object @ s.T_frame_shape) for s in thing.shapes]
        pairs += [(thing.id, name) for name in moving]
    least = np.inf
    for a, b in pairs:
        if frozenset((a, b)) in scene.allowed:
            continue
        for first, T_a in shapes[a]:
            for second, T_b in shapes[b]:
                placed = [coal.Transform3s(T[:3, :3], T[:3, 3]) for T in (T_a, T_b)]
                found = coal.distance(
                    first, placed[0], second, placed[1], coal.DistanceRequest(), coal.DistanceResult()
                )
                least = min(least, found)
    return float(least)


def free_poses(robot: RobotModel, scene: Scene, count: int, seed: int) -> Float64:
    """Hand poses of random configurations that are free."""
    rng = np.random.default_rng(seed)
    arm = [i for name in robot.group(GROUP).joints for i in robot.variables_of(name)]
    poses: list[Float64] = []
    while len(poses) < count:
        q = robot.default_q.copy()
        q[arm] = rng.uniform(robot.limits.lower[arm], robot.limits.upper[arm])
        if least_distance(robot, scene, q) > 0.0:
            poses.append(forward_kinematics(robot, q, [HAND])[0])
    return np.array(poses)


@pytest.mark.parametrize("seed", range(3))
def test_solutions_are_free_wherever_there_are_free_ones(panda: RobotModel, cpu: Solver, seed: int) -> None:
    scene = cluttered(seed)
    T = free_poses(panda, scene, 15, seed)
    problem = ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene)
    result = cpu.solve_ik(problem)
    assert result.success.all(), [m for m in result.messages if m]
    assert result.scene_version == 7
    assert {"self collision", "world collision"} <= set(result.checks)
    assert not any("collision" in said for said in result.not_checked)
    for b in range(len(T)):
        q = problem.state[b].copy()
        q[problem.variables] = result.q[b, 0]
        assert least_distance(panda, scene, q) > 0.0
    # It is the scene that makes the difference.
    unaware = cpu.solve_ik(replace(problem, scene=None))
    touching = 0
    for b in range(len(T)):
        q = problem.state[b].copy()
        q[problem.variables] = unaware.q[b, 0]
        touching += least_distance(panda, scene, q) <= 0.0
    assert touching > 0
    assert unaware.scene_version is None
    assert "world collision" in unaware.not_checked


def test_the_clearance_is_kept(panda: RobotModel, cpu: Solver) -> None:
    scene = scene_of(thing("post", Cylinder(0.05, 1.0), 0.35, 0.0, 0.3))
    T = at(0.5, 0.25, 0.5)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    problem = ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene, clearance=0.03, num_solutions=5)
    result = cpu.solve_ik(problem)
    assert result.success[0], result.messages
    for k in range(int(result.num_found[0])):
        q = problem.state[0].copy()
        q[problem.variables] = result.q[0, k]
        assert least_distance(panda, scene, q) >= 0.03 - 1e-6


def test_a_goal_in_an_obstacle_names_pair_and_depth(panda: RobotModel, cpu: Solver) -> None:
    T = at(0.5, 0.0, 0.4)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    scene = scene_of(thing("crate", Box(0.3, 0.3, 0.3), 0.5, 0.0, 0.4))
    result = cpu.solve_ik(ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene))
    assert result.status[0] == Status.GOAL_IN_COLLISION
    assert np.isnan(result.q).all()
    assert "'crate'" in result.messages[0]
    assert "panda_" in result.messages[0]
    assert " m" in result.messages[0]
    # What it says is what the judge finds for the attempt, or less.
    assert not cpu.solve_ik(ik_problem(panda, at(3.0, 0.0, 0.0), group=GROUP, scene=scene)).success[0]
    far = cpu.solve_ik(ik_problem(panda, at(3.0, 0.0, 0.0), group=GROUP, scene=scene))
    assert far.status[0] == Status.NO_IK_SOLUTION
    assert "out of reach" in far.messages[0]


def test_allowed_pairs_may_touch(panda: RobotModel, cpu: Solver) -> None:
    T = at(0.5, 0.0, 0.4)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    crate = thing("crate", Box(0.06, 0.3, 0.06), 0.5, 0.0, 0.31)
    problem = ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene_of(crate))
    assert cpu.solve_ik(problem).status[0] == Status.GOAL_IN_COLLISION
    fingers = ("panda_hand", "panda_leftfinger", "panda_rightfinger")
    allowed = frozenset(frozenset(("crate", link)) for link in fingers)
    result = cpu.solve_ik(replace(problem, scene=replace(scene_of(crate), allowed=allowed)))
    assert result.success[0], result.messages


def test_what_the_robot_carries_counts(panda: RobotModel, cpu: Solver) -> None:
    carried = AttachedObject(
        "pole",
        (PlacedShape(Box(0.03, 0.03, 0.5), np.eye(4)),),
        HAND,
        at(0.0, 0.0, 0.3),
        frozenset({HAND, "panda_leftfinger", "panda_rightfinger"}),
    )
    table = thing("table", Box(2.0, 2.0, 0.1), 0.0, 0.0, -0.06)
    T = at(0.45, 0.2, 0.3)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    problem = ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene_of(table))
    assert cpu.solve_ik(problem).success[0]
    result = cpu.solve_ik(replace(problem, scene=replace(scene_of(table), attached={"pole": carried})))
    assert result.status[0] == Status.GOAL_IN_COLLISION
    assert "'pole'" in result.messages[0]
    assert "'table'" in result.messages[0]


def test_padding_keeps_the_world_away(panda: RobotModel, cpu: Solver) -> None:
    T = at(0.5, 0.0, 0.4)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    wall = thing("wall", Box(0.02, 1.0, 0.4), 0.62, 0.0, 0.4)
    problem = ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene_of(wall))
    assert cpu.solve_ik(problem).success[0]
    padded = replace(problem, scene=replace(scene_of(wall), default_padding=0.15))
    assert cpu.solve_ik(padded).status[0] == Status.GOAL_IN_COLLISION


def test_the_same_request_gets_the_same_answer_alone_and_among_others(panda: RobotModel, cpu: Solver) -> None:
    scene = cluttered(5)
    T = free_poses(panda, scene, 6, 9)
    problem = ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene, random_seed=4)
    together = cpu.solve_ik(problem)
    np.testing.assert_array_equal(together.q, cpu.solve_ik(problem).q)
    for b in range(len(T)):
        alone = cpu.solve_ik(ik_problem(panda, T[b], group=GROUP, tip_link=HAND, scene=scene, random_seed=4))
        np.testing.assert_array_equal(alone.q[0], together.q[b])


def test_a_deadline_ends_the_search(panda: RobotModel, cpu: Solver) -> None:
    T = at(0.5, 0.0, 0.4)
    T[:3, :3] = np.diag([1.0, -1.0, -1.0])
    scene = scene_of(thing("crate", Box(0.3, 0.3, 0.3), 0.5, 0.0, 0.4))
    problem = ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene)
    late = cpu.solve_ik(replace(problem, deadline=time.monotonic() - 1.0))
    assert late.cut_short[0]
    assert late.status[0] == Status.TIMED_OUT
    result = cpu.solve_ik(replace(problem, deadline=time.monotonic() + 30.0))
    assert result.status[0] == Status.GOAL_IN_COLLISION
    assert not result.cut_short[0]


def test_a_deadline_ends_a_large_hopeless_batch(panda: RobotModel, cpu: Solver) -> None:
    T = np.repeat(at(0.5, 0.0, 0.4)[None], 3000, axis=0)
    T[:, :3, :3] = np.diag([1.0, -1.0, -1.0])
    scene = scene_of(thing("crate", Box(0.3, 0.3, 0.3), 0.5, 0.0, 0.4))
    start = time.monotonic()
    result = cpu.solve_ik(
        ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene, deadline=time.monotonic() + 0.1)
    )
    assert time.monotonic() - start < 10.0  # without it some 50 s at best
    assert not result.success.any()
    assert result.cut_short.any()
    assert set(result.status.tolist()) <= {Status.TIMED_OUT, Status.GOAL_IN_COLLISION}
    assert all(result.messages)


@pytest.mark.parametrize(
    "shape",
    [
        PointCloud(np.random.default_rng(1).uniform(-0.1, 0.1, (50, 3)), 0.01),
        Octomap(np.random.default_rng(1).uniform(-0.1, 0.1, (20, 3)), np.full(20, 0.05)),
        Cone(0.05, 0.2),
    ],
    ids=lambda shape: type(shape).__name__,
)
def test_all_bounded_shapes_can_be_carried(panda: RobotModel, cpu: Solver, shape: Shape) -> None:
    touch = frozenset({HAND, "panda_leftfinger", "panda_rightfinger", "panda_link7"})
    carried = AttachedObject("load", (PlacedShape(shape, np.eye(4)),), HAND, at(0.0, 0.0, 0.25), touch)
    table = thing("table", Box(0.8, 0.8, 0.1), 0.6, 0.0, 0.0)
    T = np.stack([at(0.5, 0.2, 0.2), at(0.5, 0.0, 0.6)])
    T[:, :3, :3] = np.diag([1.0, -1.0, -1.0])
    scene = replace(scene_of(table), attached={"load": carried})
    result = cpu.solve_ik(ik_problem(panda, T, group=GROUP, tip_link=HAND, scene=scene))
    assert result.status.tolist() == [Status.GOAL_IN_COLLISION, Status.SUCCESS], result.messages
    assert "'load'" in result.messages[0]


def test_no_deadline_waits_for_the_preparations(cpu: Solver) -> None:
    robot = load_robot("panda")
    solver = create_solver("cpu", robot)
    T = at(0.5, 0.0, 0.4)
    hasty = ik_problem(robot, T, group=GROUP, scene=EMPTY_SCENE, deadline=time.monotonic() + 5.0)
    with pytest.raises(NotReadyError, match="prepare_collisions"):
        solver.solve_ik(hasty)


def test_bad_input_is_refused(panda: RobotModel, cpu: Solver) -> None:
    problem = ik_problem(panda, at(0.5, 0.0, 0.4), group=GROUP, scene=EMPTY_SCENE)
    for clearance in (-0.1, np.nan, np.inf, 11.0):
        with pytest.raises(InvalidRequestError, match="clearance"):
            cpu.solve_ik(replace(problem, clearance=clearance))
    with pytest.raises(InvalidRequestError, match="scene"):
        cpu.solve_ik(replace(problem, scene=None, clearance=0.1))
    lost = AttachedObject("box", (PlacedShape(Sphere(0.1), np.eye(4)),), "nowhere", np.eye(4), frozenset())
    with pytest.raises(UnknownLinkError, match="nowhere"):
        cpu.solve_ik(replace(problem, scene=Scene(attached={"box": lost})))


def test_duplicates_are_dropped() -> None:
    q = np.array([[0.0, 1.0], [0.5, 0.5], [0.0, 1.0 + 1e-5], [2.0, 2.0]])
    np.testing.assert_array_equal(clear._without(q, np.array([[2.0, 2.0]])), q[:2])


def test_a_branch_that_few_random_starts_lead_to_is_found(
    panda: RobotModel, cpu: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first round finds nothing new; an arm that is not redundant may still have a branch that is clear."""
    scene = cluttered(2)
    arm = [i for name in panda.group(GROUP).joints for i in panda.variables_of(name)]
    q = np.repeat(panda.default_q[None], 200, axis=0)
    q[:, arm] = np.random.default_rng(3).uniform(panda.limits.lower[arm], panda.limits.upper[arm], (200, 7))
    q = q[check_collisions(panda, scene, q, contacts=False).free]
    poses = forward_kinematics(panda, q, [HAND])[:, 0]
    plain = cpu.solve_ik(ik_problem(panda, poses, group=GROUP, tip_link=HAND))
    found = q.copy()
    found[:, arm] = plain.q[:, 0]
    hit = np.flatnonzero(~check_collisions(panda, scene, found, contacts=False).free)[0]
    asked = []

    def solutions(search: object, states: Float64) -> Asking[Float64]:
        asked.append(len(states))
        yield from ()
        return np.array([found[hit, arm], q[hit, arm]])[: len(asked)]

    monkeypatch.setattr(clear._Search, "_redundant", False)
    monkeypatch.setattr(clear._Search, "_solutions", solutions)
    result = cpu.solve_ik(ik_problem(panda, poses[hit], group=GROUP, tip_link=HAND, scene=scene))
    assert result.success.all()
    np.testing.assert_array_equal(result.q[0, 0], q[hit, arm])
    assert asked == [24, 96]
