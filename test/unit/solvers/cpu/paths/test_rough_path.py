"""Paths found by growing trees, judged by the exact check on the shapes."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from support.arm_scenes import scene_of

from kinopt_ros.array import Float64
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.geometry.shapes import Box
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths import rough_path as module
from kinopt_ros.solvers.cpu.paths.compiling import workspace
from kinopt_ros.solvers.cpu.paths.kernels import connect, nearness_cost
from kinopt_ros.solvers.cpu.paths.kernels.connect import RESOLUTION
from kinopt_ros.solvers.cpu.paths.kernels.spheres import TIGHT
from kinopt_ros.solvers.cpu.paths.model import path_model
from kinopt_ros.solvers.cpu.paths.rough_path import rough_path
from kinopt_ros.verification.collision import check_collisions

LEFT = np.array([-0.9, 0.2, 0.0, -1.9, 0.0, 2.1, 0.785])
RIGHT = LEFT + np.array([1.8, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
HIGH = np.array([0.9, -0.5, 0.0, -1.2, 0.0, 1.5, 0.785])
WALL = scene_of((Box(0.5, 0.05, 0.6), (0.6, 0.0, 0.3)))


def found(
    robot: RobotModel,
    problem: TrajectoryProblem,
    *ends: Float64,
    margin: float = 0.01,
    looks: int = 20_000,
    seed: int = 0,
    go_on: Callable[[], bool] = lambda: True,
) -> Float64 | None:
    return rough_path(robot, problem, np.stack(ends), margin, looks, seed, go_on)


def length(corners: Float64) -> float:
    return float(np.linalg.norm(np.diff(corners, axis=0), axis=1).sum())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_leads_around(panda: RobotModel, problem_of: Callable, seed: int) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    corners = found(panda, problem, RIGHT, seed=seed)
    assert corners is not None
    np.testing.assert_array_equal(corners[[0, -1]], [LEFT, RIGHT])
    limits = panda.limits.lower[:7], panda.limits.upper[:7]
    assert ((corners >= limits[0]) & (corners <= limits[1])).all()
    # Spheres contain the shapes: what they keep off, the shapes do.
    for a, b in pairwise(corners):
        count = max(1, int(np.ceil(np.abs(b - a).max() / RESOLUTION)))
        q = np.repeat(problem.start[None], count + 1, axis=0)
        q[:, :7] = a + np.linspace(0.0, 1.0, count + 1)[:, None] * (b - a)
        assert check_collisions(panda, WALL, q, 0.004, contacts=False).free.all()


@pytest.mark.parametrize("wanted", [-0.02, 0.01])
def test_clear_is_what_no_sphere_contradicts(panda: RobotModel, problem_of: Callable, wanted: float) -> None:
    """Balls around bodies come first and must not hide anything: against distances of all spheres."""
    scene = scene_of((Box(0.4, 0.4, 0.4), (0.6, 0.3, 0.5)), (Box(0.3, 0.3, 0.3), (-0.4, -0.3, 0.6)))
    problem = problem_of(LEFT, RIGHT, scene=scene)
    model = path_model(panda, problem)
    around, arrays = model.around, (model.tree.arrays, model.around.arrays)
    S, P, B, M = len(around.radii), len(around.pairs), len(around.body_node), len(model.tree.parent)
    rng = np.random.default_rng(0)
    low, high = panda.limits.lower[:7], panda.limits.upper[:7]
    # Small steps, too: distances of before spare others.
    steps = np.cumsum(rng.normal(scale=0.03, size=(10, 30, 7)), axis=1)
    path = np.clip(rng.uniform(low, high, (10, 1, 7)) + steps, low, high).reshape(-1, 7)
    gaps, obstacle, pair_gaps = np.empty((300, S)), np.empty((300, S), dtype=np.int64), np.empty((300, P))
    nearness_cost.sphere_distances(*arrays, path, 0.5, workspace(1, 7, M, S, B), gaps, obstacle, pair_gaps)
    expected = (gaps >= wanted - TIGHT).all(axis=1) & (pair_gaps >= wanted).all(axis=1)
    nowhere = np.full((1, S), np.inf), np.zeros((1, S, 3)), np.full((S, S), np.inf)
    work = connect.work_of(7, M, S, B)
    found = []
    for q in path:  # a tree of one node, which does not move: one look
        nodes, parents = np.empty((2, 4, 7)), np.zeros((2, 4), dtype=np.int64)
        nodes[0, 0], nodes[1, 0] = q + 1e-9, LEFT
        state = np.array([0, 0, 0, -1, -1])
        counts = np.array([1, 1])
        connect.grow(*arrays, nowhere, wanted, q[None].copy(), nodes, parents, counts, work, state, 1)
        found.append(counts[0] == 2)
    np.testing.assert_array_equal(found, expected)
    assert 20 < expected.sum() < 280


def test_reach_is_how_far_each_variable_moves_spheres(panda: RobotModel, problem_of: Callable) -> None:
    """Against what small changes of each variable do, by the general forward kinematics."""
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    model = path_model(panda, problem)
    around, spheres = model.around, robot_spheres(panda)
    some = np.stack([LEFT, HIGH])
    work = connect.work_of(7, len(model.tree.parent), len(around.radii), len(around.body_node))
    connect.set_reach(model.tree.arrays, around.arrays, some, work)

    def centers(q: Float64) -> Float64:
        whole = np.repeat(problem.start[None], len(q), axis=0)
        whole[:, :7] = q
        poses = forward_kinematics(panda, whole, panda.link_names)[:, spheres.link]
        moved: Float64 = (poses[..., :3, :3] @ spheres.centers[:, :, None])[..., 0] + poses[..., :3, 3]
        return moved

    expected = np.zeros(7)
    for i, change in enumerate(1e-6 * np.eye(7)):
        way = np.linalg.norm(centers(some + change) - centers(some - change), axis=2) / 2e-6
        expected[i] = (way + spheres.radii)[way > 1e-6].max()  # those that do not move have no part in it
    np.testing.assert_allclose(work.reach, expected / expected.max(), rtol=1e-6)
    assert work.reach[6] < 0.3


def test_same_seed_same_path(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    first, second, other = (found(panda, problem, RIGHT, seed=seed) for seed in (3, 3, 4))
    assert first is not None
    assert second is not None
    assert other is not None
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_any_of_several_ends(panda: RobotModel, problem_of: Callable) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    reached = []
    for seed in range(6):
        corners = found(panda, problem, RIGHT, HIGH, seed=seed)
        assert corners is not None
        reached.append([bool((corners[-1] == end).all()) for end in (RIGHT, HIGH)])
        assert sum(reached[-1]) == 1
    assert sum(row[1] for row in reached) > 0


def test_shortcuts_shorten(panda: RobotModel, problem_of: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(LEFT, RIGHT, scene=WALL)
    short = [found(panda, problem, RIGHT, seed=seed) for seed in range(5)]
    monkeypatch.setattr(module, "SHORTCUTS", 0)
    long = [found(panda, problem, RIGHT, seed=seed) for seed in range(5)]
    gained = [
        length(a) / length(b) for a, b in zip(short, long, strict=True) if a is not None and b is not None
    ]
    assert len(gained) == 5
    assert max(gained) <= 1.0 + 1e-12
    assert np.median(gained) < 0.8


def test_where_there_is_no_way_it_ends(panda: RobotModel, problem_of: Callable) -> None:
    # Walls in front and behind, so high that the arm cannot pass.
    cage = scene_of(
        (Box(2.0, 0.05, 3.0), (1.15, 0.0, 1.0)),
        (Box(2.0, 0.05, 3.0), (-1.15, 0.0, 1.0)),
        (Box(0.6, 0.6, 0.05), (0.0, 0.0, 0.75)),
    )
    asked = []
    assert (
        found(
            panda, problem_of(LEFT, RIGHT, scene=cage), RIGHT, looks=3_000, go_on=lambda: not asked.append(1)
        )
        is None
    )
    assert 3 <= len(asked) <= 40


def test_it_stops_when_told(panda: RobotModel, problem_of: Callable) -> None:
    assert found(panda, problem_of(LEFT, RIGHT, scene=WALL), RIGHT, go_on=lambda: False) is None
