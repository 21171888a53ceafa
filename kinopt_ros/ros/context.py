"""Context that every service of the node needs: the robot in service, its state, frames and parameters."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from rclpy.node import Node

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, KinoptError, shortened
from kinopt_ros.planning.scene_holder import SceneHolder
from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.problems.builder import default_group
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.moveit_controllers import ControllerEntry
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.robot.frames import Frames
from kinopt_ros.ros.robot.joint_states import JointStates, Positions, RobotState
from kinopt_ros.ros.robot.kinematics_parameters import GroupKinematics
from kinopt_ros.ros.robot.loader import LoadedRobot, RobotLoader
from kinopt_ros.ros.serving.gate import Gate
from kinopt_ros.scene.tool_frames import object_frame

Ways: TypeAlias = Iterable[tuple[str, str]]


class _Remembered:
    """Parameters that were read. They are kept, as asking the node costs more than some requests may."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


@dataclass(frozen=True, eq=False)
class Context:
    """Context of the node's services; each part is thread-safe."""

    node: Node
    loader: RobotLoader
    joint_states: JointStates
    frames: Frames
    scene: SceneHolder
    statistics: Statistics = field(default_factory=Statistics)
    """Statistics of all services, actions and solvers."""
    publish_scene: Callable[[], None] = lambda: None
    """Publishes the scene; called when it may have changed."""
    note_failures: Callable[[Any, Any], None] = lambda asked, result: None
    """Called with every request of inverse kinematics and its result, so that failed ones can be recorded."""
    kinematics: Mapping[str, GroupKinematics] = field(default_factory=dict)
    """What MoveIt's kinematics.yaml says, by group."""
    controllers: Mapping[str, ControllerEntry] = field(default_factory=dict)
    """What MoveIt's moveit_controllers.yaml says, by controller."""
    sets_back: Callable[[], bool] = lambda: False
    """Tells whether a controller begins what replaces a motion where the robot is measured (``motion/set_back.py``)."""
    clock: Callable[[], int] | None = None
    """The time that motions are in, ns; None: that of the node."""
    gate: Gate = field(default_factory=Gate)
    remembered: _Remembered = field(default_factory=_Remembered)

    @property
    def loaded(self) -> LoadedRobot:
        """The robot in service; KinoptError if there is none, or the node is not active."""
        self.gate.check()
        return self.loader.loaded

    def now(self) -> int:
        """Return the time that motions are in, ns."""
        return int(self.node.get_clock().now().nanoseconds) if self.clock is None else self.clock()

    def trouble(self, solver: str) -> str | None:
        """Return why a solver cannot be used for the robot in service; None if it can, or if there is no robot."""
        try:
            return self.loaded.pool.trouble(solver)
        except KinoptError:
            return None

    def remark(self, solver: str) -> str:
        """Return what a solver says about how it works at present; empty if there is nothing to say."""
        try:
            return self.loaded.pool.remark(solver)
        except KinoptError:
            return ""

    def parameter(self, name: str) -> Any:
        """Return the present value of a parameter; None if it is unset."""
        values = self.remembered.values
        if name not in values:
            values[name] = parameters.value(self.node, name)
        return values[name]

    def forget_parameters(self) -> None:
        """Forget parameter values, because some were set."""
        # A new dictionary: who is in the middle of reading puts the value from before into the old one.
        self.remembered.values = {}

    def configuration(
        self,
        robot: RobotModel,
        ways: Ways,
        named: Container[str] = (),
        state: Positions | RobotState | None = None,
    ) -> Annotated[Float64, "nq"]:
        """Return the present configuration, to be used for the poses of some frames in others.

        Args:
            robot: the robot.
            ways: pairs of frames whose pose in each other matters.
            named: variables that the request gives itself, so that nobody needs to have published them.
            state: of the robot, if it was read already.

        Raises:
            StaleStateError: a value that matters is too old.
        """
        state = state or self.joint_states.positions(robot)
        timeout = self.parameter("state_timeout")
        if max(state.age.tolist(), default=0.0) > timeout:  # else nobody needs to know which values matter
            needed = [i for i in self.moving(robot, ways) if robot.variable_names[i] not in named]
            state.require_fresh(needed, robot, timeout)
        return state.q

    def assumed(
        self,
        robot: RobotModel,
        ways: Ways,
        named: Container[str] = (),
        state: Positions | RobotState | None = None,
    ) -> str:
        """Return a sentence about values that matter (see ``configuration``) and that nobody published; else
        nothing."""
        known = (state or self.joint_states.positions(robot)).known
        return assumed_default(
            [robot.variable_names[i] for i in self.moving(robot, ways) if not known[i]], named
        )

    def moving(self, robot: RobotModel, ways: Ways) -> list[int]:
        """Return the variables that move one frame of a pair against the other, ascending.

        Frames of attached objects hang on their links, those that are neither of these nor links on the root.
        """
        return moving(robot, [(self._link_of(robot, a), self._link_of(robot, b)) for a, b in ways])

    def _link_of(self, robot: RobotModel, frame: str) -> str:
        if not frame or frame in robot.link_index:
            return frame
        of_object = object_frame(robot, self.scene.of(robot), frame)
        return frame if of_object is None else of_object.link

    def group_name(self, robot: RobotModel, given: str = "") -> str:
        """Return the group of a request: the one given, else parameter default_group, else the robot's first."""
        name: str = given or self.parameter("default_group")
        return robot.group(name).name if name else default_group(robot).name

    def check_batch(self, size: int, what: str) -> None:
        """Raise InvalidRequestError unless 1 <= size <= max_batch."""
        most = self.parameter("max_batch")
        if not 1 <= size <= most:
            raise InvalidRequestError(
                f"{size} {what} were given; allowed are 1 to {most} (parameter max_batch)"
            )


def assumed_default(unknown: Iterable[str], named: Container[str] = ()) -> str:
    """Return a sentence about variables that nobody published, but for those that a request names; else nothing."""
    names = [name for name in unknown if name not in named]
    return f"joint_states has no value for {shortened(names)}: the default is assumed" if names else ""


def moving(robot: RobotModel, ways: Ways) -> list[int]:
    """Return the variables that move one frame of a pair against the other, ascending.

    A frame that is no link hangs on the root.
    """
    pairs = [tuple([name if name in robot.link_index else robot.root_link for name in pair]) for pair in ways]
    return list(_moving(robot, *pairs))


@remembered
def _moving(robot: RobotModel, *pairs: tuple[str, ...]) -> tuple[int, ...]:
    """Return the variables that move one link of a pair against the other, ascending."""
    return tuple(sorted({i for a, b in pairs for i in chain_between(robot, a, b).variables.tolist()}))
