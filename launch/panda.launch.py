"""The node for the bundled Panda, and a simulated one that does what it is told: for trying everything by hand.

    ros2 launch kinopt_ros panda.launch.py
    ros2 launch kinopt_ros panda.launch.py simulated:=false    # where something else is the robot
    ros2 service call /kinopt/solve_ik kinopt_msgs/srv/SolveIK \
        "{poses: [{position: {x: 0.4, z: 0.5}, orientation: {x: 1.0, w: 0.0}}]}"
"""

from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from kinopt_ros.ros.robot.bundled import bundled_parameters
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """The node with the Panda's description as parameters, and the robot."""
    # Texts must be marked as such, or launch takes them for YAML.
    parameters = {
        name: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for name, value in bundled_parameters("panda").items()
    }
    sim_time = ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "simulated",
                default_value="true",
                description="Whether a simulated robot runs beside the node.",
            ),
            DeclareLaunchArgument(
                "use_sim_time", default_value="false", description="Whether time comes from /clock."
            ),
            Node(
                package="kinopt_ros",
                executable="kinopt_node",
                name="kinopt",
                output="screen",
                parameters=[{**parameters, "default_group": "panda_arm", "use_sim_time": sim_time}],
            ),
            Node(
                package="kinopt_ros",
                executable="kinopt_simulated_robot",
                name="simulated_robot",
                output="screen",
                arguments=["panda"],
                parameters=[{"start": "ready", "use_sim_time": sim_time}],
                condition=IfCondition(LaunchConfiguration("simulated")),
            ),
        ]
    )
