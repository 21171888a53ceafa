"""Builds control_msgs for tests, where it is not installed: the action of controllers, with the names, fields and
constants of control_msgs 5.4.0."""

from importlib.util import find_spec
from pathlib import Path

from support.moveit_package import build, use

INTERFACES = Path(__file__).with_name("control_interfaces.txt")
_NEEDED = {"control_msgs": ("builtin_interfaces", "std_msgs", "trajectory_msgs", "action_msgs")}


def provide(folder: Path) -> None:
    """Make this process, and those that it starts, find control_msgs, built below a folder that may be kept.

    Raises:
        BuildError: it cannot be built.
    """
    if find_spec("control_msgs") is None:
        use(build(folder, INTERFACES, _NEEDED))
