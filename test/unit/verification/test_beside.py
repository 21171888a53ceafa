"""The check of two motions that run beside each other, whatever their timing."""

import numpy as np
import pytest

from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.verification import beside
from kinopt_ros.verification.beside import Way, first_meeting
from kinopt_ros.verification.collision import first_in_collision

pytest.importorskip("coal")

LEFT, RIGHT = ("left1", "left2"), ("right1", "right2")
REACH = 0.5
"""Half the distance of the two arms, m."""


def _arm(side: str, y: float) -> str:
    limit = '<limit lower="-3" upper="3" effort="1" velocity="2"/>'
    link = '<collision><origin xyz="0.2 0 0"/><geometry><box size="0.4 0.06 0.06"/></geometry></collision>'
    return (
        f'<link name="{side}_upper">{link}</link><link name="{side}_fore">{link}</link>'
        f'<joint name="{side}1" type="revolute"><parent link="base"/><child link="{side}_upper"/><axis xyz="0 0 1"/>'
        f'<origin xyz="0 {y} 0.2"/>{limit}</joint>'
        f'<joint name="{side}2" type="revolute"><parent link="{side}_upper"/><child link="{side}_fore"/>'
        f'<axis xyz="0 0 1"/><origin xyz="0.45 0 0"/>{limit}</joint>'
    )


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return robot_from_urdf(
        f'<robot name="two"><link name="base"/>{_arm("left", REACH)}{_arm("right", -REACH)}</robot>'
    )


def way(robot: RobotModel, names: tuple[str, ...], start: list[float], goal: list[float]) -> Way:
    variables = np.array([robot.variable_index[name] for name in names])
    q0, q1 = robot.default_q.copy(), robot.default_q.copy()
    q0[variables], q1[variables] = start, goal
    made = plan_joint_motion(robot, names, q0, np.zeros(robot.nq), q1, 0.5, 0.5).trajectory
    return Way(variables, made)


def meeting(robot: RobotModel, one: Way, other: Way, clearance: float = 0.0) -> beside.Meeting | None:
    return first_meeting(robot, Scene(), robot.default_q, one, other, clearance)


def samples(robot: RobotModel, one: Way, other: Way, n: int = 20) -> np.ndarray:
    """Configurations of every pair of times."""
    rows = [evaluate(k.trajectory, np.linspace(0.0, k.trajectory.time[-1], n))[0] for k in (one, other)]
    q = np.repeat(robot.default_q[None], n * n, axis=0)
    q[:, one.variables], q[:, other.variables] = np.repeat(rows[0], n, axis=0), np.tile(rows[1], (n, 1))
    return q


def test_ways_that_cross_at_different_times_are_not_free(robot: RobotModel) -> None:
    """The left arm has left the middle before the right one comes, if both are in time."""
    left = way(robot, LEFT, [-1.2, 0.0], [0.5, 0.0])
    right = way(robot, RIGHT, [-0.5, 0.0], [1.2, 0.0])
    found = meeting(robot, left, right)
    assert found is not None
    assert {found.a.split("_")[0], found.b.split("_")[0]} == {"left", "right"}
    assert found.distance < 1e-2
    assert meeting(robot, right, left) is not None


def test_arms_that_stay_on_their_sides_are_free(robot: RobotModel) -> None:
    left = way(robot, LEFT, [0.1, 0.3], [0.9, -0.3])
    right = way(robot, RIGHT, [-0.1, 0.4], [-0.9, 0.2])
    assert meeting(robot, left, right) is None
    assert meeting(robot, right, left, 0.05) is None


def test_no_pair_of_times_in_collision_is_missed_and_few_are_refused_for_nothing(robot: RobotModel) -> None:
    rng = np.random.default_rng(3)
    outcomes = {True: 0, False: 0}
    for _ in range(60):
        ends = [rng.uniform(-1.0, 1.0, 2).tolist() for _ in range(4)]
        one, other = way(robot, LEFT, ends[0], ends[1]), way(robot, RIGHT, ends[2], ends[3])
        q = samples(robot, one, other)
        found = meeting(robot, one, other) is not None
        touches = first_in_collision(robot, Scene(), q, 0.0) is not None
        # Samples do not see everything: what they take for nearly free may be a contact.
        if touches:
            assert found
        elif found:
            assert first_in_collision(robot, Scene(), q, 0.05) is not None
        outcomes[found] += 1
    assert min(outcomes.values()) > 5


def test_a_joint_behind_one_that_moves_and_an_obstacle(robot: RobotModel) -> None:
    """Where the forearm goes depends on both motions; each of them alone is free."""
    T = np.eye(4)
    T[:3, 3] = 0.8, REACH + 0.25, 0.2
    box = SceneObject("box", (PlacedShape(Box(0.1, 0.1, 0.1), np.eye(4)),), T)
    scene = Scene(objects={"box": box})
    one = way(robot, ("left1",), [-0.3], [0.0])
    other = way(robot, ("left2",), [0.0], [0.9])
    found = first_meeting(robot, scene, robot.default_q, one, other)
    assert found is not None
    assert {found.a, found.b} == {"left_fore", "box"}
    assert first_meeting(robot, Scene(), robot.default_q, one, other) is None


def test_what_takes_too_long_counts_as_a_contact(robot: RobotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    left = way(robot, LEFT, [-0.4, 0.0], [0.9, 0.0])
    right = way(robot, RIGHT, [0.4, 0.0], [-0.9, 0.0])
    assert meeting(robot, left, right, 0.25) is None
    monkeypatch.setattr(beside, "MOST_LOOKS", 1)
    assert meeting(robot, left, right, 0.25) is not None


def test_motions_of_the_same_joint(robot: RobotModel) -> None:
    one = way(robot, LEFT, [0.1, 0.3], [0.9, -0.3])
    with pytest.raises(ValueError, match="both motions"):
        meeting(robot, one, one)
