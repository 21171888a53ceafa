"""IK problems as YAML: to be kept, sent to somebody, and solved again to the last bit.

A record holds names, not indices, so that it outlives changes of a robot's description; the description itself lies
beside it, once per content, as ``robots/<hash>.urdf`` and ``.srdf``, and so does the scene, as ``scenes/<hash>.yaml``.
Numbers are written so that they are read back bit for bit.
"""

import hashlib
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, quoted
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Posture, Tolerance
from kinopt_ros.problems.validation import check_ik_problem, variables_of_joints
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.files import keep_scene, load_scene, scene_hash
from kinopt_ros.scene.scene import Scene

VERSION = 1
ROBOTS = "robots"
"""Folder of the descriptions, beside the records."""
SCENES = "scenes"
"""Likewise of the scenes."""


@dataclass(frozen=True, eq=False)
class Record:
    """A problem, for whom it was, and what became of it."""

    robot: str
    """Name of the robot."""
    variables: tuple[str, ...]
    """Its variables, in the order of ``state``."""
    lower: Float64
    """Its position limits, which parameters may have changed, (nq,)."""
    upper: Float64
    urdf: str
    """Hash of the description beside the record; empty if there is none."""
    srdf: str
    solver: str
    options: Mapping[str, Any]
    timeout: float | None
    """s that the solver had; None: no deadline."""
    date: str
    status: tuple[int, ...]
    """A code per request, as in ``Status``; empty if unknown."""
    messages: tuple[str, ...]
    problem: Mapping[str, Any]
    """The problem in plain values; of its scene the hash."""

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
    """A record of a problem; ``urdf`` and ``srdf`` are texts, of which it keeps the hashes."""
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
        problem=_plain_problem(problem),
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
            place.write_text(text, encoding="utf-8")
    plain = {
        "kinopt_record": VERSION,
        **{
            name: value.tolist() if isinstance(value, np.ndarray) else _listed(value)
            for name, value in vars(record).items()
        },
    }
    file.write_text(yaml.safe_dump(plain, sort_keys=False, default_flow_style=None), encoding="utf-8")


def load_record(file: Path) -> Record:
    """Read a record.

    Raises:
        InvalidRequestError: it cannot be read, or is none.
    """
    try:
        plain = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidRequestError(f"{file.name} cannot be read: {error}") from None
    if not isinstance(plain, dict) or plain.pop("kinopt_record", None) != VERSION:
        raise InvalidRequestError(f"{file.name} is no record of version {VERSION} of kinopt_ros")
    try:
        return Record(
            **{
                **plain,
                "variables": tuple(plain["variables"]),
                "lower": np.array(plain["lower"], dtype=np.float64),
                "upper": np.array(plain["upper"], dtype=np.float64),
                "status": tuple(int(code) for code in plain["status"]),
                "messages": tuple(str(message) for message in plain["messages"]),
            }
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequestError(f"{file.name} is not a whole record: {error}") from None


def recorded_robot(record: Record, file: Path) -> RobotModel:
    """The robot from the description beside a record, with the limits that it had.

    Raises:
        InvalidRequestError: there is no description beside it.
        RobotDescriptionError: it is not usable.
    """
    urdf = file.parent / ROBOTS / f"{record.urdf}.urdf"
    srdf = file.parent / ROBOTS / f"{record.srdf}.srdf"
    if not record.urdf or not urdf.is_file():
        raise InvalidRequestError(
            f"the description of robot {record.robot!r} does not lie beside {file.name}"
        )
    text = srdf.read_text(encoding="utf-8") if record.srdf and srdf.is_file() else None
    robot = robot_from_urdf(urdf.read_text(encoding="utf-8"), text)
    if robot.virtual_joint is not None and set(record.variables) > set(
        robot.variable_names
    ):  # it was a joint
        robot = robot_from_urdf(urdf.read_text(encoding="utf-8"), text, virtual_joint=True)
    if robot.variable_names != record.variables:
        raise InvalidRequestError(f"the description beside {file.name} has other joints than the record")
    return replace(robot, limits=replace(robot.limits, lower=record.lower.copy(), upper=record.upper.copy()))


def recorded_problem(record: Record, robot: RobotModel, file: Path | None = None) -> IkProblem:
    """The problem of a record for a robot that has its joints, due after the recorded time from now.

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
        posture = plain["posture"]
        problem = IkProblem(
            targets=tuple(_target(target, B) for target in plain["targets"]),
            base_link=plain["base_link"],
            joints=joints,
            variables=variables,
            state=state,
            seeds=np.array(plain["seeds"], dtype=np.float64).reshape(B, -1, n),
            num_solutions=plain["num_solutions"],
            min_separation=plain["min_separation"],
            turns=plain["turns"],
            posture=posture
            and Posture(
                np.array(posture["reference"], dtype=np.float64).reshape(B, n),
                np.array(posture["weight"], dtype=np.float64),
            ),
            manipulability=plain.get("manipulability", 0.0),
            scene=scene,
            clearance=plain.get("clearance", 0.0),
            deadline=None if record.timeout is None else time.monotonic() + record.timeout,
            random_seed=plain["random_seed"],
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InvalidRequestError(f"the record is not consistent: {type(error).__name__}: {error}") from None
    check_ik_problem(problem, robot)
    return problem


def _plain_problem(problem: IkProblem) -> dict[str, Any]:
    posture = problem.posture
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
            }
            for target in problem.targets
        ],
        "state": problem.state.tolist(),
        "seeds": problem.seeds.tolist(),
        "num_solutions": int(problem.num_solutions),
        "min_separation": float(problem.min_separation),
        "turns": bool(problem.turns),
        "posture": posture and {"reference": posture.reference.tolist(), "weight": posture.weight.tolist()},
        "manipulability": float(problem.manipulability),
        "random_seed": int(problem.random_seed),
        "scene": None if problem.scene is None else scene_hash(problem.scene),
        "clearance": float(problem.clearance),
    }


def _scene(record: Record, robot: RobotModel, file: Path | None) -> Scene | None:
    """The scene beside a record."""
    name = record.problem.get("scene")
    if not name:
        return None
    path = None if file is None else file.parent / SCENES / f"{name}.yaml"
    if path is None or not re.fullmatch(r"[0-9a-f]{16}", str(name)) or not path.is_file():
        raise InvalidRequestError(f"the scene {quoted(str(name))} does not lie beside the record")
    return load_scene(path, robot)


def _target(plain: Mapping[str, Any], B: int) -> PoseTarget:
    tool = plain["T_link_tool"]
    return PoseTarget(
        plain["link"],
        np.array(plain["T_base_target"], dtype=np.float64).reshape(B, 4, 4),
        _tolerance(plain["position_tolerance"]),
        _tolerance(plain["orientation_tolerance"]),
        None if tool is None else np.array(tool, dtype=np.float64).reshape(4, 4),
    )


def _tolerance(plain: Any) -> Tolerance:
    if isinstance(plain, list):
        x, y, z = (float(value) for value in plain)
        return x, y, z
    return float(plain) if not isinstance(plain, bool) else math.nan


def _listed(value: Any) -> Any:
    """Tuples as lists, numbers as Python's."""
    if isinstance(value, tuple):
        return [_listed(part) for part in value]
    return float(value) if isinstance(value, np.floating) else value


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""
