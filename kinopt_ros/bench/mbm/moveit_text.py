"""Reader of a MoveIt planning scene and a motion plan request as YAML, as MotionBenchMaker (robowflex) writes them.

What would change the problem and is not read is refused by name, whatever else a message may hold is listed here.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, KinoptError, quoted, shown
from kinopt_ros.files import read_text
from kinopt_ros.geometry.shapes import Box, Cylinder, PlacedShape, Shape, Sphere
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text as read
from kinopt_ros.scene.changes import add
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.scene.shape_text import pose_of

MOST_OBJECTS = 10_000
_SHAPES: dict[str, tuple[int, Callable[..., Shape]]] = {
    "box": (3, Box),
    "sphere": (1, Sphere),
    "cylinder": (2, lambda height, radius: Cylinder(radius, height)),
}
"""Numbers and shape of a ``shape_msgs/SolidPrimitive``; a cylinder's height comes first there."""
_SCENE_UNREAD = (
    "name", "robot_state", "allowed_collision_matrix", "object_colors", "is_diff",
)  # fmt: skip
"""The request says where the robot starts, and the SRDF which links may touch."""
_SCENE_REFUSED = ("link_padding", "link_scale")
_OBJECT_UNREAD = ("type", "operation")
_OBJECT_REFUSED = ("meshes", "mesh_poses", "planes", "plane_poses", "subframe_names", "subframe_poses")
_REQUEST_UNREAD = (
    "workspace_parameters", "planner_id", "pipeline_id", "num_planning_attempts", "allowed_planning_time",
    "max_velocity_scaling_factor", "max_acceleration_scaling_factor",
)  # fmt: skip
"""How somebody else searched; scaling is an option of the benchmark."""
_REQUEST_REFUSED = ("path_constraints", "trajectory_constraints", "reference_trajectories")
_GOAL_REFUSED = ("position_constraints", "orientation_constraints", "visibility_constraints")
_JOINT_UNREAD = ("tolerance_above", "tolerance_below", "weight")
"""The goal is the value itself."""


@dataclass(frozen=True)
class Request:
    """What a motion plan request asks for."""

    group: str
    start: dict[str, float]
    """Values by name of the joint, rad or m."""
    goal: dict[str, float]


def robot_name_of(path: Path) -> str:
    """Return the name of the robot that a scene is for. Raises as ``load_moveit_scene``."""
    with _at(path):
        return read.text(_scene_of(path).get("robot_model_name"), "robot_model_name")


def load_moveit_scene(path: Path, robot: RobotModel) -> Scene:
    """Load a planning scene of boxes, spheres and cylinders.

    Raises:
        InvalidRequestError: the file cannot be read, or holds something else; the message says where.
    """
    with _at(path):
        world = read.mapping(_scene_of(path).get("world"), "world", ("collision_objects", "octomap"))
        _refuse(world, ("octomap",), "world")
        objects = read.sequence(world.get("collision_objects"), "collision_objects")
        if len(objects) > MOST_OBJECTS:
            raise InvalidShapeError(
                f"there are {len(objects)} collision_objects; at most {MOST_OBJECTS} are read"
            )
        scene = EMPTY_SCENE
        for index, said in enumerate(objects):
            with _at(f"collision_objects[{index}]"):
                scene = add(scene, robot, _object_of(said, robot))
        return scene


def load_request(path: Path) -> Request:
    """Load a request whose only goal is a configuration. Raises as ``load_moveit_scene``."""
    with _at(path):
        keys = ("start_state", "goal_constraints", "group_name", *_REQUEST_UNREAD, *_REQUEST_REFUSED)
        given = read.mapping(_content(path), "it", keys, ("start_state", "goal_constraints", "group_name"))
        _refuse(given, _REQUEST_REFUSED, "the request")
        return Request(
            read.text(given["group_name"], "group_name"),
            _state_of(given["start_state"]),
            _goal_of(given["goal_constraints"]),
        )


def _content(path: Path) -> Any:
    return read.parsed(read_text(path, read.LARGEST_TEXT, "it"), plain_exponents=True)


def _scene_of(path: Path) -> dict[str, Any]:
    keys = ("robot_model_name", "world", "fixed_frame_transforms", *_SCENE_UNREAD, *_SCENE_REFUSED)
    given: dict[str, Any] = read.mapping(_content(path), "it", keys, ("robot_model_name", "world"))
    _refuse(given, _SCENE_REFUSED, "the scene")
    state = read.mapping(given.get("robot_state"), "robot_state")
    _refuse(state, ("attached_collision_objects",), "robot_state")
    for moved in read.sequence(given.get("fixed_frame_transforms"), "fixed_frame_transforms"):
        moved = read.mapping(
            moved, "a fixed frame", ("header", "child_frame_id", "transform"), ("transform",)
        )
        _check_identity(moved["transform"], "a fixed frame")
    return given


def _object_of(said: Any, robot: RobotModel) -> SceneObject:
    keys = ("id", "header", "pose", "primitives", "primitive_poses", *_OBJECT_UNREAD, *_OBJECT_REFUSED)
    said = read.mapping(said, "it", keys, ("id", "primitives", "primitive_poses"))
    _refuse(said, _OBJECT_REFUSED, "it")
    header = read.mapping(said.get("header"), "header", ("frame_id", "stamp", "seq"))
    frame = header.get("frame_id", "")
    if frame not in ("", "world", robot.root_link):
        raise InvalidShapeError(
            f"frame_id is {shown(frame)}; allowed is the robot's root link, {robot.root_link}"
        )
    shapes = read.sequence(said["primitives"], "primitives")
    poses = read.sequence(said["primitive_poses"], "primitive_poses")
    if not shapes or len(shapes) != len(poses):
        raise InvalidShapeError(f"there are {len(shapes)} primitives and {len(poses)} primitive_poses")
    placed = tuple(
        PlacedShape(_shape_of(shape), _pose_of(pose, "a primitive pose"))
        for shape, pose in zip(shapes, poses, strict=True)
    )
    T_root_object = np.eye(4) if said.get("pose") is None else _pose_of(said["pose"], "the pose")
    return SceneObject(read.text(said["id"], "id"), placed, T_root_object)


def _shape_of(said: Any) -> Shape:
    said = read.mapping(said, "a primitive", ("type", "dimensions"), ("type", "dimensions"))
    kind = said["type"]
    if not isinstance(kind, str) or kind not in _SHAPES:
        raise InvalidShapeError(f"a primitive's type is {shown(kind)}; allowed are {', '.join(_SHAPES)}")
    count, make = _SHAPES[kind]
    return make(*read.numbers(said["dimensions"], f"dimensions of a {kind}", count))


def _pose_of(said: Any, what: str) -> Annotated[Float64, "4 4"]:
    said = read.mapping(said, what, ("position", "orientation"), ("position", "orientation"))
    q = np.array(read.numbers(said["orientation"], f"orientation of {what}", 4))
    length = float(np.linalg.norm(q))
    if not 0.9 < length < 1.1:  # MotionBenchMaker rounds some to a few digits
        raise InvalidShapeError(f"orientation of {what} has length {length:.6g}; allowed is 1")
    return pose_of({"xyz": said["position"], "xyzw": (q / length).tolist()}, what)


def _state_of(given: Any) -> dict[str, float]:
    keys = ("joint_state", "multi_dof_joint_state", "attached_collision_objects", "is_diff")
    given = read.mapping(given, "start_state", keys, ("joint_state",))
    _refuse(given, ("attached_collision_objects",), "start_state")
    floating = read.mapping(given.get("multi_dof_joint_state"), "multi_dof_joint_state")
    for moved in read.sequence(floating.get("transforms"), "transforms"):
        _check_identity(moved, "a transform of multi_dof_joint_state")
    state = read.mapping(
        given["joint_state"],
        "joint_state",
        ("header", "name", "position", "velocity", "effort"),
        ("name", "position"),
    )
    names = [read.text(name, "a joint") for name in read.sequence(state["name"], "name")]
    return _once(zip(names, read.numbers(state["position"], "position", len(names)), strict=True))


def _goal_of(given: Any) -> dict[str, float]:
    goals = read.sequence(given, "goal_constraints")
    if len(goals) != 1:
        raise InvalidRequestError(f"there are {len(goals)} goal_constraints; allowed is one")
    goal = read.mapping(
        goals[0], "the goal", ("name", "joint_constraints", *_GOAL_REFUSED), ("joint_constraints",)
    )
    _refuse(goal, _GOAL_REFUSED, "the goal")
    values = []
    for said in read.sequence(goal["joint_constraints"], "joint_constraints"):
        said = read.mapping(
            said, "a joint constraint", ("joint_name", "position", *_JOINT_UNREAD), ("joint_name", "position")
        )
        values.append(
            (read.text(said["joint_name"], "joint_name"), read.number(said["position"], "position"))
        )
    return _once(values)


def _once(values: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in values:
        if name in found:
            raise InvalidRequestError(f"joint {quoted(name)} is given twice")
        found[name] = value
    return found


def _check_identity(said: Any, what: str) -> None:
    said = read.mapping(said, what, ("translation", "rotation"), ("translation", "rotation"))
    place = _pose_of({"position": said["translation"], "orientation": said["rotation"]}, what)
    if not np.allclose(place, np.eye(4), rtol=0.0, atol=1e-9):
        raise InvalidRequestError(f"{what} is not at the origin; allowed is a robot that stands there")


def _refuse(given: dict[str, Any], names: Collection[str], what: str) -> None:
    """Refuse what this reader cannot honour, unless it is empty."""
    for name in names:
        if given.get(name):
            raise InvalidRequestError(f"{what} has {name}, which is not read here")


@contextmanager
def _at(where: str | Path) -> Iterator[None]:
    """Put the place before the message of an error."""
    try:
        yield
    except KinoptError as error:
        raise InvalidRequestError(
            f"{quoted(str(where), 300) if isinstance(where, Path) else where}: {error}"
        ) from error
