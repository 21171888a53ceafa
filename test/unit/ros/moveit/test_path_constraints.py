"""Tolerances of orientations that hold all the way: what keeps ours keeps MoveIt's."""

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("kinopt_msgs.msg")

from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.kinematics.pose_errors import orientation_errors
from kinopt_ros.kinematics.se3 import so3_exp, so3_log
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.moveit.constraints import euler_xyz
from kinopt_ros.ros.moveit.path_constraints import broken, narrowed
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

GIVEN = [
    [0.1, 0.1, 2.0 * math.pi],
    [0.1, 0.1, math.pi],
    [0.02, 0.6, 4.0],
    [1.2, 1.4, 4.0],
    [3.0, 0.1, 4.0],
    [0.1, 0.2, 0.3],
    [0.4, 0.4, 0.4],
    [2.0, 0.2, 1.0],
    [4.0, 0.1, 0.1],
]


def kept(given: list[float], as_vector: bool, count: int = 20_000) -> np.ndarray:
    """Rotations that keep the narrowed tolerances, many of them at their ends."""
    rng = np.random.default_rng(0)
    ours = np.array(narrowed(given, as_vector))
    free = ~np.isfinite(ours)
    turns = np.where(free, rng.uniform(-math.pi, math.pi, (count, 3)), 0.0)
    ends = rng.choice([-1.0, 1.0, 0.0], (count, 3)) * rng.choice([1.0, 0.7], (count, 1))
    bounded = np.where(free, 0.0, ends * np.where(free, 0.0, ours))
    R = so3_exp(bounded) @ so3_exp(turns)
    errors = np.abs(orientation_errors(R, tuple(free.tolist())))
    return R[(errors <= np.where(free, math.inf, ours) + 1e-12).all(axis=1)]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("as_vector", [False, True])
def test_what_keeps_ours_keeps_moveits(given: list[float], as_vector: bool) -> None:
    R = kept(given, as_vector)
    assert len(R) > 50
    found = np.abs(so3_log(R) if as_vector else np.array([euler_xyz(one) for one in R]))
    inside = (found <= np.array(given) + 1e-9).all(axis=1)
    angles_of_a_cup = [t < math.pi for t in given] == [True, True, False] and not as_vector
    exact = angles_of_a_cup or (as_vector and max(given) < math.pi)
    # Where it is not exact, it holds for most: every motion is evaluated by MoveIt's measure once more.
    assert inside.all() if exact else inside.mean() > 0.8


def test_it_is_not_narrower_than_need_be() -> None:
    x, y, z = narrowed([0.1, 0.1, 2.0 * math.pi], False)
    assert 0.099 < x <= 0.1
    assert (y, z) == (0.1, math.inf)


def test_angles_of_which_two_are_free_are_refused() -> None:
    with pytest.raises(InvalidGoalError, match="ROTATION_VECTOR"):
        narrowed([4.0, 4.0, 0.3], False)
    assert narrowed([4.0, 4.0, 0.3], True)[:2] == [math.inf, math.inf]


def test_all_free() -> None:
    assert narrowed([4.0, 4.0, 4.0], False) == [math.inf] * 3


def test_a_slow_motion_is_looked_at_where_it_turns(moveit: Any) -> None:
    """One of ten minutes was looked at every 1.2 s only, and left a box between two looks."""
    from support.moveit_scenes import SceneWorld

    robot = load_robot("panda")
    joint = moveit.msg.JointConstraint(
        joint_name="panda_joint1", tolerance_above=0.1, tolerance_below=0.1, weight=1.0
    )
    time = np.array([0.0, 300.4, 300.5, 300.6, 600.0])
    position = np.zeros((5, 1))
    position[2] = 0.2
    still = np.zeros((5, 1))
    motion = JointTrajectory(("panda_joint1",), time, position, still, still)
    world, q = SceneWorld(robot), robot.default_q
    constraints = moveit.msg.Constraints(joint_constraints=[joint])
    assert "after 300.500 s" in broken(world.context, robot, constraints, motion, q, q)
    position = position.copy()
    position[2] = 0.05
    motion = JointTrajectory(("panda_joint1",), time, position, still, still)
    assert not broken(world.context, robot, constraints, motion, q, q)
