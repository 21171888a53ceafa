"""Every kind of constraint that holds all along a motion."""

from typing import Any

from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, quoted, shown
from kinopt_ros.problems.constraints.base import FromFile, PathConstraint
from kinopt_ros.problems.constraints.joint_range import JointRange
from kinopt_ros.problems.constraints.pose_along import PoseAlong
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text as read

CONSTRAINTS: tuple[type[PathConstraint], ...] = (PoseAlong, StraightLine, JointRange)


def check_constraint(given: object, robot: RobotModel) -> None:
    """Raise KinoptError unless something given is a constraint that fits the robot."""
    if not isinstance(given, PathConstraint):
        known = " and ".join(kind.__name__ for kind in CONSTRAINTS)
        raise InvalidRequestError(f"along has {shown(given)}; allowed are {known}")
    given.check(robot)


def constraint_from_file(said: Any, place: FromFile) -> PathConstraint:
    """Read a constraint of any kind from a problem file.

    Raises:
        KinoptError: it describes none.
    """
    said = read.mapping(said, "it")
    kinds = [kind for kind in CONSTRAINTS if kind.key in said]
    if not kinds:
        has = f"has {', '.join(map(quoted, said))}" if said else "is empty"
        raise InvalidShapeError(f"it {has}; allowed is one of {', '.join(kind.key for kind in CONSTRAINTS)}")
    return kinds[0].from_file(said, place)
