"""Writer of moveit_msgs/PlanningScene: what the scene in service is, in MoveIt's terms."""

from array import array
from typing import Annotated, Any
from weakref import WeakKeyDictionary

import numpy as np
from moveit_msgs.msg import (
    AttachedCollisionObject,
    CollisionObject,
    LinkPadding,
    LinkScale,
    ObjectColor,
    PlanningScene,
    PlanningSceneComponents,
)

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.octree import write_octree
from kinopt_ros.geometry.shapes import Octomap
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.ros.moveit.collision_matrix import write_matrix
from kinopt_ros.ros.moveit.looks import Looks
from kinopt_ros.ros.moveit.robot_state import fill_robot_state
from kinopt_ros.ros.moveit.scene_messages import OCTOMAP, OCTREE
from kinopt_ros.ros.moveit.scene_shapes import write_shapes
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject

EVERYTHING = 2**32 - 1
"""All components of a planning scene."""
UNSAID = "kinopt_ros: MoveIt's messages cannot say its shapes"
"""Key of the type of objects whose shapes are left out: clouds, height maps, octomaps but one."""
_OCTREES: WeakKeyDictionary[Octomap, tuple[bytes, float] | None] = WeakKeyDictionary()
"""Serialized trees of octomaps: writing takes seconds for large ones, and scenes are written again and again."""


def planning_scene(
    scene: Scene, robot: RobotModel, state: RobotState, looks: Looks, components: int = EVERYTHING
) -> Any:
    """Return the message of a scene, which is whole, never a diff.

    Args:
        scene: the scene.
        robot: its robot.
        state: where the robot is; joints that nobody published are left out.
        looks: colours and types.
        components: bits of moveit_msgs/PlanningSceneComponents.
    """
    part = PlanningSceneComponents
    message = PlanningScene(is_diff=False)
    types = looks.types((*scene.objects, *scene.attached))
    octree = _octree(scene.objects.get(OCTOMAP))
    if components & part.SCENE_SETTINGS:
        message.name, message.robot_model_name = "kinopt", robot.name
    if components & (part.ROBOT_STATE | part.ROBOT_STATE_ATTACHED_OBJECTS):
        fill_known_joints(message.robot_state, robot, state)
    if components & part.ROBOT_STATE_ATTACHED_OBJECTS:
        message.robot_state.attached_collision_objects = [
            AttachedCollisionObject(
                link_name=one.link,
                object=_object(one, one.link, one.T_link_object, types, True),
                touch_links=sorted(one.touch_links),
            )
            for one in scene.attached.values()
        ]
    # Among the objects is an octomap that is no tree, as ~/apply_scene can make one.
    if components & (part.WORLD_OBJECT_NAMES | part.WORLD_OBJECT_GEOMETRY):
        with_shapes = bool(components & part.WORLD_OBJECT_GEOMETRY)
        message.world.collision_objects = [
            _object(one, robot.root_link, one.T_root_object, types, with_shapes)
            for one in scene.objects.values()
            if one.id != OCTOMAP or octree is None
        ]
    if components & part.OCTOMAP and octree is not None:
        octomap = message.world.octomap
        octomap.header.frame_id = octomap.octomap.header.frame_id = robot.root_link
        octomap.origin = poses_from_matrices(scene.objects[OCTOMAP].T_root_object[None])[0]
        data, octomap.octomap.resolution = octree
        octomap.octomap.binary, octomap.octomap.id = True, OCTREE
        octomap.octomap.data = array("b", data)
    if components & part.ALLOWED_COLLISION_MATRIX:
        message.allowed_collision_matrix = write_matrix(scene, robot)
    if components & part.LINK_PADDING_AND_SCALING:
        message.link_padding = [
            LinkPadding(link_name=link, padding=float(scene.padding_of(link))) for link in robot.link_names
        ]
        message.link_scale = [LinkScale(link_name=link, scale=1.0) for link in robot.link_names]
    if components & part.OBJECT_COLORS:
        colors = looks.colors((*scene.objects, *scene.attached))
        message.object_colors = [ObjectColor(id=id, color=color) for id, color in colors.items()]
    return message


def fill_known_joints(message: Any, robot: RobotModel, state: RobotState) -> None:
    """Write the state of all joints that somebody published into a moveit_msgs/RobotState."""
    fill_robot_state(message, robot, state.q)
    known = {
        joint.name
        for joint in robot.joints
        if joint.first_variable >= 0 and state.known[joint.first_variable]
    }
    joints, several = message.joint_state, message.multi_dof_joint_state
    kept = [i for i, name in enumerate(joints.name) if name in known]
    joints.position = [joints.position[i] for i in kept]
    joints.name = [joints.name[i] for i in kept]
    kept = [i for i, name in enumerate(several.joint_names) if name in known]
    several.transforms = [several.transforms[i] for i in kept]
    several.joint_names = [several.joint_names[i] for i in kept]


def _object(
    body: SceneObject | AttachedObject,
    frame: str,
    T_frame_object: Annotated[Float64, "4 4"],
    types: dict[str, Any],
    with_shapes: bool,
) -> Any:
    poses = poses_from_matrices(np.stack([T_frame_object, *body.subframes.values()]))
    message = CollisionObject(id=body.id, pose=poses[0], operation=CollisionObject.ADD)
    message.header.frame_id = frame
    if body.id in types:
        message.type = types[body.id]
    if not with_shapes:
        return message
    message.subframe_names, message.subframe_poses = [*body.subframes], poses[1:]
    if not write_shapes(message, body.shapes):
        message.type.key = UNSAID
    return message


def _octree(body: SceneObject | None) -> tuple[bytes, float] | None:
    """Return the serialized tree that an object is, and its resolution (m); None if it is none."""
    if body is None or len(body.shapes) != 1 or not np.array_equal(body.shapes[0].T_frame_shape, np.eye(4)):
        return None
    octomap = body.shapes[0].shape
    if not isinstance(octomap, Octomap):
        return None
    if octomap not in _OCTREES:
        try:
            _OCTREES[octomap] = write_octree(octomap)
        except InvalidShapeError:  # of cubes that are no tree
            _OCTREES[octomap] = None
    return _OCTREES[octomap]
