"""Source of the robot's description, parameter or topic, and when it must be read again."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter

from kinopt_ros.errors import KinoptError, shortened
from kinopt_ros.planning.motion import commanded_variables
from kinopt_ros.planning.scene_holder import SceneHolder
from kinopt_ros.problems.chains import resolve_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.robot.controller_names import SEVERAL, joints_of_controllers
from kinopt_ros.ros.robot.joint_limits import PREFIX, declaration, unknown_limits, with_joint_limits
from kinopt_ros.ros.robot.kinematics_parameters import GroupKinematics, unknown_groups
from kinopt_ros.ros.robot.loader import RobotLoader
from kinopt_ros.ros.serving.executor_thread import ExecutorThread
from kinopt_ros.scene.files import load_scene
from kinopt_ros.scene.tool_frames import check_tool_frames, tool_frames

NAMING = ("default_group", "controller_joints", "controllers", "tool_frames")
"""Parameters with names that the robot must have."""
_URDF, _SRDF, _VIRTUAL = "robot_description", "robot_description_semantic", "virtual_joint"
_SRDF_FOLLOWS = 0.5
"""Time for which a URDF waits for an SRDF that may follow, s: without it, groups are missing and warnings mislead."""
_NAME = re.compile(r"<robot\b[^>]*?\bname\s*=\s*[\"']([^\"']*)")


def check_names(robot: RobotModel, parameter: str, given: Any) -> None:
    """Raise KinoptError if the value of a parameter names a group, joints or links that the robot does not have."""
    if parameter == "default_group" and given:
        resolve_chain(robot, given, None, None)
    if parameter == "controller_joints" and given:
        commanded_variables(robot, given)
    if parameter == SEVERAL:
        joints_of_controllers(robot, given)
    if parameter == "tool_frames":
        check_tool_frames(robot, tool_frames(given))


class Description:
    """URDF and SRDF text, each from its parameter or, while that is empty, from its topic."""

    def __init__(
        self,
        node: Node,
        loader: RobotLoader,
        scene: SceneHolder,
        kinematics: Mapping[str, GroupKinematics],
    ) -> None:
        self._kinematics = kinematics
        self._node = node
        self._loader = loader
        self._scene = scene
        self._from_topic = {_URDF: "", _SRDF: ""}
        self._texts: WeakKeyDictionary[RobotModel, tuple[str, str]] = WeakKeyDictionary()
        self._tried: tuple[tuple[str, str, bool], RobotModel | KinoptError] | None = None
        """The texts that were tried last, and what came of it."""
        self._changes = False
        """Whether the parameters that are being set have other values than before."""
        self._held = self._due = False
        self._wanted = True
        self._executor_thread = ExecutorThread(node)
        self.is_declaring = False
        """Whether parameters are being declared, which calls back as if somebody had set them."""
        steady = Clock(clock_type=ClockType.STEADY_TIME)  # simulated time may stand still
        self._srdf_follows = node.create_timer(_SRDF_FOLLOWS, self._nothing_followed, clock=steady)
        self._srdf_follows.cancel()

    def take_urdf(self, text: str) -> None:
        """Take a robot_description that arrived by topic."""
        self._take(_URDF, text)

    def take_srdf(self, text: str) -> None:
        """Take a robot_description_semantic that arrived by topic."""
        self._take(_SRDF, text)

    @property
    def is_there(self) -> bool:
        """Whether there is a URDF, usable or not."""
        return bool(self._text(_URDF))

    def close(self) -> None:
        """End the wait of those who declare parameters."""
        self._executor_thread.close()

    def want(self, wanted: bool) -> None:
        """Build the robot in the background, now and whenever its description changes, or only remember what comes."""
        self._wanted = wanted
        if wanted:
            self.load()

    def load(self) -> None:
        """Build the robot anew in the background, if it is wanted and there is a URDF at all."""
        if not self._wanted:
            return
        if self._held:
            self._due = True
            return
        self._srdf_follows.cancel()
        if not self._text(_URDF):
            return
        self._loader.load(
            self._build,
            parameters.solver_options(self._node),
            parameters.ik_solver(self._node),
            parameters.value(self._node, "fallback_chain"),
        )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Put off ``load`` until all parameters are set that one request sets."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self._due:
                self._due = False
                self.load()

    def was_set(self, given: list[Parameter[Any]]) -> None:
        """Take notice of parameters that have passed ``check`` and were set.

        Builds the robot anew if that changes anything, or if the one in service is another one, as after a failure.
        """
        if self.concerned_by(given) and (self._changes or not self._serves()):
            self.load()

    def _serves(self) -> bool:
        """Check whether the robot in service is the one of the present texts."""
        if not self._loader.is_ready:
            return False
        return self.texts_of(self._loader.loaded.model) == (self._text(_URDF), self._text(_SRDF))

    def check(self, given: list[Parameter[Any]]) -> SetParametersResult:
        """Refuse a description or limits that cannot be used, before they replace some that can."""
        proposed = {parameter.name: parameter.value for parameter in given}
        if not self.concerned_by(given):
            return SetParametersResult(successful=True)
        changed = [each for each in given if not self._is_same(each)]
        self._changes = bool(changed)
        if not any(each.name in (_URDF, _SRDF, _VIRTUAL) or each.name.startswith(PREFIX) for each in changed):
            return SetParametersResult(successful=True)
        urdf = proposed.get(_URDF, self._text(_URDF)) or self._from_topic[_URDF]
        srdf = proposed.get(_SRDF, self._text(_SRDF)) or self._from_topic[_SRDF]
        try:
            if urdf:
                moving = proposed.get(_VIRTUAL, parameters.value(self._node, _VIRTUAL))
                with_joint_limits(self._node, self._try(urdf, srdf, moving), proposed)
        except KinoptError as error:
            return parameters.refusal(str(error))
        return SetParametersResult(successful=True)

    def _try(self, urdf: str, srdf: str, moving: bool) -> RobotModel:
        """Return the robot of some texts; of the same ones as before without building it anew."""
        texts = urdf, srdf, moving
        if self._tried is None or self._tried[0] != texts:
            try:
                self._tried = texts, robot_from_urdf(urdf, srdf or None, virtual_joint=moving)
            except KinoptError as error:
                self._tried = texts, error
        found = self._tried[1]
        if isinstance(found, KinoptError):
            raise found
        return found

    def _is_same(self, given: Parameter[Any]) -> bool:
        """Check whether a parameter has the value given already; NaN equals NaN here."""
        if not self._node.has_parameter(given.name):
            return False
        present = self._node.get_parameter(given.name).value
        if type(present) is float and type(given.value) is float and math.isnan(present):
            return math.isnan(given.value)
        return type(present) is type(given.value) and bool(present == given.value)

    def concerned_by(self, given: list[Parameter[Any]]) -> bool:
        """Check whether a change of these parameters changes the robot or its solvers."""
        if self.is_declaring:
            return False
        names = {parameter.name for parameter in given}
        return any(
            name in (_URDF, _SRDF, _VIRTUAL, "solver", "ik.solver", "fallback_chain")
            or name.startswith(PREFIX)
            or name in parameters.solver_parameter_names()
            for name in names
        )

    def replaced_by(self, given: list[Parameter[Any]]) -> bool:
        """Check whether these parameters bring another description."""
        return any(parameter.name in (_URDF, _SRDF, _VIRTUAL) for parameter in given)

    def texts_of(self, robot: RobotModel) -> tuple[str, str]:
        """Return the URDF and SRDF that a robot was built from."""
        return self._texts.get(robot, ("", ""))

    def _take(self, name: str, text: str) -> None:
        if parameters.value(self._node, name):
            self._node.get_logger().info(f"topic {name} is not used: the parameter of that name is set")
        elif not text:
            self._node.get_logger().warning(f"topic {name}: an empty text was dropped")
        elif text != self._from_topic[name]:
            self._from_topic[name] = text
            if name == _URDF and not self._has_srdf():
                self._srdf_follows.reset()
            else:
                self.load()

    def _has_srdf(self) -> bool:
        """Check whether there is an SRDF that may belong to the URDF: not the one of another robot."""
        if parameters.value(self._node, _SRDF):
            return True
        urdf, srdf = (_NAME.search(self._text(name)[:10_000]) for name in (_URDF, _SRDF))
        return urdf is not None and srdf is not None and urdf[1] == srdf[1]

    def _nothing_followed(self) -> None:
        self.load()  # which cancels the timer

    def _text(self, name: str) -> str:
        return str(parameters.value(self._node, name) or self._from_topic[name])

    def _build(self) -> RobotModel:
        """Build the robot of the newest texts."""
        urdf, srdf = self._text(_URDF), self._text(_SRDF)
        moving = parameters.value(self._node, _VIRTUAL)
        robot = robot_from_urdf(urdf, srdf or None, virtual_joint=moving)
        # rclpy reads its parameters without a lock: nobody but the thread of its services may add some.
        self._executor_thread.do(self._declaring(step) for step in declaration(self._node, robot))
        unknown = unknown_limits(self._node, robot)
        if unknown:
            self._node.get_logger().warning(f"parameters of no joint of the robot: {shortened(unknown)}")
        unknown = unknown_groups(self._kinematics, robot)
        if unknown:
            self._node.get_logger().warning(
                f"robot_description_kinematics names no group of the robot: {shortened(unknown)}; its groups are "
                f"{shortened(list(robot.groups))}"
            )
        built = with_joint_limits(self._node, robot)
        self._texts[built] = urdf, srdf
        for name in NAMING:
            try:
                check_names(built, name, parameters.value(self._node, name))
            except KinoptError as error:
                self._node.get_logger().warning(f"parameter {name}: {error}")
        scene_file = parameters.value(self._node, "scene_file")
        if scene_file:  # before the robot serves: it must not move in a world without its obstacles
            self._scene.start(lambda: load_scene(scene_file, built))
        return built

    def _declaring(self, step: Callable[[], None]) -> Callable[[], None]:
        def declare() -> None:
            self.is_declaring = True
            try:
                step()
            finally:
                self.is_declaring = False

        return declare
