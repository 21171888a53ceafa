"""Parameters as a MoveIt configuration has them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.ros_requests import READY, StartNode, pose

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.robot import kinematics_parameters

pytestmark = pytest.mark.timeout(600)
ARM = "robot_description_kinematics.panda_arm."
GIVEN = {
    f"{ARM}kinematics_solver": "kdl_kinematics_plugin/KDLKinematicsPlugin",
    f"{ARM}kinematics_solver_search_resolution": 0.005,
    f"{ARM}kinematics_solver_timeout": 2,
    f"{ARM}position_only_ik": True,
    "robot_description_kinematics.leg.kinematics_solver_timeout": 0.1,
}


@pytest.fixture(scope="module")
def node(
    moveit: Any, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> tuple[NodeProcess, Client]:
    return start_shared_node("kinopt_configured", {**panda_parameters, **GIVEN})


def test_kinematics_yaml_counts_for_compute_ik(node: tuple[NodeProcess, Client], moveit: Any) -> None:
    process, client = node
    client.pretend_robot(READY)
    service = client.node.create_client(moveit.srv.GetPositionIK, "compute_ik")
    request = moveit.srv.GetPositionIK.Request()
    request.ik_request.group_name = "panda_arm"
    request.ik_request.robot_state.is_diff = True
    request.ik_request.pose_stamped.header.frame_id = "panda_link0"
    request.ik_request.pose_stamped.pose = pose(0.0, 0.0, 1.1, (0.0, 1.0, 0.0, 0.0))  # out of reach downwards
    assert service.wait_for_service(60.0)
    for _ in range(20):
        future = service.call_async(request)
        if client.spin_until(future.done, 5.0) and future.result().error_code.val == 1:
            break
    assert future.result().error_code.val == future.result().error_code.SUCCESS
    log = process.log_text()
    assert "kinematics_solver, kinematics_solver_search_resolution are not used" in log
    assert "robot_description_kinematics names no group of the robot: leg" in log


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"{ARM}kinematics_solver_timeout", -1.0),
        (f"{ARM}kinematics_solver_timeout", "long"),
        (f"{ARM}position_only_ik", "yes"),
    ],
)
def test_what_it_cannot_say(name: str, value: object) -> None:

    node: Any = SimpleNamespace(
        _parameter_overrides={name: SimpleNamespace(value=value)},
        declare_parameter=lambda *given, **options: None,
    )
    with pytest.raises(InvalidRequestError, match=name.rpartition(".")[2]):
        kinematics_parameters.declare(node)
