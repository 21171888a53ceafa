"""Names of controllers and the groups whose joints they have, as parameters give them."""

from collections.abc import Iterable

from kinopt_ros.errors import InvalidRequestError, quoted
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import one_variable_each

SEVERAL = "controllers"
"""Parameter of several controllers."""


def groups_of_controllers(words: Iterable[str]) -> dict[str, str]:
    """Return groups by the controllers that words such as ``arm_controller=panda_arm`` name.

    Raises:
        InvalidRequestError: a word of another form, or a controller named twice.
    """
    found: dict[str, str] = {}
    for word in words:
        name, equals, group = word.partition("=")
        if not (name and equals and group):
            raise InvalidRequestError(f"{quoted(word)} names no controller; allowed is NAME=GROUP")
        if name in found:
            raise InvalidRequestError(f"the controller {quoted(name)} is named twice")
        found[name] = group
    return found


def joints_of_controllers(robot: RobotModel, words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return joints by the controllers that words such as ``arm_controller=panda_arm`` name.

    Raises:
        KinoptError: a word of another form, or a group that the robot does not have.
    """
    return {
        name: one_variable_each(
            robot, [joint for joint in robot.group(group).joints if robot.joint(joint).is_active]
        )
        for name, group in groups_of_controllers(words).items()
    }
