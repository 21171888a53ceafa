"""Readers of moveit_msgs/CollisionObject, AttachedCollisionObject, PlanningSceneWorld and PlanningScene as changes of
the scene. They mean what move_group takes them to mean; what cannot be honoured is refused, and nothing half done."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated, Any

import numpy as np
from sensor_msgs.msg import JointState

from kinopt_ros.array import Float64
from kinopt_ros.errors import (
    InvalidRequestError,
    InvalidShapeError,
    KinoptError,
    UnknownObjectError,
    UnsupportedFeatureError,
    quoted,
    shortened,
)
from kinopt_ros.geometry.octree import read_octree
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.scene_holder import Change
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import (
    configuration_from_joint_state,
    matrices_from_poses,
    pose_of_transform,
)
from kinopt_ros.ros.messages.scenes import transform_from_pose
from kinopt_ros.ros.moveit import collision_matrix
from kinopt_ros.ros.moveit.robot_state import joints_of
from kinopt_ros.ros.moveit.scene_objects import (
    Body,
    moved,
    operation_error,
    read_body,
    refuse_parts,
    require_shapes,
)
from kinopt_ros.scene import changes
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.scene.tool_frames import object_frame
from kinopt_ros.solvers.readiness import prepare_shapes

OCTOMAP = "<octomap>"
"""Id of the octomap of a planning scene."""
OCTREE = "OcTree"
Named = list[tuple[str, Change]]


@dataclass
class SceneReader:
    """Reads messages as changes, to be made by ``SceneHolder.change``. Poses of frames are looked up when they are."""

    context: Context
    robot: RobotModel
    state: JointState = field(default_factory=JointState)
    """Joint values that count before those of joint_states."""
    remarks: list[str] = field(default_factory=list)
    """Sentences about what is not kept as it was given."""
    transforms: dict[str, Float64] = field(default_factory=dict)
    """Poses in the root link of frames that a planning scene brings."""
    _bodies: list[Body] = field(default_factory=list, init=False)
    """Objects that were read, with what they are made of."""

    def __post_init__(self) -> None:
        self._newest = self.context.joint_states.of(self.robot)

    def scene(self, message: Any) -> Named:
        """Return the changes of a PlanningScene, which is a diff or the whole."""
        check_robot_name(message, self.robot)
        whole, state = not message.is_diff, message.robot_state
        _check_scales(message.link_scale, self.robot)
        self.state = joints_of(state, self.robot)
        configuration_from_joint_state(
            self.state, self.robot, self._newest.q
        )  # refused if nothing needs it, too
        self._take_transforms(message.fixed_frame_transforms)
        read: Named = []
        if whole:
            read.append(("world", _keep_listed_objects({o.id for o in message.world.collision_objects})))
        # As in move_group: what says nothing of the robot, as a diff does that is about the world, drops nothing.
        if not state.is_diff and (whole or _says_something(state)):
            kept = {one.object.id for one in state.attached_collision_objects}
            read.append(("robot_state", lambda scene: self._drop_others(scene, kept, whole)))
        for index, one in enumerate(state.attached_collision_objects):
            where = f"robot_state.attached_collision_objects[{index}]"
            if not state.is_diff and one.object.operation != one.object.ADD:
                raise InvalidRequestError(
                    f"{where}: allowed is ADD alone, as robot_state is not marked as is_diff"
                )
            read.append((where, self.attached_object(one)))
        read += [(f"world.{name}", change) for name, change in self._world(message.world, whole)]
        matrix = message.allowed_collision_matrix
        if whole or not collision_matrix.is_empty(matrix):
            read.append(("planning scene", lambda scene: self._allow(scene, matrix)))
        padding = {one.link_name: one.padding for one in message.link_padding}
        if padding:
            read.append(("link_padding", lambda scene: self._pad(scene, padding)))
        return read

    def world(self, message: Any) -> Named:
        """Return the changes that make the world what a PlanningSceneWorld says."""
        listed = {one.id for one in message.collision_objects}
        return [("collision_objects", _keep_listed_objects(listed)), *self._world(message, whole=True)]

    def world_object(self, message: Any, keeps_shapes: bool = False) -> Change:
        """Return the change that a CollisionObject asks for.

        Args:
            message: the object.
            keeps_shapes: whether adding one without shapes leaves the shapes of one that is there: those of what
                MoveIt's messages cannot say.
        """
        robot, id = self.robot, message.id
        if (
            message.operation == message.REMOVE
        ):  # clients send the whole object back: all but its id is of no use
            return _remove_all if not id else lambda scene: _remove(scene, id)
        body = self._body(message)
        if message.operation == message.MOVE:
            refuse_parts(message)
            return lambda scene: changes.move(scene, id, self._T_root(scene, body))
        if message.operation not in (message.ADD, message.APPEND):
            raise operation_error(message)
        keeps_shapes = keeps_shapes and message.operation == message.ADD
        if not keeps_shapes:
            require_shapes(body)

        def change(scene: Scene) -> Scene:
            T_root_object = self._T_root(scene, body)
            if not body.given:
                if id not in scene.objects:
                    require_shapes(body)
                new = SceneObject(id, scene.objects[id].shapes, T_root_object, body.subframes)
                return changes.add(scene, robot, new, replacing=True)
            if message.operation == message.APPEND and id in scene.objects:
                T = inverse(scene.objects[id].T_root_object) @ T_root_object
                return changes.extend(scene, id, *moved(body, T))
            new = SceneObject(id, body.shapes, T_root_object, body.subframes)
            return changes.add(scene, robot, new, replacing=True)

        return change

    def attached_object(self, message: Any) -> Change:
        """Return the change that an AttachedCollisionObject asks for."""
        given, link, id = message.object, message.link_name, message.object.id
        if given.operation == given.REMOVE:
            if link:
                self.robot.link(link)
            return lambda scene: self._detach(scene, id, link)
        if given.operation not in (given.ADD, given.APPEND):
            raise operation_error(given)
        self.robot.link(link)
        if message.detach_posture.points:
            self.remarks.append(f"detach_posture of {quoted(id)} is not used")
        touch_links = tuple(message.touch_links) or None
        body = self._body(given)
        if body.subframes and not body.given:
            raise InvalidShapeError(
                f"object {quoted(id)} has subframes and no shapes; those that it has stay"
            )

        def change(scene: Scene) -> Scene:
            if not body.given:
                if id in scene.attached:
                    scene = changes.detach(scene, self.robot, id, self._q(scene.attached[id].link))
                return changes.attach(scene, self.robot, id, link, self._q(link), touch_links)
            T_link_object = self._T_link(scene, link, body)
            if given.operation == given.APPEND and id in scene.attached:
                old = scene.attached[id]
                T = inverse(old.T_link_object) @ self._T_link(scene, old.link, body)
                return changes.extend(scene, id, *moved(body, T))
            return changes.attach_new(
                scene, self.robot, id, body.shapes, link, T_link_object, touch_links, body.subframes, True
            )

        return change

    def make_ready(self) -> None:
        """Make the shapes that were read ready, before others have to wait for it.

        It may take seconds: poses are by the transforms of before.
        """
        robot = self.robot
        for frame in {body.frame for body in self._bodies if body.frame}:
            if frame in robot.link_index or frame in self.transforms:
                continue
            if object_frame(robot, self.context.scene.of(robot), frame) is None:
                with suppress(KinoptError):  # it may be of an object of the same message
                    self.transforms[frame] = self.context.frames.T_root_frame(robot, frame, self._newest.q)
        prepare_shapes(robot, chain.from_iterable(body.shapes for body in self._bodies))

    def _body(self, message: Any) -> Body:
        body = read_body(message, self.remarks.append)
        self._bodies.append(body)
        return body

    def _world(self, message: Any, whole: bool) -> Named:
        read = [
            (f"collision_objects[{index}]", self.world_object(one, keeps_shapes=whole))
            for index, one in enumerate(message.collision_objects)
        ]
        # As in move_group, an octomap of no type says nothing in a diff.
        given = message.octomap
        if given.octomap.id or len(given.octomap.data):
            read.append(("octomap", self._octomap(given)))
        elif whole and OCTOMAP not in (one.id for one in message.collision_objects):
            read.append(("octomap", clear_octomap))
        return read

    def _octomap(self, message: Any) -> Change:
        given = message.octomap
        if not len(given.data):
            return clear_octomap
        if given.id != OCTREE:
            raise UnsupportedFeatureError(f"an octomap is of type {quoted(given.id)}; allowed is {OCTREE!r}")
        shape = read_octree(np.array(given.data, dtype=np.int8).tobytes(), given.resolution, given.binary)
        T_frame_object = transform_from_pose(message.origin, "origin of the octomap")
        if shape is None:
            return clear_octomap
        shapes = (PlacedShape(shape, np.eye(4)),)
        body = Body(OCTOMAP, message.header.frame_id, T_frame_object, shapes, {}, True)
        self._bodies.append(body)

        def change(scene: Scene) -> Scene:
            new = SceneObject(OCTOMAP, shapes, self._T_root(scene, body))
            return changes.add(scene, self.robot, new, replacing=True)

        return change

    def _drop_others(self, scene: Scene, kept: set[str], whole: bool) -> Scene:
        """Return the scene without the attached objects that a robot state, which is no diff, does not list."""
        lost = [id for id in scene.attached if id not in kept]
        if lost and not whole:
            self.remarks.append(
                f"robot_state is not marked as is_diff and does not list {shortened(lost)}: as in move_group, links "
                "carry them no longer, and they are gone"
            )
        for id in lost:
            scene = changes.remove(scene, id)
        return scene

    def _detach(self, scene: Scene, id: str, link: str) -> Scene:
        """Return the scene in which an object, or all of a link, or all, are left in the world where they are."""
        if id:
            if id not in scene.attached:
                raise UnknownObjectError(id, scene.attached)
            if link and scene.attached[id].link != link:
                raise InvalidRequestError(
                    f"object {quoted(id)} is attached to link {scene.attached[id].link!r}, and link_name is {link!r}: "
                    "leave it empty, or name that link"
                )
        for one in [id] if id else [i for i, a in scene.attached.items() if link in ("", a.link)]:
            scene = changes.detach(scene, self.robot, one, self._q(scene.attached[one].link))
        return scene

    def _allow(self, scene: Scene, matrix: Any) -> Scene:
        pairs = collision_matrix.read_pairs(matrix, scene, self.robot, self.remarks.append)
        return changes.set_allowed(scene, self.robot, pairs)

    def _pad(self, scene: Scene, padding: dict[str, float]) -> Scene:
        for name, value in padding.items():
            self.robot.link(name)
            if value != scene.padding_of(name):
                scene = changes.set_padding(scene, self.robot, value, name)
        return scene

    def _take_transforms(self, given: Sequence[Any]) -> None:
        """Take frames that a planning scene brings, for its own poses."""
        for index, one in enumerate(given):
            if one.header.frame_id not in ("", self.robot.root_link):
                raise UnsupportedFeatureError(
                    f"fixed_frame_transforms[{index}] is given in {quoted(one.header.frame_id)}; allowed is the root "
                    f"link, {self.robot.root_link!r}"
                )
            where = pose_of_transform(one.transform)
            [T] = matrices_from_poses([where], "fixed_frame_transforms", InvalidShapeError)
            self.transforms[one.child_frame_id] = T

    def _T_root(self, scene: Scene, body: Body) -> Annotated[Float64, "4 4"]:
        return np.asarray(self._T_root_frame(scene, body.frame) @ body.T_frame_object)

    def _T_link(self, scene: Scene, link: str, body: Body) -> Annotated[Float64, "4 4"]:
        if body.frame == link:
            return body.T_frame_object
        T_root_link = forward_kinematics(self.robot, self._q(link), links=(link,))[0]
        return np.asarray(inverse(T_root_link) @ self._T_root(scene, body))

    def _T_root_frame(self, scene: Scene, name: str) -> Annotated[Float64, "4 4"]:
        """Return the pose of a frame, by the objects of a scene that is being made."""
        robot = self.robot
        if not name or name == robot.root_link:
            return np.eye(4)
        found = None if name in robot.link_index else object_frame(robot, scene, name)
        if found is not None:
            T_root_link = forward_kinematics(robot, self._q(found.link), links=(found.link,))[0]
            return np.asarray(T_root_link @ found.T_link_frame)
        if name in self.transforms and name not in robot.link_index:
            return self.transforms[name]
        return np.asarray(self.context.frames.T_root_frame(robot, name, self._q(name)))

    def _q(self, frame: str) -> Annotated[Float64, "nq"]:
        """Return the configuration, to be used for the pose of a frame in the root link."""
        ways = [(frame, self.robot.root_link)]
        q = self.context.configuration(self.robot, ways, frozenset(self.state.name), self._newest)
        return configuration_from_joint_state(self.state, self.robot, q)


def clear_octomap(scene: Scene) -> Scene:
    """Return the scene without its octomap."""
    return changes.remove(scene, OCTOMAP) if OCTOMAP in scene.objects else scene


def _keep_listed_objects(listed: set[str]) -> Change:
    def change(scene: Scene) -> Scene:
        for id in [id for id in scene.objects if id not in listed and id != OCTOMAP]:
            scene = changes.remove(scene, id)
        return scene

    return change


def _says_something(state: Any) -> bool:
    return bool(
        state.attached_collision_objects or state.joint_state.name or state.multi_dof_joint_state.joint_names
    )


def _remove_all(scene: Scene) -> Scene:
    return _keep_listed_objects(set())(scene)


def _remove(scene: Scene, id: str) -> Scene:
    if id in scene.attached:
        raise InvalidShapeError(
            f"object {quoted(id)} is attached to link {scene.attached[id].link!r}: detach it before, by an "
            "AttachedCollisionObject with REMOVE"
        )
    return changes.remove(scene, id)


def check_robot_name(scene: Any, robot: RobotModel) -> None:
    """Raise InvalidRequestError if a PlanningScene is for another robot."""
    if scene.robot_model_name and scene.robot_model_name != robot.name:
        raise InvalidRequestError(
            f"the planning scene is for robot {quoted(scene.robot_model_name)}; the one in service is {robot.name!r}"
        )


def _check_scales(scales: Sequence[Any], robot: RobotModel) -> None:
    for one in scales:
        robot.link(one.link_name)
        if one.scale != 1.0:
            raise UnsupportedFeatureError(
                f"link_scale of {quoted(one.link_name)} is {one.scale:g}; allowed is 1: use link_padding, which "
                "enlarges a link by the same length everywhere"
            )
