"""MotionBenchMaker's folder: robots, families of problems, and the problems as the library takes them.

::

    panda.urdf, panda.srdf, meshes/...           # robots: a URDF with an SRDF of the same name beside it
    box_panda/scene0002.yaml, request0002.yaml   # families: folders with numbered pairs of files
"""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from kinopt_ros.bench.mbm.moveit_text import load_moveit_scene, load_request, robot_name_of
from kinopt_ros.errors import InvalidRequestError, RobotDescriptionError, UnknownJointError, quoted, shortened
from kinopt_ros.files import is_file, is_folder
from kinopt_ros.plain_xml import RefusedXmlError, parse_plain_xml
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot, read_description

MOST_FILES = 100_000
"""Most files of a folder that are looked at."""
_SCENE = re.compile(r"scene([0-9]{1,9})\.yaml")


@dataclass(frozen=True)
class RobotFiles:
    """Files of a robot."""

    name: str
    """Name of the URDF's file, without its ending."""
    model_name: str
    """Name that the SRDF gives it, by which scenes name it."""
    urdf: Path
    srdf: Path

    @cached_property
    def robot(self) -> RobotModel:
        """The robot; its meshes are looked for in the folder of its file, too."""
        folder = self.urdf.parent
        packages = {part.name: part for part in folder.iterdir() if part.is_dir()}
        return load_robot(self.urdf, srdf=self.srdf, packages=packages)


@dataclass(frozen=True)
class ProblemFiles:
    """Files of one problem."""

    family: str
    number: int
    scene: Path
    request: Path

    @property
    def name(self) -> str:
        """Family and number, for people."""
        return f"{self.family} {self.number}"


@dataclass(frozen=True)
class Family:
    """Problems of one robot and kind."""

    name: str
    robot: RobotFiles
    problems: tuple[ProblemFiles, ...]


def families_of(folder: Path) -> list[Family]:
    """Return what a folder holds, by name.

    Raises:
        InvalidRequestError: it is no such folder.
        KinoptError: a robot or a scene cannot be read.
    """
    if not is_folder(folder):
        raise InvalidRequestError(f"{quoted(str(folder), 300)} is no folder; allowed is one with problems")
    robots = {found.model_name: found for found in _robots_of(folder)}
    families = []
    for path in _entries(folder):
        problems = _problems_of(path) if is_folder(path) else ()
        if not problems:
            continue
        wanted = robot_name_of(problems[0].scene)
        if wanted not in robots:
            raise InvalidRequestError(
                f"the problems of {quoted(path.name)} are for the robot {quoted(wanted)}; those in the folder are "
                f"{shortened(sorted(robots)) or 'none'} (a URDF and an SRDF of the same name)"
            )
        families.append(Family(path.name, robots[wanted], problems))
    if not families:
        raise InvalidRequestError(
            f"{quoted(str(folder), 300)} has no problems; allowed is a folder with families such as "
            "box_panda/scene0001.yaml beside box_panda/request0001.yaml"
        )
    return families


def load_mbm_problem(files: ProblemFiles, robot: RobotModel, scaling: float) -> TrajectoryProblem:
    """Load a problem; what lies a little outside the limits is moved to them (see ``notes`` of the problem).

    Args:
        files: its files.
        robot: the robot that it is for.
        scaling: of velocity and acceleration limits.

    Raises:
        KinoptError: the files describe no problem of this robot; start or goal are outside the limits.
    """
    scene, request = load_moveit_scene(files.scene, robot), load_request(files.request)
    joints = robot.group(request.group).joints
    start = robot.default_q.copy()
    for name, value in request.start.items():
        variables = robot.variables_of(name)
        if len(variables) == 1:
            start[variables[0]] = value
        elif len(variables) > 1:
            raise InvalidRequestError(f"{files.name}: joint {quoted(name)} has no single value of its own")
        # One that is fixed in the URDF, as the fingers, or follows another, stays as that says.
    unknown = [name for name in request.goal if name not in robot.joint_by_name]
    if unknown:
        raise UnknownJointError(unknown[0], robot.joint_by_name)
    if set(request.goal) != set(joints):
        raise InvalidRequestError(
            f"{files.name}: the goal is given for {shortened(sorted(request.goal))}; group {quoted(request.group)} "
            f"moves {shortened(joints)}"
        )
    return trajectory_problem(
        robot,
        np.array([request.goal[name] for name in joints]),
        group=request.group,
        start=start,
        scene=scene,
        velocity_scaling=scaling,
        acceleration_scaling=scaling,
    )


def _robots_of(folder: Path) -> list[RobotFiles]:
    found = []
    for urdf in _entries(folder):
        srdf = urdf.with_suffix(".srdf")
        if urdf.suffix != ".urdf" or not is_file(srdf):
            continue
        found.append(RobotFiles(urdf.stem, _model_name(srdf), urdf, srdf))
    return found


def _model_name(srdf: Path) -> str:
    try:
        name = parse_plain_xml(read_description(srdf, "SRDF")).get("name")
    except RefusedXmlError as error:
        raise RobotDescriptionError(f"the SRDF file {quoted(str(srdf), 300)} {error}") from None
    if not name:
        raise RobotDescriptionError(f"the SRDF file {quoted(str(srdf), 300)} names no robot")
    return name


def _problems_of(folder: Path) -> tuple[ProblemFiles, ...]:
    found = []
    for scene in _entries(folder):
        match = _SCENE.fullmatch(scene.name)
        if match is None:
            continue
        request = scene.with_name(scene.name.replace("scene", "request"))
        if not is_file(request):
            raise InvalidRequestError(f"{quoted(str(scene), 300)} has no {request.name} beside it")
        found.append(ProblemFiles(folder.name, int(match[1]), scene, request))
    return tuple(sorted(found, key=lambda problem: problem.number))


def _entries(folder: Path) -> list[Path]:
    found = []
    for path in folder.iterdir():
        found.append(path)
        if len(found) > MOST_FILES:
            raise InvalidRequestError(f"{quoted(str(folder), 300)} has more than {MOST_FILES} files")
    return sorted(found)
