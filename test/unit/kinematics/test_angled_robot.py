"""Robots whose floating joints turn by angles, beside themselves."""

import gc
from weakref import ref

import numpy as np
import pytest

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.kinematics.angled_robot import angled_robot
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.quaternion_products import (
    angles_of_matrix,
    conjugate,
    product,
    quaternion_of_angles,
)
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import normalized, quaternion_to_matrix, so3_exp
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf

URDF = """<robot name="two"><link name="a"/>
<link name="b"><collision><geometry><box size="0.1 0.2 0.3"/></geometry></collision></link><link name="c"/>
<link name="d"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="one" type="floating"><parent link="a"/><child link="b"/>
<origin xyz="0.3 0 0.1" rpy="0.2 0.4 -0.3"/></joint>
<joint name="turn" type="revolute"><parent link="b"/><child link="c"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
<joint name="two" type="floating"><parent link="c"/><child link="d"/><origin xyz="0.1 0.2 0.3"/></joint></robot>"""


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return robot_from_urdf(URDF)


def rotations(axes: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Rx(a) Ry(b) Rz(c), by rotation vectors."""
    x, y, z = (so3_exp(angles[:, k : k + 1] * axes[k]) for k in range(3))
    return x @ y @ z


def test_quaternions_of_angles_are_products_of_rotations() -> None:
    rng = np.random.default_rng(1)
    angles = rng.uniform(-7.0, 7.0, (500, 3))
    R = rotations(np.eye(3), angles)
    q = quaternion_of_angles(angles)
    np.testing.assert_allclose(quaternion_to_matrix(q), R, atol=1e-14)
    other = normalized(rng.normal(size=(500, 4)))
    np.testing.assert_allclose(
        quaternion_to_matrix(product(q, other)), R @ quaternion_to_matrix(other), atol=1e-14
    )
    np.testing.assert_allclose(product(conjugate(q), q), np.tile([1.0, 0.0, 0.0, 0.0], (500, 1)), atol=1e-14)


@pytest.mark.parametrize("b", [None, np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-10, np.pi / 2 - 1e-6])
def test_angles_are_those_near_to_others(b: float | None) -> None:
    rng = np.random.default_rng(2)
    angles = rng.uniform(-7.0, 7.0, (500, 3))
    if b is not None:
        angles[:, 1] = b
    R = rotations(np.eye(3), angles)
    near = angles + rng.uniform(-0.2, 0.2, (500, 3))
    found = angles_of_matrix(R, near)
    np.testing.assert_allclose(rotations(np.eye(3), found), R, atol=3e-9)
    if b is None:
        np.testing.assert_allclose(found, angles, atol=1e-7)
    else:
        assert np.abs(found - near).max() <= 1.0  # no turn more than need be


def test_both_robots_have_all_links_at_the_same_poses(robot: RobotModel) -> None:
    angled, links = angled_robot(robot), robot.link_names
    q, other = random_configurations(robot, 100, 1), random_configurations(robot, 100, 2)
    after = normalized(np.random.default_rng(3).normal(size=(2, 4)))
    frames = angled.with_frames(q, after)
    here = forward_kinematics(robot, q, links=links)
    np.testing.assert_allclose(forward_kinematics(angled.robot, frames, links=links), here, atol=1e-12)
    for joint in angled.joints:
        assert (frames[:, joint.first : joint.first + 3] == 0.0).all()
    full = angled.from_own(other, frames)
    there = forward_kinematics(robot, other, links=links)
    np.testing.assert_allclose(forward_kinematics(angled.robot, full, links=links), there, atol=1e-12)
    back = angled.to_own(full)
    np.testing.assert_allclose(forward_kinematics(robot, back, links=links), there, atol=1e-12)
    np.testing.assert_array_equal(back[:, [0, 1, 2, 7, 8, 9, 10]], other[:, [0, 1, 2, 7, 8, 9, 10]])


def test_quaternions_of_any_length_count_and_without_length_the_angles_stay(robot: RobotModel) -> None:
    angled = angled_robot(robot)
    q, other = random_configurations(robot, 2, 1)
    frames = angled.with_frames(q)
    longer = other.copy()
    longer[3:7] *= 7.0
    np.testing.assert_allclose(angled.from_own(longer, frames), angled.from_own(other, frames), atol=1e-12)
    longer[3:7] = 0.0
    assert (angled.from_own(longer, frames)[angled.joints[0].first :][:3] == 0.0).all()


def test_variables_and_limits_follow_the_robot(robot: RobotModel) -> None:
    limited = apply_joint_limits(
        robot, {"one": {"max_velocity": 0.7}, "one/rot_y": {"max_velocity": 0.2, "max_jerk": 3.0}}
    )
    angled = angled_robot(limited)
    names = angled.robot.variable_names
    assert [names[i] for i in angled.variables] == list(limited.variable_names)
    chosen = angled.variables_from_own(np.array([7, 0, 3, 4, 5, 6, 2]))
    assert [names[i] for i in chosen] == [
        "turn",
        "one/trans_x",
        "one/turn_x",
        "one/turn_y",
        "one/turn_z",
        "one/trans_z",
    ]
    limits = angled.robot.limits
    turning = [angled.robot.variable_index[f"one/turn_{axis}"] for axis in "xyz"]
    assert (limits.velocity[turning] == 0.2).all()
    assert (limits.jerk[turning] == 3.0).all()
    assert limits.velocity[angled.variables[0]] == 0.7
    assert np.isinf(limits.upper[turning]).all()
    assert angled_robot(limited) is angled


def test_both_robots_check_the_same_pairs_of_links(robot: RobotModel) -> None:
    pytest.importorskip("coal")
    from kinopt_ros.collision.pairs import checked_pairs

    assert checked_pairs(angled_robot(robot).robot) is checked_pairs(robot)
    assert checked_pairs(robot).checked == (("b", "d"),)


def test_the_other_robot_does_not_keep_the_robot() -> None:
    gc.disable()
    try:
        robot = robot_from_urdf(URDF)
        weak, other = ref(robot), angled_robot(robot).robot
        del robot
        assert weak() is None
        assert other.alike is not None
        assert other.alike() is None
    finally:
        gc.enable()


def test_names_that_are_taken_are_refused() -> None:
    text = URDF.replace('name="turn"', 'name="one/turn_x"')
    with pytest.raises(RobotDescriptionError, match="one/turn_x already"):
        angled_robot(robot_from_urdf(text))
