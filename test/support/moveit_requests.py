"""Requests of MoveIt's services, as MoveIt's clients make them; ``moveit`` has the packages msg and srv."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from geometry_msgs.msg import Pose
from support.ros_requests import READY

from kinopt_ros.ros.client.client import Client

TIP = "panda_link8"
TOUCHES = {"panda_joint2": 1.7, "panda_joint4": -3.0, "panda_joint6": 0.5}
"""Joint values by which the Panda touches itself."""
AWAY = {**READY, "panda_joint1": 0.5}
SERVICES = (
    "compute_ik",
    "compute_fk",
    "check_state_validity",
    "compute_cartesian_path",
    "plan_kinematic_path",
)
Call = Callable[[str, Any], Any]
"""Sends a request to a service by name; returns the answer."""


def caller(client: Client, moveit: Any, namespace: str = "") -> Call:
    """Calls MoveIt's services; every one has answered before."""
    types = {
        "compute_ik": moveit.srv.GetPositionIK,
        "compute_fk": moveit.srv.GetPositionFK,
        "check_state_validity": moveit.srv.GetStateValidity,
        "compute_cartesian_path": moveit.srv.GetCartesianPath,
        "plan_kinematic_path": moveit.srv.GetMotionPlan,
    }
    clients = {name: client.node.create_client(types[name], f"{namespace}{name}") for name in SERVICES}

    def call(name: str, request: Any, timeout: float = 120.0) -> Any:
        end = time.monotonic() + timeout
        while True:
            future = clients[name].call_async(request)
            assert client.spin_until(future.done, timeout), f"{name} does not answer"
            # What is compiled once per machine is being prepared beside the tests.
            if "NOT_READY" not in repr(future.result()) or time.monotonic() > end:
                return future.result()
            client.spin(1.0)

    for name in SERVICES:
        assert client.spin_until(clients[name].service_is_ready, 60.0), f"{name} is not there"
        for _ in range(30):  # answers are lost until the node has found the client
            if client.spin_until(clients[name].call_async(types[name].Request()).done, 2.0):
                break
    return call


def constraints(moveit: Any, **fields: Any) -> Any:
    """moveit_msgs/Constraints of some fields."""
    return moveit.msg.Constraints(**fields)


def joint_goal(moveit: Any, **positions: float) -> Any:
    """A goal of joint values, AWAY by default."""
    return constraints(
        moveit,
        joint_constraints=[
            moveit.msg.JointConstraint(
                joint_name=name, position=value, tolerance_above=1e-4, tolerance_below=1e-4, weight=1.0
            )
            for name, value in (positions or AWAY).items()
        ],
    )


def too_many(moveit: Any) -> Any:
    """Constraints that hold everywhere, more than may be given: each is evaluated all along a motion."""
    return constraints(
        moveit,
        orientation_constraints=65
        * pose_goal(moveit, Pose(), tolerances=(4.0, 4.0, 4.0), radius=None).orientation_constraints,
    )


def pose_goal(moveit: Any, at: Pose, frame: str = "panda_link0", link: str = TIP, **rest: Any) -> Any:
    """Return a goal as MoveGroupInterface makes it; without radius or tolerances it has no constraint of that kind."""
    goal = moveit.msg.Constraints()
    radius, tolerances = rest.get("radius", 1e-4), rest.get("tolerances", (1e-3, 1e-3, 1e-3))
    if radius is not None:
        one = moveit.msg.PositionConstraint(link_name=link, weight=1.0)
        one.header.frame_id = frame
        one.target_point_offset.z = rest.get("offset", 0.0)
        one.constraint_region.primitives = [sphere(radius)]
        one.constraint_region.primitive_poses = [Pose(position=at.position)]
        goal.position_constraints = [one]
    if tolerances is not None:
        turned = moveit.msg.OrientationConstraint(link_name=link, orientation=at.orientation, weight=1.0)
        turned.header.frame_id = frame
        turned.absolute_x_axis_tolerance, turned.absolute_y_axis_tolerance = tolerances[:2]
        turned.absolute_z_axis_tolerance = tolerances[2]
        goal.orientation_constraints = [turned]
    return goal


def sphere(radius: float) -> Any:
    solid = import_module("shape_msgs.msg").SolidPrimitive
    return solid(type=solid.SPHERE, dimensions=[radius])


def motion_request(moveit: Any, *goals: Any, **fields: Any) -> Any:
    """A request of plan_kinematic_path, to AWAY by default."""
    given = moveit.msg.MotionPlanRequest(
        group_name="panda_arm",
        goal_constraints=list(goals) or [joint_goal(moveit)],
        num_planning_attempts=1,
        allowed_planning_time=20.0,
        max_velocity_scaling_factor=1.0,
        max_acceleration_scaling_factor=1.0,
    )
    given.start_state.is_diff = True
    for name, value in fields.items():
        setattr(given, name, value)
    return moveit.srv.GetMotionPlan.Request(motion_plan_request=given)
