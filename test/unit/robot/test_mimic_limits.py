"""Limits of mimic joints that contradict their driver's, as published grippers have them."""

import math

import numpy as np
import pytest

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.mimic_limits import contradict, implied_range
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.verification.configuration import limit_violation

LIMIT = '<limit lower="{}" upper="{}" effort="1" velocity="2"/>'


def gripper(urdf, upper=0.8, tip=(0.0, 0.8757)):
    """One motor; knuckles that follow it, tips that turn back as far and repeat the motor's limits."""
    axis = '<axis xyz="1 0 0"/><origin xyz="0 {} 0.04"/>'
    same, back = (f'<mimic joint="finger" multiplier="{sign}"/>' for sign in (1, -1))
    return robot_from_urdf(
        urdf(
            "finger revolute palm left " + axis.format(0.03) + LIMIT.format(0, upper),
            "left_tip revolute left left_pad " + axis.format(0.01) + LIMIT.format(*tip) + back,
            "right revolute palm right " + axis.format(-0.03) + LIMIT.format(0, upper) + same,
            "right_tip revolute right right_pad " + axis.format(-0.01) + LIMIT.format(*tip) + back,
        )
    )


def test_a_gripper_that_repeats_the_limits_of_its_motor_moves(urdf):
    """As do Robotiq's 2F-85, Arg2F and C2, and both grippers of the PR2."""
    robot = gripper(urdf)
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (0.0, 0.8)
    assert [warning.split(" mimics")[0] for warning in robot.warnings] == [
        "joint 'left_tip'",
        "joint 'right_tip'",
    ]
    assert "own limits [0, 0.8757] leave only [0, 0] of the limits [0, 0.8] of 'finger'" in robot.warnings[0]
    assert "'left_tip' moves in [-0.8, 0]" in robot.warnings[0]


def test_the_verification_takes_the_limits_that_the_driver_implies(urdf):
    robot = gripper(urdf)
    q = np.array([[0.0], [0.8], [0.81], [-0.01]])
    assert limit_violation(robot, q, np.array([0])) == pytest.approx([0.0, 0.0, 0.01, 0.01])
    wanted = forward_kinematics(robot, np.array([[0.7]]), ("left_pad",))[0, 0]
    solver = create_solver("cpu", robot)
    result = solver.solve_ik(ik_problem(robot, wanted, tip_link="left_pad", position_tolerance=1e-6))
    assert result.success.all()
    assert result.q[0, 0, 0] == pytest.approx(0.7, abs=1e-5)


def test_limits_that_were_not_used_stay_unused_with_joint_limits(urdf):
    robot = gripper(urdf)
    tighter = apply_joint_limits(robot, {"finger": {"min_position": 0.1, "max_position": 0.7}})
    assert (tighter.limits.lower[0], tighter.limits.upper[0]) == (0.1, 0.7)
    given = apply_joint_limits(robot, {"left_tip": {"min_position": -0.5, "max_position": 0.0}})
    assert (given.limits.lower[0], given.limits.upper[0]) == (0.0, 0.5)


def test_limits_that_narrow_a_driver_are_believed(urdf):
    robot = gripper(urdf, tip=(-0.6, 0.0))
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (0.0, 0.6)
    assert robot.warnings == ()


def test_a_driver_with_limits_of_no_meaning_is_narrowed_however_much(urdf):
    """The limits of its mimic joint are then the only ones that mean something."""
    robot = gripper(urdf, upper=1e6, tip=(-0.6, 0.0))
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (0.0, 0.6)


def test_one_mistake_does_not_cost_the_limits_of_others(urdf):
    tip = '<mimic joint="d" multiplier="-1"/>' + LIMIT.format(0, 0.5)
    sound = '<mimic joint="d"/>' + LIMIT.format(0, 0.7)
    robot = robot_from_urdf(
        urdf("d revolute a b " + LIMIT.format(0, 1), f"m revolute b c {tip}", f"n revolute c e {sound}")
    )
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (0.0, 0.7)
    assert len(robot.warnings) == 1


@pytest.mark.parametrize(
    ("mimic", "words"),
    [
        ('offset="5"', "leave nothing of the limits"),
        ('multiplier="0" offset="5"', "stays at 5, outside its own limits [-1, 1]"),
    ],
)
def test_a_joint_that_can_never_keep_its_limits_is_loaded_without(urdf, mimic, words):
    robot = robot_from_urdf(urdf("d revolute a b", f'm revolute b c <mimic joint="d" {mimic}/>'))
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (-1.0, 1.0)
    assert words in robot.warnings[-1]


@pytest.mark.parametrize(
    ("driver", "own", "drive", "wrong"),
    [
        ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), False),  # nothing to lose
        ((0.0, 1.0), (0.5, 0.5), (1.0, 0.0), True),  # would freeze it
        ((-math.inf, math.inf), (-1.0, 1.0), (2.0, 0.0), False),
        ((-math.inf, math.inf), (0.0, 0.0), (1.0, 0.0), True),
        ((-math.inf, math.inf), (-math.inf, math.inf), (-1.0, 0.0), False),  # nothing is lost
        ((-math.inf, math.inf), (-math.inf, 0.0), (1.0, 0.0), False),  # there is no end to what is left
        ((-math.inf, 0.0), (0.0, math.inf), (1.0, 0.0), True),
        ((0.0, 1.0), (0.96, 2.0), (1.0, 0.0), True),
        ((0.0, 1.0), (0.9, 2.0), (1.0, 0.0), False),
        ((0.0, 1.0), (0.0, 1.0), (1e-300, 0.0), False),
    ],
)
def test_what_contradicts(driver, own, drive, wrong):
    assert contradict(driver, implied_range(own, *drive)) is wrong


def test_joints_without_limits_that_follow_each_other_are_no_mistake(urdf):
    speed = '<limit velocity="1" effort="1"/>'
    robot = robot_from_urdf(
        urdf(f"d continuous a b {speed}", f'm continuous b c <mimic joint="d" multiplier="-1"/>{speed}')
    )
    assert robot.warnings == ()
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (-math.inf, math.inf)
