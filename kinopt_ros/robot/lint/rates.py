"""Joints whose limits of acceleration and jerk nobody has given."""

from collections.abc import Collection, Iterator, Mapping

from kinopt_ros.errors import shortened
from kinopt_ros.robot.limits import DEFAULT_ACCELERATION, DEFAULT_JERK
from kinopt_ros.robot.lint.finding import Finding, Severity
from kinopt_ros.robot.model import RobotModel

DEFAULT_RATES = {
    "acceleration": f"{DEFAULT_ACCELERATION:g} rad/s^2 or m/s^2",
    "jerk": f"{DEFAULT_JERK:g} rad/s^3 or m/s^3",
}
"""Limits that motions keep where none are given."""


def lint_rates(robot: RobotModel, given: Mapping[str, Collection[str]] | None = None) -> Iterator[Finding]:
    """List what is assumed of how quickly joints may speed up.

    Args:
        robot: the robot.
        given: names of joints whose limit is given beside the URDF, for each rate; what is missing there is a warning.
    """
    for rate, default in DEFAULT_RATES.items():
        elsewhere = () if given is None else given[rate]
        missing = [
            joint.name
            for joint in robot.joints
            if joint.is_active and getattr(joint, rate) is None and joint.name not in elsewhere
        ]
        if missing:
            yield Finding(
                Severity.WARNING if given is not None and rate == "acceleration" else Severity.NOTE,
                0,
                f"no limit of {rate} for {shortened(missing)}: {default} is used",
                f"add has_{rate}_limits: true and max_{rate} to joint_limits.yaml",
            )
