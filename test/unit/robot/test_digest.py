"""Robots that move differently have different digests; the same file twice has one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from kinopt_ros.robot.digest import kinematics_digest
from kinopt_ros.robot.inertials import Inertial
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.sources import load_robot

PANDA = load_robot("panda")


def joint_with(**values: object) -> Callable[[RobotModel], RobotModel]:
    def changed(robot: RobotModel) -> RobotModel:
        return replace(
            robot, joints=(*robot.joints[:3], replace(robot.joints[3], **values), *robot.joints[4:])
        )

    return changed


def test_two_of_one_file_are_the_same() -> None:
    assert kinematics_digest(load_robot("panda")) == kinematics_digest(PANDA)
    assert kinematics_digest(replace(PANDA, groups={}, warnings=("something",))) == kinematics_digest(PANDA)
    assert kinematics_digest(load_robot("ur5")) != kinematics_digest(PANDA)


@pytest.mark.parametrize(
    "changed",
    [
        joint_with(T_parent_joint=np.eye(4)),
        joint_with(axis=np.array([0.0, 1.0, 0.0])),
        joint_with(type=JointType.PRISMATIC),
        joint_with(multiplier=0.5),
        joint_with(offset=1e-9),
        joint_with(parent_link="panda_link0"),
        lambda robot: replace(robot, default_q=robot.default_q + 1e-9),
        lambda robot: replace(robot, limits=replace(robot.limits, upper=robot.limits.upper + 1e-9)),
        lambda robot: replace(robot, limits=replace(robot.limits, jerk=robot.limits.jerk + 1.0)),
        lambda robot: replace(robot, inertials={"panda_link3": Inertial(1.0, np.zeros(3))}),
        lambda robot: replace(robot, variable_names=("other", *robot.variable_names[1:])),
    ],
)
def test_what_moves_otherwise_has_another(changed: Callable[[RobotModel], RobotModel]) -> None:
    other = changed(PANDA)
    assert kinematics_digest(other) != kinematics_digest(PANDA)
    assert kinematics_digest(changed(PANDA)) == kinematics_digest(other)
