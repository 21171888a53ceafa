"""The node for the bundled Panda, and a simulated one that does what it is told: for trying everything by hand.

    ros2 launch kinopt_ros panda.launch.py
    ros2 launch kinopt_ros panda.launch.py simulated:=false    # where something else is the robot
    ros2 service call /kinopt/solve_ik kinopt_msgs/srv/SolveIK \
        "{poses: [{position: {x: 0.4, z: 0.5}, orientation: {x: 1.0, w: 0.0}}]}"
"""

from launch.actions import DeclareLaunchArgument

from kinopt_ros.ros.client.launched import panda_and_node
from launch import LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """The node with the Panda's description as parameters, and the robot."""
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
            *panda_and_node({}),
        ]
    )
