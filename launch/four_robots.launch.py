"""Several robots in one node process, each in a namespace of its own, and circles for them to track at 20 Hz.

    ros2 launch kinopt_ros four_robots.launch.py
    ros2 launch kinopt_ros four_robots.launch.py robots:="left=panda right=panda" track:=false

Robots are bundled ones (panda), those of installed robot packages (ur5, iiwa: `pip install example-robot-data`; where
they are missing, Pandas take their places), or URDF files. Each node has its services and topics below its namespace:
/left/kinopt/solve_ik, /left/joint_states.
"""

import tempfile
from pathlib import Path

import yaml
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from kinopt_ros.ros.client.circles import default_robots, parameters_of, robots_of
from launch import LaunchContext, LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Arguments and what follows from them."""
    present, _ = default_robots()
    robots = " ".join(f"{namespace}={robot}" for namespace, robot in present.items())
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robots", default_value=robots, description="NAMESPACE=ROBOT, for each robot."
            ),
            DeclareLaunchArgument("track", default_value="true", description="Whether circles are tracked."),
            DeclareLaunchArgument(
                "use_sim_time", default_value="false", description="Whether time comes from /clock."
            ),
            OpaqueFunction(function=_processes),
        ]
    )


def _processes(context: LaunchContext) -> list[Node | LogInfo]:
    words = LaunchConfiguration("robots").perform(context).split()
    robots = robots_of(words)
    present, said = default_robots()
    sim_time = ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)
    file = Path(tempfile.mkdtemp(prefix="kinopt_"), "robots.yaml")
    by_node = {f"/{name}/kinopt": {"ros__parameters": own} for name, own in parameters_of(robots).items()}
    file.write_text(yaml.safe_dump(by_node), encoding="utf-8")
    return [
        *([LogInfo(msg=said)] if said and robots == present else []),
        Node(
            package="kinopt_ros",
            executable="kinopt_node",
            output="screen",
            arguments=list(robots),
            parameters=[str(file), {"use_sim_time": sim_time}],
        ),
        Node(
            package="kinopt_ros",
            executable="kinopt_circles",
            output="screen",
            arguments=[f"{namespace}={robot}" for namespace, robot in robots.items()],
            condition=IfCondition(LaunchConfiguration("track")),
        ),
    ]
