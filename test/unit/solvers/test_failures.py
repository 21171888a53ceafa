"""Failures say why: distance, the joint at its limit, the axis that would have to be free."""

import numpy as np
import pytest

from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status


def test_out_of_reach_says_how_far() -> None:
    panda = load_robot("panda")
    solver = create_solver("cpu", panda)
    T = np.eye(4)
    T[:3, 3] = 2.0, 0.0, 0.333
    result = solver.solve_ik(ik_problem(panda, T))
    assert result.status[0] == Status.NO_IK_SOLUTION
    assert "out of reach" in result.messages[0]
    assert "2.028 m" in result.messages[0]
    # The nearest pose that was found points at the target.
    reached = result.attempt_pose[0, 0, :3, 3]
    assert 0.6 < reached[0] < 1.1
    assert result.attempt_position_error[0] == pytest.approx(np.linalg.norm(reached - T[:3, 3]))


def test_a_joint_at_its_limit_is_named() -> None:
    robot = seven_revolute()
    q = robot.default_q.copy()
    q[3] = robot.limits.upper[3] + 0.3
    T_base = forward_kinematics(robot, q, links=("l3", "l4"))
    solver = create_solver("cpu", robot)
    result = solver.solve_ik(ik_problem(robot, inverse(T_base[0]) @ T_base[1], base_link="l3", tip_link="l4"))
    assert result.status[0] == Status.NO_IK_SOLUTION
    assert "j4 at the upper limit" in result.messages[0]
