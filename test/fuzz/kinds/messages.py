"""Requests of the node's services and topics, read as the node reads them, without a running one."""

import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from rosidl_parser.definition import (
    AbstractSequence,
    AbstractString,
    Array,
    BasicType,
    BoundedSequence,
    NamespacedType,
)
from sensor_msgs.msg import JointState
from support.scene_holders import serving
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerFeedback
from visualization_msgs.srv import GetInteractiveMarkers

from fuzz.kinds import robots
from fuzz.source import ODD_NAMES, ODD_NUMBERS, Source
from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.srv import ApplyScene, CheckState, PlanTrajectory, SolveIK
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.ros.messages.states import states_from_positions
from kinopt_ros.ros.requests import scene_changes
from kinopt_ros.ros.requests.ik import read_ik_request
from kinopt_ros.ros.requests.trajectory import read_trajectory_request
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.robot.frames import Frames
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.rviz.server import MarkerServer

ROBOT = robot_from_urdf(robots.ARM, robots.ARM_SRDF)
_WORDS = (
    *ROBOT.link_names, *ROBOT.joint_by_name, *ROBOT.groups, "rest", "nearest", "x", "y", "z", "rx", "ry", "rz", "add",
    "move", "remove", "attach", "detach", "allow", "disallow", "pad", "clear", "box", "sphere", "cylinder", "plane",
    "cone", "capsule", "mesh", "height_map", "point_cloud", "octomap", "cpu", "auto", "table",
)  # fmt: skip
_RANGES = {
    "int8": 7,
    "uint8": 8,
    "int16": 15,
    "uint16": 16,
    "int32": 31,
    "uint32": 32,
    "int64": 63,
    "uint64": 64,
}
_STRINGS = tuple(name for name in ODD_NAMES if "\0" not in name)


class _Node:
    """Stand-in for a node, with what the code that reads requests asks of it."""

    def get_parameter(self, name: str) -> Any:
        """The default."""
        default = {spec.name: spec.default for spec in parameters.SPECS}[name]
        return SimpleNamespace(value=None if default == () else default)


@cache
def context() -> Context:
    """Return what requests are read in, without a node."""
    frames = Frames.__new__(Frames)
    frames._buffer = frames._listener = None  # without tf
    frames._scene_of = lambda robot: scenes.of(robot)
    loader = SimpleNamespace(loaded=SimpleNamespace(model=ROBOT, pool=None))
    said: list[str] = []
    scenes = serving(ROBOT, said.append)
    return Context(_Node(), loader, JointStates(), frames, scenes)  # type: ignore[arg-type]


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    request = SolveIK.Request(group="arm")
    request.poses = [_identity()]
    request.poses[0].position.z = 0.8
    read_ik_request(context(), request, time.monotonic())
    request.nearest, request.position_weights, request.orientation_weights = True, [1.0], [0.1, 0.1, 0.0]
    read_ik_request(context(), request, time.monotonic())


def _identity() -> Any:
    from geometry_msgs.msg import Pose

    pose = Pose()
    pose.orientation.w = 1.0
    return pose


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    here, now = context(), time.monotonic()
    what = source.randrange(7)
    if what == 0:
        request = message_of(source, SolveIK.Request, 0.2)
        if source.often(0.3):  # weights alone are refused before they are looked at
            request.nearest, request.num_solutions, request.turns, request.prefer = True, 1, False, ""
        read_ik_request(here, request, now)
    elif what == 1:
        kind = source.choice((PlanTrajectory.Request, OptimizeTrajectory.Goal))
        read_trajectory_request(here, message_of(source, kind, 0.2), now)
    elif what == 2:
        here.scene.__init__(lambda sentence: None)  # type: ignore[misc]  # every input begins with the same scene
        scene_changes.apply(here, message_of(source, ApplyScene.Request, 0.4))
    elif what == 3:
        here.joint_states.update(message_of(source, JointState, 0.7))
    elif what == 4:
        request = message_of(source, CheckState.Request, 0.5)
        names = getattr(request, "joint_names", [])
        states_from_positions(here, ROBOT, names, getattr(request, "positions", []), ROBOT.default_q)
    elif what == 5:
        _drag(source)
    else:
        poses = message_of(source, SolveIK.Request, 0.7).poses
        assert np.isfinite(matrices_from_poses(poses)).all()


def _drag(source: Source) -> None:
    """Move markers as clients do; whatever they send, all poses stay those of somewhere."""
    server = MarkerServer(lambda update: None)
    for name in _WORDS[:40]:
        marker = InteractiveMarker(name=name, pose=_identity())
        marker.header.frame_id = ROBOT.root_link
        server.set(marker)
    server.apply()
    feedback = message_of(source, InteractiveMarkerFeedback, 0.5)
    if source.often(0.7):  # what is meant for nobody is refused before it is looked at
        feedback.marker_name, feedback.event_type = source.choice(_WORDS[:40]), source.randrange(6)
        feedback.header.frame_id = source.choice(("", ROBOT.root_link, "table"))
    try:
        server.take(feedback)
    finally:
        server.apply()
        poses = [one.pose for one in server.answer(GetInteractiveMarkers.Response()).markers]
        assert np.isfinite(matrices_from_poses(poses)).all()


def message_of(source: Source, kind: Any, share: float) -> Any:
    """A message of which a share of the fields, and all of the nested ones that are filled, have some value."""
    message = kind()
    for name, type_ in zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES, strict=True):
        if source.often(share):
            setattr(message, name, _field(source, type_))
    return message


def _field(source: Source, type_: Any) -> Any:
    if isinstance(type_, NamespacedType):
        module = __import__(".".join(type_.namespaces), fromlist=[type_.name])
        if type_.name == "Pose" and source.often(0.7):
            return _near(source)
        return message_of(source, getattr(module, type_.name), source.choice((0.3, 0.9)))
    if isinstance(type_, Array):
        return [_field(source, type_.value_type) for _ in range(type_.size)]
    if isinstance(type_, AbstractSequence):
        count = source.few()
        if isinstance(type_, BoundedSequence):
            count = min(count, type_.maximum_size)
        return [_field(source, type_.value_type) for _ in range(count)]
    if isinstance(type_, AbstractString):
        return source.choice(_WORDS) if source.often(0.8) else source.choice(_STRINGS)
    if isinstance(type_, BasicType) and type_.typename in _RANGES:
        bits = _RANGES[type_.typename]
        lowest = 0 if type_.typename.startswith("u") else -(2**bits)
        return source.choice((0, 0, 1, 1, 2, 3, 10, 2**bits - 1, lowest))
    if isinstance(type_, BasicType) and type_.typename == "boolean":
        return source.often(0.5)
    if isinstance(type_, BasicType) and type_.typename == "octet":
        return bytes([source.randrange(256)])
    return source.choice(ODD_NUMBERS) if source.often(0.3) else source.uniform(0.01, 1.0)


def _near(source: Source) -> Any:
    pose = _identity()
    pose.position.x, pose.position.z = source.uniform(-0.3, 0.3), source.uniform(0.3, 0.8)
    return pose
