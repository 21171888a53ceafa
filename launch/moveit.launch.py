"""The node in place of a move_group, with a MoveIt configuration as it is.

    ros2 launch kinopt_ros moveit.launch.py robot:=my_robot                      # package my_robot_moveit_config
    ros2 launch kinopt_ros moveit.launch.py robot:=my_robot package:=my_package
    ros2 launch kinopt_ros moveit.launch.py robot:=moveit_resources_panda simulated:=true    # without hardware
    ros2 launch kinopt_ros moveit.launch.py controllers:=config/gripper_moveit_controllers.yaml   # its gripper, too

Description, SRDF, joint limits and kinematics come from the configuration, and controllers from its
moveit_controllers.yaml. Start no move_group beside it: MoveIt's clients find what they look for. In a launch file of
your own:

    IncludeLaunchDescription(PythonLaunchDescriptionSource(
        PathJoinSubstitution([FindPackageShare("kinopt_ros"), "launch", "moveit.launch.py"])),
        launch_arguments={"robot": "my_robot"}.items())
"""

from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from kinopt_ros.robot.moveit_controllers import controllers_left_out, controllers_parameter, entries_parameter
from kinopt_ros.robot.urdf import robot_from_urdf
from launch import LaunchContext, LaunchDescription


def generate_launch_description() -> LaunchDescription:
    """Arguments and what follows from them."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot",
                default_value="moveit_resources_panda",
                description="Name of the robot's configuration.",
            ),
            DeclareLaunchArgument(
                "package", default_value="", description="Its package; empty: <robot>_moveit_config."
            ),
            DeclareLaunchArgument(
                "controllers",
                default_value="",
                description="Its file of controllers, if that is another one than the builder finds: "
                "config/gripper_moveit_controllers.yaml.",
            ),
            DeclareLaunchArgument(
                "simulated", default_value="false", description="Whether a simulated robot is the hardware."
            ),
            DeclareLaunchArgument(
                "use_sim_time", default_value="false", description="Whether time comes from /clock."
            ),
            OpaqueFunction(function=_processes),
        ]
    )


def _processes(context: LaunchContext) -> list[Node | LogInfo]:
    try:
        from moveit_configs_utils import MoveItConfigsBuilder
    except ImportError as error:
        raise RuntimeError(
            f"moveit.launch.py reads configurations with moveit_configs_utils, which is not installed: {error}"
        ) from error
    robot = LaunchConfiguration("robot").perform(context)
    package = LaunchConfiguration("package").perform(context) or f"{robot}_moveit_config"
    builder = MoveItConfigsBuilder(robot, package_name=package)
    if file := LaunchConfiguration("controllers").perform(context):
        builder = builder.trajectory_execution(file_path=file)
    config = builder.to_moveit_configs()
    # Texts must be marked as such, or launch takes them for YAML.
    texts = {
        name: _text(context, given)
        for given in (config.robot_description, config.robot_description_semantic)
        for name, given in given.items()
    }
    model = robot_from_urdf(texts["robot_description"], texts["robot_description_semantic"])
    names = controllers_parameter(config.trajectory_execution, model)
    controllers = {
        **({"controllers": names} if names else {}),
        **entries_parameter(config.trajectory_execution, model),
    }
    left_out = [
        LogInfo(msg=sentence)
        for sentence in controllers_left_out(config.trajectory_execution, model).values()
    ]
    sim_time = {"use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)}
    described = {name: ParameterValue(text, value_type=str) for name, text in texts.items()}
    node = Node(
        package="kinopt_ros",
        executable="kinopt_node",
        name="kinopt",
        output="screen",
        parameters=[
            {**described, **sim_time},
            config.robot_description_kinematics,
            config.joint_limits,
            *([controllers] if controllers else []),
        ],
    )
    if LaunchConfiguration("simulated").perform(context).lower() != "true":
        return [*left_out, node]
    simulated = Node(
        package="kinopt_ros",
        executable="kinopt_simulated_robot",
        name="simulated_robot",
        output="screen",
        parameters=[{**described, **sim_time, **controllers}],
    )
    return [*left_out, node, simulated]


def _text(context: LaunchContext, given: object) -> str:
    """Return a description that is a text, a parameter value or a substitution (xacro) as text."""
    if isinstance(given, ParameterValue):
        given = given.evaluate(context)
    return str(given)
