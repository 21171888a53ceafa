"""Trajectory problems as YAML files, with the robot and the scene that they are about.

::

    robot: panda                        # a known name, or a URDF file relative to this one
    srdf: robot.srdf                    # optional
    group: panda_arm                    # optional: the robot's first group with a tip
    joints: [base/theta, panda_joint1]  # optional: joints to move, or variables of planar ones; others are held
    scene: shelf_scene.yaml             # optional: without one nobody looks at collisions; `empty` for the robot alone
    start: ready                        # optional: a named state, or values by name of the joint
    goals:                              # any one of them
      - state: extended
      - joints: {panda_joint1: 0.5}     # others stay where they start
      - {link: panda_hand, pose: {xyz: [0.5, 0, 0.4], rpy: [3.14, 0, 0]}, position_tolerance: 0.001, free_axes: [rz]}
    waypoints: []                       # goals that are passed in this order
    along:                              # what holds all the way
      - {upright: panda_hand, tilt: 0.1}
      - {straight: panda_hand, tolerance: 0.005}
      - {joint_range: panda_joint2, lower: -1.2, upper: 1.2}    # one end will do
    clearance: 0.01                     # and the other arguments of ``trajectory_problem`` that are numbers
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError, KinoptError, quoted, shortened
from kinopt_ros.files import is_file, path_of, read_text
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.constraints.base import FromFile, PathConstraint
from kinopt_ros.problems.constraints.every import constraint_from_file
from kinopt_ros.problems.ik import ORIENTATION_TOLERANCE, POSITION_TOLERANCE
from kinopt_ros.problems.trajectory import Goal, JointGoal, PoseGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import moving_joints, trajectory_problem
from kinopt_ros.problems.trajectory_validation import check_number_of
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.states import joints_of_state, named_configuration
from kinopt_ros.robot.variables import one_variable_each, variables_named
from kinopt_ros.scene import yaml_text as read
from kinopt_ros.scene.files import load_scene
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene
from kinopt_ros.scene.shape_text import pose_of

_NUMBERS = ("clearance", "velocity_scaling", "acceleration_scaling", "duration")
_WHOLE = ("num_points", "random_seed")
_KEYS = (
    "robot", "srdf", "group", "joints", "base_link", "scene", "start", "goals", "waypoints", "along",
    *_NUMBERS, *_WHOLE,
)  # fmt: skip
_POSE_KEYS = ("link", "pose", "position_tolerance", "orientation_tolerance", "free_axes")


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """A robot, and a problem for it, from a file."""

    robot: RobotModel
    problem: TrajectoryProblem


def load_problem(path: str | Path, deadline: float | None = None) -> ProblemFile:
    """Load a problem, and the robot that it is for, from a file.

    Args:
        path: the file.
        deadline: of the problem.

    Raises:
        InvalidRequestError: the file cannot be read, or describes no problem; the message says where.
        KinoptError: the robot cannot be loaded.
    """
    path = path_of(path, "a problem")
    with _at(f"problem {quoted(str(path), 300)}"):
        return problem_of(read.parsed(read_text(path, read.LARGEST_TEXT, "it")), path.parent, deadline)


def problem_of(given: Any, folder: Path, deadline: float | None = None) -> ProblemFile:
    """Build the problem that the parsed content of a file describes; names of files are relative to ``folder``.

    Raises:
        KinoptError: it describes no problem; the message says where.
    """
    given = read.mapping(given, "the problem", _KEYS, ("goals",))
    robot = _robot(given, folder)
    group = None if given.get("group") is None else read.text(given["group"], "group")
    base_link = None if given.get("base_link") is None else read.text(given["base_link"], "base_link")
    with _at("start"):
        start = _start(given.get("start"), robot)
    joints = tuple(read.text(name, "a joint") for name in read.sequence(given.get("joints"), "joints"))
    reader = _Reader(robot, group, joints, base_link, start)
    options: dict[str, Any] = {
        key: read.number(given[key], key) for key in _NUMBERS if given.get(key) is not None
    }
    for key in _WHOLE:
        if given.get(key) is not None:
            options[key] = given[key]
    problem = trajectory_problem(
        robot,
        reader.goals(given["goals"], "goals"),
        group=group,
        joints=joints or None,
        base_link=base_link,
        start=start,
        waypoints=reader.goals(given.get("waypoints"), "waypoints"),
        along=reader.along(given.get("along")),
        scene=_scene(given.get("scene"), folder, robot),
        deadline=deadline,
        **options,
    )
    return ProblemFile(robot, problem)


@dataclass(frozen=True, eq=False)
class _Reader:
    """Reads goals and constraints of one problem."""

    robot: RobotModel
    group: str | None
    joints: tuple[str, ...]
    base_link: str | None
    start: Float64

    def goals(self, given: Any, what: str) -> list[Goal]:
        found = []
        several = read.sequence(given, what)
        check_number_of(what, len(several))  # building one takes 0.1 ms
        for index, said in enumerate(several):
            with _at(f"{what}[{index}]"):
                found.append(self._goal(said))
        return found

    def along(self, given: Any) -> list[PathConstraint]:
        found = []
        several = read.sequence(given, "along")
        check_number_of("along", len(several))
        for index, said in enumerate(several):
            with _at(f"along[{index}]"):
                found.append(constraint_from_file(said, FromFile(self.robot, self.start, self._base)))
        return found

    def _goal(self, said: Any) -> Goal:
        if isinstance(said, dict) and "state" in said:
            said = read.mapping(said, "it", ("state",))
            return self._state(read.text(said["state"], "state"))
        if isinstance(said, dict) and "joints" in said:
            said = read.mapping(said, "it", ("joints",))
            for name in read.mapping(said["joints"], "joints"):
                own = variables_named(self.robot, name)
                if not own or not set(own) <= set(self._variables.tolist()):
                    raise InvalidRequestError(
                        f"joint {quoted(name)} does not move; the joints that do are {shortened(self._moving)}"
                    )
            return JointGoal(_with_values(said["joints"], self.robot, self.start)[self._variables])
        said = read.mapping(said, "it", _POSE_KEYS, ("pose",))
        link = None if said.get("link") is None else read.text(said["link"], "link")
        free = [read.text(axis, "an axis") for axis in read.sequence(said.get("free_axes"), "free_axes")]
        asked = ik_problem(
            self.robot,
            pose_of(said["pose"], "the pose"),
            group=self.group,
            base_link=self.base_link,
            tip_link=link,
            position_tolerance=read.number(
                said.get("position_tolerance", POSITION_TOLERANCE), "position_tolerance"
            ),
            orientation_tolerance=read.number(
                said.get("orientation_tolerance", ORIENTATION_TOLERANCE), "orientation_tolerance"
            ),
            free_axes=free,
        )
        return PoseGoal(asked.targets)

    def _state(self, name: str) -> JointGoal:
        q = named_configuration(self.robot, name)
        if joints_of_state(self.robot, name).isdisjoint(self._moving):
            raise InvalidRequestError(
                f"state {quoted(name)} says nothing about the joints that move: {shortened(self._moving)}"
            )
        return JointGoal(q[self._variables])

    @property
    def _moving(self) -> tuple[str, ...]:
        found = moving_joints(self.robot, self.group, self.base_link, None, self.joints)[2]
        return one_variable_each(self.robot, self.joints or found)

    @property
    def _base(self) -> str:
        return moving_joints(self.robot, self.group, self.base_link, None, self.joints)[0]

    @property
    def _variables(self) -> Annotated[Int64, "n"]:
        return variables_of_joints(self.robot, self._moving)


def _robot(given: Any, folder: Path) -> RobotModel:
    name = read.text(given.get("robot", "panda"), "robot")
    srdf = given.get("srdf")
    path = folder / name
    return load_robot(
        str(path) if is_file(path) else name,
        srdf=None if srdf is None else str(folder / read.text(srdf, "srdf")),
    )


def _scene(given: Any, folder: Path, robot: RobotModel) -> Scene | None:
    if given is None:
        return None
    name = read.text(given, "scene")
    return EMPTY_SCENE if name == "empty" else load_scene(folder / name, robot)


def _start(given: Any, robot: RobotModel) -> Float64:
    if given is None:
        return robot.default_q.copy()
    if isinstance(given, str):
        return named_configuration(robot, given)
    return _with_values(given, robot, robot.default_q)


def _with_values(given: Any, robot: RobotModel, others: Float64) -> Float64:
    q = others.copy()
    for name, value in read.mapping(given, "joints").items():
        if len(variables_named(robot, name)) != 1:
            raise InvalidRequestError(f"joint {quoted(name)} has no single value of its own")
        q[variables_named(robot, name)[0]] = read.number(value, f"joint {quoted(name)}")
    return np.asarray(q)


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Put the place in the file before the message of an error."""
    try:
        yield
    except KinoptError as error:
        raise InvalidRequestError(f"{where}: {error}") from error
