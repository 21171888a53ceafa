"""What every service of the node needs: the robot in service, its state, frames and parameters."""

from dataclasses import dataclass
from typing import Annotated, Any

from rclpy.node import Node

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.problems.builder import default_group
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros import parameters
from kinopt_ros.ros.conversions import configuration_from_joint_state
from kinopt_ros.ros.frames import Frames
from kinopt_ros.ros.joint_states import JointStates
from kinopt_ros.ros.robot_loader import LoadedRobot, RobotLoader


@dataclass(frozen=True, eq=False)
class Context:
    """Shared by the services; each part is thread-safe."""

    node: Node
    loader: RobotLoader
    joint_states: JointStates
    frames: Frames

    @property
    def loaded(self) -> LoadedRobot:
        """The robot in service; KinoptError if there is none."""
        return self.loader.loaded

    def parameter(self, name: str) -> Any:
        """Present value of a parameter; None if it is unset."""
        return parameters.value(self.node, name)

    def configuration(self, robot: RobotModel, given: Any | None = None) -> Annotated[Float64, "nq"]:
        """The present configuration of the robot, overlaid with a sensor_msgs/JointState if one is given.

        Raises:
            KinoptError: a value that is needed is stale, or the one given does not fit.
        """
        state = self.joint_states.of(robot)
        named = frozenset(given.name) if given is not None else frozenset()
        needed = [i for i, name in enumerate(robot.variable_names) if name not in named]
        state.require_fresh(needed, robot, self.parameter("state_timeout"))
        return state.q if given is None else configuration_from_joint_state(given, robot, state.q)

    def group_name(self, robot: RobotModel, given: str = "") -> str:
        """The group of a request: the one given, else parameter default_group, else the robot's first."""
        name: str = given or self.parameter("default_group")
        return robot.group(name).name if name else default_group(robot).name

    def check_batch(self, size: int, what: str) -> None:
        """Raise InvalidRequestError unless 1 <= size <= max_batch."""
        most = self.parameter("max_batch")
        if not 1 <= size <= most:
            raise InvalidRequestError(
                f"{size} {what} were given; allowed are 1 to {most} (parameter max_batch)"
            )
