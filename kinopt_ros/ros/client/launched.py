"""What launch files of a bundled robot have in common. Imports ROS launch, which the ROS wheels lack, when called."""

from collections.abc import Mapping
from typing import Any

from kinopt_ros.ros.robot.bundled import bundled_parameters


def sim_time() -> dict[str, Any]:
    """Return the parameter use_sim_time, from the launch argument of that name."""
    from launch.substitutions import LaunchConfiguration
    from launch_ros.parameter_descriptions import ParameterValue

    return {"use_sim_time": ParameterValue(LaunchConfiguration("use_sim_time"), value_type=bool)}


def described(name: str) -> dict[str, Any]:
    """Return parameters of a node for a bundled robot. Texts are marked as such, or launch takes them for YAML."""
    from launch_ros.parameter_descriptions import ParameterValue

    return {
        key: ParameterValue(value, value_type=str) if isinstance(value, str) else value
        for key, value in bundled_parameters(name).items()
    }


def panda_and_node(own: Mapping[str, Any]) -> list[Any]:
    """Return the node for the bundled Panda with some parameters of its own, and the simulated robot, which starts if
    the launch argument ``simulated`` says so."""
    from launch.conditions import IfCondition
    from launch.substitutions import LaunchConfiguration
    from launch_ros.actions import Node

    return [
        Node(
            package="kinopt_ros",
            executable="kinopt_node",
            name="kinopt",
            output="screen",
            parameters=[{**described("panda"), "default_group": "panda_arm", **own, **sim_time()}],
        ),
        Node(
            package="kinopt_ros",
            executable="kinopt_simulated_robot",
            name="simulated_robot",
            output="screen",
            arguments=["panda"],
            parameters=[{"start": "ready", **sim_time()}],
            condition=IfCondition(LaunchConfiguration("simulated")),
        ),
    ]
