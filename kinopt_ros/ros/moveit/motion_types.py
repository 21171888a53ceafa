"""Kinds of motion (Pilz's LIN and PTP) that MoveIt's clients ask for by planner_id.

They are honoured or refused, and never taken for a way of searching.
"""

from enum import Enum
from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Point

from kinopt_msgs.msg import StraightLine
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, UnsupportedFeatureError, quoted
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import rotation_angle
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import configuration_to_reach

PILZ = "pilz_industrial_motion_planner"
"""MoveIt's pipeline of kinds of motion."""
_ALIKE = 0.01
"""Angle up to which two orientations count as equal, rad."""
_LEVER = 0.1
"""Distance from the tip's origin of points that move on straight lines, too, if the tip does not turn, m."""


class MotionType(Enum):
    """Requirement on the way to the goal."""

    ANY = "PTP"
    """No requirement: the joints move as suits them."""
    LINE = "LIN"
    """The tip moves on a straight line, and turns about one axis."""


KINDS = {kind.value: kind for kind in MotionType}
"""By the names that a planner_id has for them."""
_MISSING = {"CIRC": "arcs", "POLYLINE": "lines with rounded corners"}


def pipeline_name(pipeline_id: str) -> str:
    """Return a pipeline's name as it is compared: clients write it with spaces around and in any case."""
    return pipeline_id.strip().lower()


def _kind_name(planner_id: str) -> str:
    return planner_id.strip().upper()


def is_kind(planner_id: str) -> bool:
    """Check whether a planner_id names a kind of motion."""
    return _kind_name(planner_id) in KINDS


def motion_type(pipeline_id: str, planner_id: str) -> MotionType:
    """Return the kind of motion that a planner_id asks for; of pipelines other than Pilz's most ask for none.

    Raises:
        UnsupportedFeatureError: a kind that this node does not do, or one that Pilz does not have.
    """
    name = _kind_name(planner_id)
    if name in _MISSING:
        raise UnsupportedFeatureError(
            f"planner_id is {quoted(planner_id)}: {_MISSING[name]} are not supported here; allowed kinds of motion are "
            f"{', '.join(sorted(KINDS))}"
        )
    if pipeline_name(pipeline_id) == PILZ and name not in KINDS:
        raise UnsupportedFeatureError(
            f"planner_id is {quoted(planner_id)} of the pipeline {PILZ!r}; allowed are {', '.join(sorted(KINDS))}"
        )
    return KINDS.get(name, MotionType.ANY)


def check_line(goals: Any) -> None:
    """Raise InvalidGoalError for goals that a line cannot lead to."""
    if len(goals) > 1:
        raise InvalidGoalError(f"LIN has {len(goals)} goals; allowed is one")
    for goal in goals:
        given = (bool(goal.position_constraints), bool(goal.orientation_constraints))
        if any(given) and not all(given):
            raise InvalidGoalError(
                "LIN needs the position and the orientation of a link, or joint values; goal_constraints[0] has "
                f"{len(goal.position_constraints)} position_constraints and {len(goal.orientation_constraints)} "
                "orientation_constraints"
            )


def tip_link(context: Context, robot: RobotModel, group: str) -> str:
    """Return the link that moves on a line where the goal names none."""
    found = robot.group(context.group_name(robot, group))
    if found.tip_link is None:
        raise UnsupportedFeatureError(f"LIN: group {found.name!r} has no tip that could move on a line")
    return found.tip_link


def line_fields(goal: dict[str, Any]) -> dict[str, Any]:
    """Return fields of kinopt_msgs/ComputeCartesianPath for a line to a pose, from those that ``goal_fields`` gives."""
    return {"waypoints": goal["poses"], "link": goal["tip_link"], "tool": goal["tool"]}


def lines_to_joints(
    robot: RobotModel, tip: str, start: Annotated[Float64, "nq"], goal: Any
) -> list[StraightLine]:
    """Return lines that take the tip to where it is at joint values, with the orientation that it has.

    Three of its points move on them, which keeps its orientation. One that changes cannot be asked for in this way.

    Raises:
        UnsupportedFeatureError: the joint values turn the tip.
        KinoptError: they are not usable.
    """
    end = configuration_to_reach(goal, robot, start)
    T = forward_kinematics(robot, np.array([start, end]), links=(tip,))[:, 0]
    angle = float(rotation_angle(T[0, :3, :3].T @ T[1, :3, :3]))
    if angle > _ALIKE:
        raise UnsupportedFeatureError(
            f"LIN to joint values that turn {tip!r} by {angle:.3g} rad is not supported here; give the goal as a pose"
        )
    points = ((0.0, 0.0, 0.0), (_LEVER, 0.0, 0.0), (0.0, _LEVER, 0.0))
    return [StraightLine(link=tip, point=Point(x=x, y=y, z=z)) for x, y, z in points]
