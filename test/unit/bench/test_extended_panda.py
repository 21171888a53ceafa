"""Pandas with more joints."""

import numpy as np
import pytest

from kinopt_ros.bench.extended_panda import extended_panda
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf


def test_seven_joints_are_the_panda() -> None:
    panda, again = load_robot("panda"), robot_from_urdf(extended_panda(7))
    q = random_configurations(panda, 5, 0)
    T = forward_kinematics(panda, q, links=("panda_link7",))
    np.testing.assert_allclose(forward_kinematics(again, q[:, :7], links=("panda_link7",)), T, atol=1e-12)


def test_more_joints_are_pandas_one_on_the_other() -> None:
    robot, panda = robot_from_urdf(extended_panda(12)), robot_from_urdf(extended_panda(7))
    assert robot.nq == 12
    q = random_configurations(robot, 5, 1)
    T = forward_kinematics(robot, q, links=("panda_link12",))[:, 0]
    lower = forward_kinematics(panda, q[:, :7], links=("panda_link7",))[:, 0]
    rest = np.concatenate([q[:, 7:], np.zeros((5, 2))], axis=1)
    upper = forward_kinematics(panda, rest, links=("panda_link5",))[:, 0]
    np.testing.assert_allclose(T, lower @ upper, atol=1e-12)
    np.testing.assert_array_equal(robot.limits.lower[7:], panda.limits.lower[:5])


@pytest.mark.parametrize("joints", [0, 6, 701])
def test_other_numbers_are_refused(joints: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"is {joints}"):
        extended_panda(joints)
