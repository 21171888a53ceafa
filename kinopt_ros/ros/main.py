"""Entry point of the node's process: says in a sentence what is missing before anything fails in a stack trace."""

import faulthandler
import importlib
import sys
from contextlib import suppress
from itertools import takewhile

from kinopt_ros.errors import KinoptError
from kinopt_ros.interrupts import INTERRUPTED, end_silently, silent_imports

_REMEDIES = {
    "rclpy": (
        "rclpy is not installed. In a ROS 2 installation: source its setup file. "
        "Without ROS: run `make demo`, which installs ROS 2 into .venv."
    ),
    "kinopt_msgs.msg": (
        "kinopt_msgs is not built. In a colcon workspace: "
        "`colcon build --base-paths src src/kinopt_ros/kinopt_msgs src/kinopt_ros/kinopt_ruckig` "
        "and source install/setup.bash. "
        "In a virtual environment with the ROS wheels: `pip install ./kinopt_msgs`, or run `make demo`."
    ),
}

_NODE = """\
usage: kinopt_node [NAMESPACE ...] [--ros-args ...]

Answer inverse kinematics and motions for the robot on ~/robot_description.

  NAMESPACE    run one node in each of these namespaces, all in this process

Parameters: --ros-args -p NAME:=VALUE, or --ros-args --params-file FILE. Each with its meaning and what is allowed:
`ros2 param describe /kinopt NAME` while the node runs, or docs/reference/parameters.md."""

_CIRCLES = """\
usage: kinopt_circles [NAMESPACE=ROBOT ...] [--ros-args ...]

Have the tips of robots, whose nodes run, track circles.

  NAMESPACE=ROBOT    namespace of a node, and the name or URDF file of its robot"""

_SIMULATED_ROBOT = """\
usage: kinopt_simulated_robot [ROBOT] [--ros-args ...]

Publish joint states and follow trajectories, as the controllers of a robot do.

  ROBOT    name or URDF file; publish its description, too (otherwise: the robot of robot_description)"""


def missing() -> str | None:
    """Return what has to be installed or built before the node can run, and how; None if nothing is missing."""
    for module, remedy in _REMEDIES.items():
        problem = _problem_of(module)
        if problem is not None:
            return f"{remedy} ({problem})"
    return None


def _problem_of(module: str) -> str | None:
    """Return why a module cannot be used. The source folder kinopt_msgs/, seen from the repository root, is no
    module."""
    try:
        file = importlib.import_module(module).__file__
    except ImportError as error:
        return f"{type(error).__name__}: {error}"
    return None if file is not None else f"{module} is a folder of sources"


def main(arguments: list[str] | None = None) -> int:
    """Run the node, or several nodes in one process: ``kinopt_node left right --ros-args ...`` runs one in each of the
    namespaces. Parameters of each are given by file, under its full name (``/left/kinopt``)."""
    if _helped(_NODE, arguments):
        return 0
    with suppress(RuntimeError, OSError):  # there is no stderr
        faulthandler.enable()  # where compiled code ends the process, its log says in which call
    end_silently()  # until ``spin`` has something to tidy up
    remedy = missing()
    if remedy is not None:
        print(f"kinopt: {remedy}", file=sys.stderr)
        return 1
    try:
        from kinopt_ros.ros.spinning import spin

        spin(arguments)
    except KinoptError as error:
        print(f"kinopt: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # while starting
        return INTERRUPTED
    return 0


def _helped(usage: str, arguments: list[str] | None = None) -> bool:
    """Print how to call the program if the arguments before ``--ros-args`` ask for it, and say whether they did."""
    words = (sys.argv if arguments is None else arguments)[1:]
    asked = not {"-h", "--help"}.isdisjoint(takewhile(lambda word: word != "--ros-args", words))
    if asked:
        print(usage)
    return asked


def circles() -> int:
    """Run ``kinopt_circles``."""
    if _helped(_CIRCLES):
        return 0
    with silent_imports():
        from kinopt_ros.ros.client.circles import main as track_circles
    return track_circles()


def simulated_robot() -> int:
    """Run ``kinopt_simulated_robot``."""
    if _helped(_SIMULATED_ROBOT):
        return 0
    with silent_imports():
        from kinopt_ros.ros.client.simulated_robot import main as simulate
    return simulate()


if __name__ == "__main__":
    sys.exit(main(sys.argv))
