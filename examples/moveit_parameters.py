"""Write the node's parameters for a MoveIt configuration, where there is no `ros2 launch` to start moveit.launch.py.

python examples/moveit_parameters.py my_robot.urdf my_robot_moveit_config kinopt.yaml
kinopt_node --ros-args --params-file kinopt.yaml
kinopt_simulated_robot --ros-args --params-file kinopt.yaml        # in place of a robot, if there is none

A fourth word names another file of controllers than moveit_controllers.yaml (gripper_moveit_controllers.yaml).
The description is a URDF (`xacro my_robot.urdf.xacro > my_robot.urdf`, if yours is a xacro file). Needs no ROS.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from kinopt_ros.robot.moveit_controllers import controllers_left_out, controllers_parameter, entries_parameter
from kinopt_ros.robot.urdf import robot_from_urdf


def main(urdf: str, folder: str, file: str, controllers_file: str = "") -> int:
    """Read what the node takes of a configuration, write it."""
    config = Path(folder, "config")
    srdfs = sorted(config.glob("*.srdf"))
    if len(srdfs) != 1:
        print(f"{config} has {len(srdfs)} SRDF files; allowed is one", file=sys.stderr)
        return 1
    description = Path(urdf).read_text(encoding="utf-8")
    semantic = srdfs[0].read_text(encoding="utf-8")
    everywhere: dict[str, Any] = {"robot_description": description, "robot_description_semantic": semantic}

    node: dict[str, Any] = {
        "robot_description_planning": read(config / "joint_limits.yaml"),
        "robot_description_kinematics": read(config / "kinematics.yaml"),
    }
    robot = robot_from_urdf(description, semantic)
    if controllers_file and not (config / controllers_file).is_file():
        print(f"{config} has no {controllers_file}", file=sys.stderr)
        return 1
    listed = read(config / (controllers_file or "moveit_controllers.yaml"))
    simulated: dict[str, Any] = entries_parameter(listed, robot)  # how grippers are told motions
    if controllers := controllers_parameter(listed, robot):
        simulated["controllers"] = controllers
    node.update(simulated)
    for sentence in controllers_left_out(listed, robot).values():
        print(sentence, file=sys.stderr)

    nodes = {
        "/**": everywhere,
        "/kinopt": {name: value for name, value in node.items() if value},
        "/simulated_robot": simulated,
    }
    parameters = {name: {"ros__parameters": values} for name, values in nodes.items() if values}
    Path(file).write_text(yaml.dump(parameters, Dumper=WithoutAliases, sort_keys=False), encoding="utf-8")
    return 0


class WithoutAliases(yaml.SafeDumper):
    """Writes what comes twice twice: ROS reads no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write no alias."""
        return True


def read(file: Path) -> Any:
    """Return what a YAML file holds, and nothing if there is none."""
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
