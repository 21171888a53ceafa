"""Which controllers of a ros2_controllers.yaml begin what replaces a motion where the robot is measured."""

from typing import Any

import pytest

from kinopt_ros.robot.ros2_controllers import begin_as_measured

KIND = "joint_trajectory_controller/JointTrajectoryController"


def given(kind: str = KIND, **parameters: Any) -> dict[str, Any]:
    return {
        "controller_manager": {"ros__parameters": {"update_rate": 100, "arm": {"type": kind}}},
        "/arm": {"ros__parameters": {"joints": ["a"], **parameters}},
    }


@pytest.mark.parametrize(
    ("file", "names"),
    [
        (given(), ["arm"]),
        (given("ur_controllers/ScaledJointTrajectoryController"), ["arm"]),
        (given(interpolate_from_desired_state=True), []),
        (given(open_loop_control=True), []),
        (given(interpolate_from_desired_state=False), ["arm"]),
        (given(open_loop_control="true"), ["arm"]),  # a text, which ROS refuses
        (given("joint_state_broadcaster/JointStateBroadcaster"), []),
        ({"controller_manager": {"ros__parameters": {"arm": {"type": KIND}}}}, ["arm"]),
        ({"controller_manager": None, "arm": 3}, []),
        ({"controller_manager": {"ros__parameters": {"arm": 3, "hand": {"type": 4}}}}, []),
        ({}, []),
    ],
)
def test_who_sets_back(file: dict[str, Any], names: list[str]) -> None:
    assert list(begin_as_measured(file)) == names
