"""Records of IK problems as YAML: to be kept, sent to somebody, and solved again to the last bit.

A record holds names, not indices, so that it outlives changes of a robot's description; the description itself lies
beside it, once per content, as ``robots/<hash>.urdf`` and ``.srdf``, and so does the scene, as ``scenes/<hash>.yaml``.
Numbers are written so that they are read back bit for bit.
"""

import hashlib
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, quoted, shown
from kinopt_ros.files import is_file, path_of, read_text, written
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Tolerance
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.preferences.every import plain_preference, preference_from_plain
from kinopt_ros.problems.validation import check_ik_problem, variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.robot.xml_text import MAX_TEXT_LENGTH
from kinopt_ros.scene import yaml_text as read
from kinopt_ros.scene.files import keep_scene, load_scene, scene_hash
from kinopt_ros.scene.scene import Scene

VERSION = 1
ROBOTS = "robots"
"""Folder of the descriptions, beside the records."""
SCENES = "scenes"
"""Folder of the scenes, beside the records."""
MOST_TIMEOUT = 3600.0
"""Longest timeout of a problem in a record, s."""


@dataclass(frozen=True, eq=False)
class Record:
    """A problem, for whom it was, and what became of it."""

    robot: str
    """Name of the robot."""
    variables: tuple[str, ...]
    """The robot's variables, in the order of ``state``."""
    lower: Float64
    """The robot's lower position limits, which parameters may have changed, (nq,)."""
    upper: Float64
    urdf: str
    """Hash of the description beside the record; empty if there is none."""
    srdf: str
    solver: str
    options: Mapping[str, Any]
    timeout: float | None
    """Time that the solver had, s; None: no deadline."""
    date: str
    status: tuple[int, ...]
    """Status code of each request, as in ``Status``; empty if unknown."""
    messages: tuple[str, ...]
    problem: Mapping[str, Any]
    """The problem in plain values; its scene is given by its hash."""

    @property
    def has_scene(self) -> bool:
        """Whether solutions had to be free of collisions."""
        return bool(self.problem.get("scene"))


def make_record(
    robot: RobotModel,
    problem: IkProblem,
    solver: str,
    options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    status: Sequence[int] = (),
    messages: Sequence[str] = (),
    urdf: str = "",
    srdf: str = "",
) -> Record:
    """Make a record of a problem; it keeps hashes of the texts ``urdf`` and ``srdf``.

    Raises:
        InvalidRequestError: the problem has a preference that records cannot keep.
    """
    return Record(
        robot=robot.name,
        variables=robot.variable_names,
        lower=robot.limits.lower,
        upper=robot.limits.upper,
        urdf=_hash(urdf),
        srdf=_hash(srdf),
        solver=solver,
        options=dict(options or {}),
        timeout=timeout,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        status=tuple(int(code) for code in status),
        messages=tuple(messages),
        problem=_plain_problem(problem, robot),
    )


def save_record(
    record: Record, file: Path, urdf: str = "", srdf: str = "", scene: Scene | None = None
) -> None:
    """Write a record, and the descriptions and the problem's scene beside it if they are not there.

    Raises:
        OSError: that is not possible.
        InvalidShapeError: the scene is too large for a file.
    """
    if scene is not None:
        keep_scene(scene, file.parent / SCENES)
    for text, suffix in ((urdf, ".urdf"), (srdf, ".srdf")):
        place = file.parent / ROBOTS / f"{_hash(text)}{suffix}"
        if text and not place.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            with written(place) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
    plain = {
        "kinopt_record": VERSION,
        **{
            name: value.tolist() if isinstance(value, np.ndarray) else _listed(value)
            for name, value in vars(record).items()
        },
    }
    text = yaml.dump(plain, Dumper=_Dumper, sort_keys=False, default_flow_style=None)
    with written(file) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


class _Dumper(yaml.SafeDumper):
    """Writes everything in full: ``load_record`` refuses aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def load_record(file: Path) -> Record:
    """Read a record.

    Raises:
        InvalidRequestError: it cannot be read, or is none.
    """
    file = path_of(file, "a record")
    name = quoted(file.name)
    try:
        plain = read.parsed(read_text(file, read.LARGEST_TEXT, name))
    except InvalidShapeError as error:
        raise InvalidRequestError(f"{name}: {error}") from None
    if not isinstance(plain, dict) or plain.pop("kinopt_record", None) != VERSION:
        raise InvalidRequestError(f"{name} is no record of version {VERSION} of kinopt_ros")
    try:
        return _checked(plain)
    except InvalidShapeError as error:
        raise InvalidRequestError(f"{name} is not a whole record: {error}") from None


def recorded_robot(record: Record, file: Path) -> RobotModel:
    """Load the robot from the description beside a record, with the limits that it had.

    Raises:
        InvalidRequestError: there is no description beside it.
        RobotDescriptionError: it is not usable.
    """
    urdf = _description_beside(file, record.urdf, ".urdf")
    if urdf is None:
        raise InvalidRequestError(
            f"the description of robot {quoted(record.robot)} does not lie beside {quoted(file.name)}"
        )
    text = _description_beside(file, record.srdf, ".srdf")
    robot = robot_from_urdf(urdf, text)
    if robot.virtual_joint is not None and set(record.variables) > set(
        robot.variable_names
    ):  # it was a joint
        robot = robot_from_urdf(urdf, text, virtual_joint=True)
    if robot.variable_names != record.variables:
        raise InvalidRequestError(
            f"the description beside {quoted(file.name)} has other joints than the record"
        )
    if (
        len(record.lower) != robot.nq
        or len(record.upper) != robot.nq
        or not (record.lower <= record.upper).all()
    ):
        raise InvalidRequestError(
            f"{quoted(file.name)} has {len(record.lower)} lower and {len(record.upper)} upper limits; allowed is one "
            f"of each for the {robot.nq} variables, the lower one not above the upper"
        )
    return replace(robot, limits=replace(robot.limits, lower=record.lower.copy(), upper=record.upper.copy()))


def recorded_problem(record: Record, robot: RobotModel, file: Path | None = None) -> IkProblem:
    """Build the problem of a record for a robot that has its joints, due after the recorded time from now.

    Args:
        record: the record.
        robot: the robot.
        file: of the record, beside which its scene lies, if it has one.

    Raises:
        KinoptError: the robot lacks something that the record names, or the record is not consistent.
    """
    plain = record.problem
    scene = _scene(record, robot, file)
    try:
        joints = tuple(plain["joints"])
        variables = variables_of_joints(robot, joints)
        B, n = len(plain["targets"][0]["T_base_target"]), len(variables)
        state = np.repeat(robot.default_q[None], B, axis=0)
        values = np.array(plain["state"], dtype=np.float64).reshape(B, len(record.variables))
        for column, name in enumerate(record.variables):
            if name in robot.variable_index:
                state[:, robot.variable_index[name]] = values[:, column]
        problem = IkProblem(
            targets=tuple(_target(target, B) for target in plain["targets"]),
            base_link=read.text(plain["base_link"], "base_link"),
            joints=joints,
            variables=variables,
            state=state,
            seeds=np.array(plain["seeds"], dtype=np.float64).reshape(B, -1, n),
            num_solutions=_code(plain["num_solutions"], "num_solutions"),
            min_separation=read.number(plain["min_separation"], "min_separation"),
            turns=_flag(plain["turns"], "turns"),
            preference=preference_from_plain(plain, robot, variables, B),
            scene=scene,
            clearance=read.number(plain.get("clearance", 0.0), "clearance"),
            deadline=None if record.timeout is None else time.monotonic() + record.timeout,
            random_seed=_code(plain["random_seed"], "random_seed"),
        )
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InvalidRequestError(
            f"the record is not consistent: {type(error).__name__}: {str(error)[:200]}"
        ) from None
    check_ik_problem(problem, robot)
    return problem


def _plain_problem(problem: IkProblem, robot: RobotModel) -> dict[str, Any]:
    return {
        "base_link": problem.base_link,
        "joints": list(problem.joints),
        "targets": [
            {
                "link": target.link,
                "T_base_target": [T.reshape(-1).tolist() for T in target.T_base_target],
                "position_tolerance": _listed(target.position_tolerance),
                "orientation_tolerance": _listed(target.orientation_tolerance),
                "T_link_tool": None
                if target.T_link_tool is None
                else target.T_link_tool.reshape(-1).tolist(),
                "weights": None
                if target.weights is None
                else {
                    "position": _listed(target.weights.position),
                    "orientation": _listed(target.weights.orientation),
                },
            }
            for target in problem.targets
        ],
        "state": problem.state.tolist(),
        "seeds": problem.seeds.tolist(),
        "num_solutions": int(problem.num_solutions),
        "min_separation": float(problem.min_separation),
        "turns": bool(problem.turns),
        **plain_preference(problem.preference, robot, problem.variables),
        "random_seed": int(problem.random_seed),
        "scene": None if problem.scene is None else scene_hash(problem.scene),
        "clearance": float(problem.clearance),
    }


def _scene(record: Record, robot: RobotModel, file: Path | None) -> Scene | None:
    """Load the scene beside a record."""
    name = record.problem.get("scene")
    if not name:
        return None
    path = None if file is None else _beside(file, SCENES, name, ".yaml")
    if path is None:
        raise InvalidRequestError(f"the scene {quoted(name)} does not lie beside the record")
    return load_scene(path, robot)


def _description_beside(file: Path, name: str, suffix: str) -> str | None:
    path = _beside(file, ROBOTS, name, suffix)
    if path is None:
        return None
    return read_text(path, 4 * MAX_TEXT_LENGTH, f"the description {quoted(path.name)}")


def _beside(file: Path, folder: str, name: Any, suffix: str) -> Path | None:
    """Return a file that a record names by its hash, if it lies in the record's folder: neither names nor links lead
    out."""
    if not isinstance(name, str) or not re.fullmatch(r"[0-9a-f]{16}", name):
        return None
    path = file.parent / folder / f"{name}{suffix}"
    inside = is_file(path) and path.resolve().is_relative_to(file.parent.resolve())
    return path if inside else None


def _checked(plain: dict[str, Any]) -> Record:
    """Raise InvalidShapeError where something is missing or of another type."""
    names = [field.name for field in fields(Record)]
    plain = read.mapping(plain, "the record", names, names)
    timeout = plain["timeout"]
    return Record(
        robot=read.text(plain["robot"], "robot"),
        variables=tuple(
            read.text(name, "a variable") for name in read.sequence(plain["variables"], "variables")
        ),
        lower=_numbers(plain["lower"], "lower"),
        upper=_numbers(plain["upper"], "upper"),
        urdf=read.text(plain["urdf"], "urdf"),
        srdf=read.text(plain["srdf"], "srdf"),
        solver=read.text(plain["solver"], "solver"),
        options=read.mapping(plain["options"], "options"),
        timeout=None if timeout is None else _timeout(timeout),
        date=str(plain["date"]),
        status=tuple(_code(code) for code in read.sequence(plain["status"], "status")),
        messages=tuple(
            read.text(message, "a message") for message in read.sequence(plain["messages"], "messages")
        ),
        problem=read.mapping(plain["problem"], "problem"),
    )


def _numbers(given: Any, what: str) -> Float64:
    return np.array([read.number(value, what) for value in read.sequence(given, what)], dtype=np.float64)


def _timeout(given: Any) -> float:
    timeout = read.number(given, "timeout")
    if not 0.0 <= timeout <= MOST_TIMEOUT:
        raise InvalidShapeError(f"timeout is {timeout:g}; allowed is 0 to {MOST_TIMEOUT:g} s")
    return timeout


def _code(given: Any, what: str = "a status") -> int:
    if isinstance(given, bool) or not isinstance(given, int) or abs(given) > 2**63:
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is a whole number")
    return given


def _flag(given: Any, what: str) -> bool:
    if not isinstance(given, bool):
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is true or false")
    return given


def _target(plain: Mapping[str, Any], B: int) -> PoseTarget:
    tool = plain["T_link_tool"]
    return PoseTarget(
        read.text(plain["link"], "link"),
        np.array(plain["T_base_target"], dtype=np.float64).reshape(B, 4, 4),
        _tolerance(plain["position_tolerance"]),
        _tolerance(plain["orientation_tolerance"]),
        None if tool is None else np.array(tool, dtype=np.float64).reshape(4, 4),
        _weights(plain.get("weights")),
    )


def _weights(plain: Any) -> PoseWeights | None:
    """Return weights; records of before there were any have none."""
    if plain is None:
        return None
    given = read.mapping(plain, "weights", ["position", "orientation"], ["position", "orientation"])
    return PoseWeights(given["position"], given["orientation"])


def _tolerance(plain: Any) -> Tolerance:
    if isinstance(plain, list):
        x, y, z = (float(value) for value in plain)
        return x, y, z
    return float(plain) if not isinstance(plain, bool) else math.nan


def _listed(value: Any) -> Any:
    """Return tuples as lists, and numbers as Python's."""
    if isinstance(value, tuple):
        return [_listed(part) for part in value]
    return float(value) if isinstance(value, np.floating) else value


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""
