"""What ros2_controllers.yaml says of joint_trajectory_controller: from where it begins what replaces a motion.

By default that is where the robot is measured. Drives lag, so its commands are set back by as much, within one period,
by each motion that does not begin with a part of the one before: a brake, or a stop from where the robot is.
"""

from collections.abc import Iterator, Mapping
from typing import Any

FROM_DESIRED = ("interpolate_from_desired_state", "open_loop_control")
"""Parameters that have it begin where it had the joints last, of newer and of older versions."""
REMEDY = f"give it {FROM_DESIRED[0]}: true (before Kilted {FROM_DESIRED[1]}: true)"
_KIND = "JointTrajectoryController"
"""End of the types: another package's has a speed slider."""
_PARAMETERS = "ros__parameters"


def begin_as_measured(given: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the controllers of a file that begin where the robot is measured."""
    of_nodes = {
        str(name).lstrip("/"): _mapping(_mapping(node).get(_PARAMETERS)) for name, node in given.items()
    }
    for name, entry in of_nodes.get("controller_manager", {}).items():
        kind = _mapping(entry).get("type")
        if isinstance(kind, str) and kind.endswith(_KIND):
            own = of_nodes.get(str(name), {})
            if not any(own.get(parameter) is True for parameter in FROM_DESIRED):
                yield str(name)


def _mapping(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}
