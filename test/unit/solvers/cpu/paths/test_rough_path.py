"""Paths found by growing trees, judged by the exact check on the shapes."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from support.arm_scenes import scene_of

from kinopt_ros.array import Float64
from kinopt_ros.geometry.shapes import Box
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.paths import rough_path as module
from kinopt_ros.solvers.cpu.paths.connect import RESOLUTION
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
