"""MoveIt's joint_limits on top of a URDF."""

import numpy as np
import pytest

from kinopt_ros.errors import RobotDescriptionError, UnknownJointError
from kinopt_ros.robot.limits import DEFAULT_ACCELERATION, apply_joint_limits
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.urdf import robot_from_urdf


@pytest.fixture
def robot(urdf):
    """A driver with a mimic, a continuous joint, a planar base and a fixed tip."""
    return robot_from_urdf(
        urdf(
            'w planar world base <axis xyz="0 0 1"/>',
            "d revolute base a",
            'm revolute a b <mimic joint="d" multiplier="-2"/>'
            '<limit lower="-4" upper="4" effort="1" velocity="100"/>',
            "c continuous b e",
            "x fixed e tip",
        )
    )


def limit_of(robot, name):
    i = robot.variable_index[name]
    return robot.limits.lower[i], robot.limits.upper[i]


def test_positions_and_rates(robot):
    made = apply_joint_limits(
        robot,
        {
            "d": {
                "has_position_limits": True,
                "min_position": -3,
                "max_position": 1.5,
                "has_velocity_limits": True,
                "max_velocity": 5.0,
                "has_acceleration_limits": True,
                "max_acceleration": 6.0,
                "max_jerk": 7.0,
            },
            "w/x": {"min_position": -1.0, "max_position": 2.0, "max_velocity": 0.5},
            "w": {"max_velocity": 0.7},
        },
    )
    i = made.variable_index["d"]
    assert limit_of(made, "d") == (-2, 1.5)  # the mimic's own limits are 4
    assert (made.limits.velocity[i], made.limits.acceleration[i], made.limits.jerk[i]) == (5, 6, 7)
    np.testing.assert_array_equal(made.limits.velocity[:3], [0.5, 0.7, 0.7])
    assert limit_of(made, "w/x") == (-1, 2)
    assert limit_of(robot, "d") == (-1, 1)
    again = apply_joint_limits(made, {})
    np.testing.assert_array_equal(again.limits.lower, made.limits.lower)
    np.testing.assert_array_equal(again.limits.velocity, made.limits.velocity)


def test_limits_of_a_mimic_narrow_its_driver(robot):
    made = apply_joint_limits(robot, {"m": {"min_position": -0.5, "max_position": 1.0, "max_velocity": 1.0}})
    assert limit_of(made, "d") == (-0.5, 0.25)
    assert made.limits.velocity[made.variable_index["d"]] == 0.5


def test_continuous_joint_becomes_bounded(robot):
    made = apply_joint_limits(robot, {"c": {"min_position": 1, "max_position": 3}})
    assert made.joint("c").type is JointType.REVOLUTE
    assert made.default_q[made.variable_index["c"]] == 2


def test_false_never_loosens(robot):
    made = apply_joint_limits(
        robot, {"d": {"has_position_limits": False, "max_position": 9.0, "has_velocity_limits": False}}
    )
    np.testing.assert_array_equal(made.limits.upper, robot.limits.upper)
    np.testing.assert_array_equal(made.limits.velocity, robot.limits.velocity)


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({"max_acceleration": 3.0, "max_deceleration": 2.0}, 2.0),
        ({"max_acceleration": 2.0, "max_deceleration": -3.0}, 2.0),  # as MoveIt's Pilz planner wants it
        ({"max_deceleration": 0.5}, 0.5),
        ({"max_deceleration": 7.0}, DEFAULT_ACCELERATION),
        ({"max_acceleration": 3.0, "max_deceleration": 2.0, "has_deceleration_limits": False}, 3.0),
    ],
)
@pytest.mark.parametrize("name", ["d", "w/x"])
def test_deceleration_limits_hold(robot, given, limit, name):
    made = apply_joint_limits(robot, {name: given})
    assert made.limits.acceleration[made.variable_index[name]] == limit


def test_unused_keys_are_said(robot):
    made = apply_joint_limits(robot, {"d": {"max_effort": 3.0}, "x": {"max_velocity": 1.0}})
    assert any("max_effort of 'd'" in warning for warning in made.warnings)
    assert any("fixed joint 'x'" in warning for warning in made.warnings)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        ({"d": {"max_velocity": float("nan")}}, "max_velocity of 'd'.*finite"),
        ({"d": {"max_velocity": -1.0}}, "max_velocity of 'd'.*positive"),
        ({"d": {"max_velocity": 0}}, "positive"),
        ({"d": {"max_acceleration": "fast"}}, "finite number, not 'fast'"),
        ({"d": {"max_deceleration": 0.0}}, "must not be 0"),
        ({"d": {"max_jerk": True}}, "finite number, not True"),
        ({"d": {"min_position": 2.0}}, "'d' with lower limit 2 above upper limit 1"),
        ({"d": {"has_velocity_limits": True}}, "max_velocity is missing"),
        ({"d": {"has_velocity_limits": "yes"}}, "true or false"),
        ({"d": {"max_velocty": 1.0}}, "unknown key 'max_velocty'"),
        ({"d": 3.0}, "must be a mapping"),
        ({"w": {"min_position": 0.0}}, "w/x, w/y, w/theta"),
        ({"w/x": {"min_position": 1.0, "max_position": 0.0}}, "'w/x' with its lower limit above"),
        ({"m": {"min_position": 3.0, "max_position": 4.0}}, "'m' mimics 'd', and no value"),
    ],
)
def test_illegal_limits_are_refused(robot, limits, sentence):
    with pytest.raises(RobotDescriptionError, match=sentence):
        apply_joint_limits(robot, limits)


def test_unknown_joint(robot):
    with pytest.raises(UnknownJointError, match="unknown joint 'e'"):
        apply_joint_limits(robot, {"e": {}})


def test_a_driver_that_joint_limits_leave_hardly_anything_is_told(robot):
    """They count, other than such limits of a URDF: whoever gives them means them."""
    made = apply_joint_limits(robot, {"m": {"min_position": 1.96, "max_position": 4.0}})
    assert limit_of(made, "d") == pytest.approx((-1.0, -0.98))
    assert "leave it only [-1, -0.98] of [-1, 1]" in made.warnings[-1]
    assert len(apply_joint_limits(robot, {"m": {"min_position": -1.0}}).warnings) == len(robot.warnings)
