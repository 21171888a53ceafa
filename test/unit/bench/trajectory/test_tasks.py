"""Problems: the same for the same seed, with free ends, most of them with something in the way."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("coal")
from kinopt_ros.bench.trajectory import tasks
from kinopt_ros.bench.trajectory.scenes import FAMILIES
from kinopt_ros.bench.trajectory.tasks import TaskMaker
from kinopt_ros.errors import InvalidRequestError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.robot.sources import robot_names
from kinopt_ros.verification.collision import check_collisions
from kinopt_ros.verification.sweep import free_segment


@pytest.fixture(scope="module")
def maker():
    return TaskMaker("panda")


@pytest.fixture(scope="module")
def made(maker):
    return {family: list(maker.tasks(family, 8, 3)) for family in FAMILIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_ends_are_free_and_differ(maker, made, family):
    robot = maker.robot
    for number, task in enumerate(made[family]):
        assert (task.family, task.number) == (family, number)
        ends = np.stack([task.start, task.goal])
        assert check_collisions(robot, task.scene, ends, contacts=False).free.all()
        assert (ends >= robot.limits.lower).all()
        assert (ends <= robot.limits.upper).all()
        assert np.abs(task.goal - task.start).max() > 0.3
        still = np.setdiff1d(np.arange(robot.nq), maker.variables)
        np.testing.assert_array_equal(ends[:, still], np.repeat(robot.default_q[None, still], 2, axis=0))
        base, tip = forward_kinematics(robot, task.goal[None], (maker.arm.base, maker.arm.tip))[0]
        np.testing.assert_allclose(task.T_base_tip, inverse(base) @ tip, atol=1e-12)


def test_most_straight_ways_are_blocked_and_half_the_goals_are_poses(maker, made):
    everything = [task for found in made.values() for task in found]
    for task in everything:
        assert task.straight_collides != free_segment(maker.robot, task.scene, task.start, task.goal)
    assert np.mean([task.straight_collides for task in everything]) >= 2.0 / 3.0
    assert np.mean([task.is_pose for task in everything]) == 0.5
    assert len({task.digest for task in everything}) == len(everything)


def test_a_longer_run_begins_with_a_shorter_one_and_another_seed_differs(maker, made):
    again = [task.digest for task in maker.tasks("table", 3, 3)]
    assert again == [task.digest for task in made["table"][:3]]
    assert next(iter(maker.tasks("table", 1, 4))).digest != again[0]


def test_walls_and_pillars_take_turns(made):
    sizes = [len(task.scene.objects) for task in made["wall"]]
    assert min(sizes) == 1
    assert max(sizes) >= 2


def test_scenes_without_room_and_robots_that_are_missing_are_named(maker, monkeypatch):
    monkeypatch.setattr(tasks, "MOST_SCENES", 1)
    monkeypatch.setattr(maker, "_some_free", lambda scene, q: q[:0])
    with pytest.raises(InvalidRequestError, match="hardly any configuration is free"):
        list(maker.tasks("wall", 1, 0))
    monkeypatch.setattr(tasks, "robot_names", lambda: ())
    with pytest.raises(UnsupportedFeatureError, match="example-robot-data"):
        TaskMaker("ur5")


@pytest.mark.skipif("ur5" not in robot_names(), reason="example-robot-data is not installed")
def test_other_arms_have_problems_too():
    [task] = TaskMaker("ur5").tasks("wall", 1, 0)
    assert task.robot == "ur5"
    assert task.straight_collides
