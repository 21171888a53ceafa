"""The bundled Panda in rviz, to be steered by interactive markers: the node, a simulated robot, rviz.

    ros2 launch kinopt_ros rviz.launch.py
    ros2 launch kinopt_ros rviz.launch.py tips:=panda_link8=position    # 3-DoF
    ros2 launch kinopt_ros rviz.launch.py rviz:=false                   # where rviz runs elsewhere

Needs the packages rviz2 and robot_state_publisher. docs/rviz.md explains what there is to see.
"""

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from kinopt_ros.ros.client.launched import described, panda_and_node, sim_time
from launch import LaunchContext, LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Arguments and nodes."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "tips",
                default_value="panda_link8",
                description="Tips that have a marker, separated by spaces, as in parameter markers.tips.",
            ),
            DeclareLaunchArgument(
                "simulated",
                default_value="true",
                description="Whether a simulated robot runs beside the node.",
            ),
            DeclareLaunchArgument("rviz", default_value="true", description="Whether rviz is started."),
            DeclareLaunchArgument(
                "use_sim_time", default_value="false", description="Whether time comes from /clock."
            ),
            OpaqueFunction(function=_nodes),
        ]
    )


def _nodes(context: LaunchContext) -> list[Node]:
    tips = LaunchConfiguration("tips").perform(context).split()
    markers = {"markers.interactive": True, **({"markers.tips": tips} if tips else {})}
    config = PathJoinSubstitution([FindPackageShare("kinopt_ros"), "config", "markers.rviz"])
    return [
        *panda_and_node(markers),
        Node(
            package="robot_state_publisher",
            executable="robot_state_publisher",
            name="robot_state_publisher",
            output="screen",
            parameters=[{"robot_description": described("panda")["robot_description"], **sim_time()}],
        ),
        Node(
            package="rviz2",
            executable="rviz2",
            name="rviz",
            output="screen",
            arguments=["-d", config],
            parameters=[sim_time()],
            condition=IfCondition(LaunchConfiguration("rviz")),
        ),
    ]
