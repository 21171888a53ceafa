"""Entry point of the node's process: says in a sentence what is missing before anything fails in a stack trace."""

import sys
from importlib.util import find_spec

from kinopt_ros.errors import KinoptError

_REMEDIES = {
    "rclpy": (
        "rclpy is not installed. In a ROS 2 installation: source its setup file. "
        "Without ROS: run `make demo`, which installs ROS 2 into .venv."
    ),
    "kinopt_msgs": (
        "kinopt_msgs is not built. In a colcon workspace: "
        "`colcon build --base-paths src src/kinopt_ros/kinopt_msgs` and source install/setup.bash. "
        "In a virtual environment with the ROS wheels: `pip install ./kinopt_msgs`, or run `make demo`."
    ),
}


def missing() -> str | None:
    """What has to be installed or built before the node can run, and how; None if nothing is missing."""
    return next((remedy for module, remedy in _REMEDIES.items() if not _importable(module)), None)


def _importable(module: str) -> bool:
    """Whether there is such a module. The source folder kinopt_msgs/, seen from the repository root, is none."""
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def main(arguments: list[str] | None = None) -> int:
    """Run the node; arguments are ROS arguments."""
    remedy = missing()
    if remedy is not None:
        print(f"kinopt: {remedy}", file=sys.stderr)
        return 1
    try:
        from kinopt_ros.ros.node import spin

        spin(arguments)
    except KinoptError as error:
        print(f"kinopt: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # while starting
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
