"""The node beside a robot that is already running.

    ros2 launch kinopt_ros kinopt.launch.py
    ros2 launch kinopt_ros kinopt.launch.py trajectory_topic:=/arm_controller/joint_trajectory default_group:=arm
    ros2 launch kinopt_ros kinopt.launch.py simulated:=true          # joint_states and controllers are simulated
    ros2 launch kinopt_ros kinopt.launch.py simulated:=my_robot.urdf    # the description comes from there, too

robot_description and joint_states come from the topics of robot_state_publisher and the controllers.
"""

from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchContext, LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Arguments and the node."""
    config = PathJoinSubstitution([FindPackageShare("kinopt_ros"), "config", "kinopt.yaml"])
    return LaunchDescription(
        [
            DeclareLaunchArgument("namespace", default_value="", description="Namespace of the node."),
            DeclareLaunchArgument("config", default_value=config, description="YAML file with parameters."),
            DeclareLaunchArgument(
                "default_group",
                default_value="",
                description="Joint group of requests that name none; empty: as the config has it.",
            ),
            DeclareLaunchArgument(
                "trajectory_topic",
                default_value="~/joint_trajectory",
                description="Where motions are published. A controller's topic makes the robot move.",
            ),
            DeclareLaunchArgument(
                "simulated",
                default_value="false",
                description="A simulated robot beside the node: false, true (that of robot_description), or a URDF "
                "file or the name of a robot.",
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="",
                description="Whether time comes from /clock: true or false; empty: as the config has it.",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                description="Log level of the node: debug, info, warn, error or fatal.",
            ),
            OpaqueFunction(function=_node),
            OpaqueFunction(function=_simulated),
        ]
    )


def _given(context: LaunchContext, **kinds: type) -> dict[str, ParameterValue]:
    """Parameters of the arguments that were given: an empty text would take the place of what the config has.

    Types must be said, or launch takes texts for YAML, and a group called 1 for a number.
    """
    return {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, kind in kinds.items()
        if LaunchConfiguration(name).perform(context)
    }


def _node(context: LaunchContext) -> list[Node]:
    given = _given(context, default_group=str, use_sim_time=bool)
    return [
        Node(
            package="kinopt_ros",
            executable="kinopt_node",
            name="kinopt",
            namespace=LaunchConfiguration("namespace"),
            output="screen",
            parameters=[LaunchConfiguration("config"), *([given] if given else [])],
            remappings=[("~/joint_trajectory", LaunchConfiguration("trajectory_topic"))],
            arguments=["--ros-args", "--log-level", LaunchConfiguration("log_level")],
        )
    ]


def _simulated(context: LaunchContext) -> list[Node]:
    """The simulated robot, if one is wanted; it listens where the node publishes."""
    wanted = LaunchConfiguration("simulated").perform(context)
    if wanted.lower() in ("", "false"):
        return []
    topic = LaunchConfiguration("trajectory_topic").perform(context)
    return [
        Node(
            package="kinopt_ros",
            executable="kinopt_simulated_robot",
            name="simulated_robot",
            namespace=LaunchConfiguration("namespace"),
            output="screen",
            arguments=[] if wanted.lower() == "true" else [wanted],
            parameters=[
                {
                    "trajectory_topics": [topic.replace("~", "kinopt", 1)],
                    **_given(context, use_sim_time=bool),  # two clocks would make its joint states stale
                }
            ],
        )
    ]
