"""The node for the bundled Panda, without a robot: for trying the services by hand.

    ros2 launch kinopt_ros panda.launch.py
    ros2 service call /kinopt/solve_ik kinopt_msgs/srv/SolveIK \
        "{poses: [{position: {x: 0.4, z: 0.5}, orientation: {x: 1.0, w: 0.0}}]}"
"""

from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from kinopt_ros.robot.sources import find_robot
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """The node with the Panda's description as parameters."""
    urdf, srdf = find_robot("panda")
    return LaunchDescription(
        [
            Node(
                package="kinopt_ros",
                executable="kinopt_node",
                name="kinopt",
                output="screen",
                parameters=[
                    {
                        "robot_description": ParameterValue(urdf.read_text(), value_type=str),
                        "robot_description_semantic": ParameterValue(
                            srdf.read_text() if srdf else "", value_type=str
                        ),
                        "default_group": "panda_arm",
                    }
                ],
            )
        ]
    )
