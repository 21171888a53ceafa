"""Common parts of requests of ~/get_jacobian and ~/twist_to_joint_velocity."""

from dataclasses import dataclass
from typing import Annotated, Any

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.differential import BASE, FrameJacobian
from kinopt_ros.problems.chains import resolve_joints
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import (
    configuration_from_joint_state,
    matrices_from_poses,
    status_message,
)
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.status import Status

SINGULAR_LOG_SECONDS = 5.0
"""Least time between two log lines about singularities, s; every answer says it in ``near_singular``."""


@dataclass(frozen=True, eq=False)
class DifferentialRequest:
    """A request in terms of the library."""

    robot: RobotModel
    base: str
    tip: str
    variables: Annotated[Int64, "n"]
    q: Annotated[Float64, "nq"]
    T_link_tool: Annotated[Float64, "4 4"]
    frame: str
    assumed: str


def read_differential_request(context: Context, request: Any) -> DifferentialRequest:
    robot = context.loaded.model
    group = request.group or None
    if group is None and not request.tip_link:
        group = context.group_name(robot)
    tip = tip_of(context, robot, request.tip_link) if request.tip_link else None
    base, tips, joints = resolve_joints(
        robot,
        group,
        request.base_link or None,
        None if tip is None else (tip.link,),
        (),
        tuple(request.locked_joints),
        (),
    )
    ways = [(base, tips[0]), (robot.root_link, base)]
    state = context.joint_states.of(robot)
    q = context.configuration(robot, ways, frozenset(request.state.name), state)
    q = configuration_from_joint_state(request.state, robot, q)
    T_tip_tool = matrices_from_poses([request.tool], "tool")[0]
    T_link_tool = None if tip is None else tip.with_tool(T_tip_tool)
    return DifferentialRequest(
        robot,
        base,
        tips[0],
        variables_of_joints(robot, joints),
        q,
        T_tip_tool if T_link_tool is None else T_link_tool,
        request.frame or BASE,
        context.assumed(robot, ways, set(request.state.name), state),
    )


def fill_common(context: Context, response: Any, asked: DifferentialRequest, jacobian: FrameJacobian) -> None:
    response.joint_names = [asked.robot.variable_names[i] for i in asked.variables]
    response.smallest_singular_value = jacobian.smallest
    response.largest_singular_value = jacobian.largest
    response.near_singular = jacobian.near_singular
    response.status = status_message(Status.SUCCESS, asked.assumed)
    if jacobian.near_singular:
        context.node.get_logger().warning(
            f"near a singularity: the singular values of {asked.tip!r} against {asked.base!r} reach from "
            f"{jacobian.smallest:.3g} to {jacobian.largest:.3g}",
            throttle_duration_sec=SINGULAR_LOG_SECONDS,
        )
