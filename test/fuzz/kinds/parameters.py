"""Values of parameters, as the node checks them before they apply."""

from array import array
from pathlib import Path
from typing import Any

from rclpy.parameter import Parameter

from fuzz.kinds import robots, scenes
from fuzz.kinds.scenes import yaml_text
from fuzz.source import Source
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.robot.description import check_names
from kinopt_ros.ros.serving.failure_records import checked_folder

ROBOT = robot_from_urdf(robots.ARM, robots.ARM_SRDF)
_LIMITS = {
    "turn": {"has_position_limits": True, "min_position": -1.0, "max_position": 1.0},
    "bend": {"has_velocity_limits": True, "max_velocity": 1.0, "max_acceleration": 2.0},
}
_NAMES = (
    *(spec.name for spec in parameters.SPECS),
    *sorted(parameters.solver_parameter_names()),
    "unknown",
)


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    assert parameters.check([Parameter("ik.timeout", value=1.0)]).successful
    assert not parameters.check([Parameter("ik.timeout", value=-1.0)]).successful


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    if source.often(0.1):
        apply_joint_limits(ROBOT, source.changed(_LIMITS, 0.1))
        return
    name, value = source.choice(_NAMES), _value(source)
    if name == "tool_frames" and source.often(0.7):
        value = yaml_text(source, scenes.FRAMES)
    try:
        parameter = Parameter(name, value=value)
    except ValueError:  # rclpy takes an empty array for one of another type
        return
    answer = parameters.check([parameter])
    assert len(answer.reason) < 10_000
    answer.reason.encode()
    if answer.successful and name in ("default_group", "controller_joints", "tool_frames"):
        check_names(ROBOT, name, value)
    if isinstance(value, str):
        checked_folder(value)


def _value(source: Source) -> Any:
    """A value of one of the types of parameters."""
    few = range(source.few())
    return source.choice(
        (
            None,
            source.often(0.5),
            source.choice((0, 1, -1, 2**31, 2**63 - 1, -(2**63))),
            source.number(),
            source.name(["arm", "hand", "cpu", "auto", "fingers"]),
            source.name() * source.few(),
            [bytes([source.randrange(256)]) for _ in few],
            [source.often(0.5) for _ in few],
            array("q", [source.choice((0, 1, -1, 2**63 - 1)) for _ in few]),
            array("d", [source.number() for _ in few]),
            [source.name(["turn", "bend", "cpu"]) for _ in few],
        )
    )
