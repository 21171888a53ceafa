"""Offers MoveIt's planning scene: topics that change it, the topic that shows it, services."""

from collections.abc import Callable
from typing import Any

from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, PlanningScene, PlanningSceneWorld
from rclpy.event_handler import SubscriptionEventCallbacks

from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.qos import EACH_ONE
from kinopt_ros.ros.moveit.apply_planning_scene import ApplyPlanningSceneService
from kinopt_ros.ros.moveit.clear_octomap import ClearOctomapService
from kinopt_ros.ros.moveit.get_planning_scene import GetPlanningSceneService
from kinopt_ros.ros.moveit.monitored_scene import MonitoredScene
from kinopt_ros.ros.moveit.planning_scene import MoveItScene
from kinopt_ros.ros.moveit.scene_objects import check_sizes
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.topics.scene_update import Kind, SceneUpdateTopic

MONITORED_DEPTH = 100
"""Queue of monitored_planning_scene, as move_group's."""


def scene_services(context: Context, scene: MoveItScene) -> list[MoveItService]:
    """Return the services of the planning scene."""
    return [
        GetPlanningSceneService(scene),
        ApplyPlanningSceneService(scene, context.publish_scene),
        ClearOctomapService(scene, context.publish_scene),
    ]


def offer_scene_topics(context: Context, scene: MoveItScene, updates: SceneUpdateTopic) -> MonitoredScene:
    """Offer the topics of the planning scene; return what has to be closed.

    Args:
        context: of the node.
        scene: what they change and show.
        updates: makes changes of all topics in the order in which they come.
    """
    kinds: dict[str, tuple[Any, Callable[[Any], None]]] = {
        "planning_scene": (PlanningScene, scene.apply_scene),
        "planning_scene_world": (PlanningSceneWorld, scene.apply_world),
        "collision_object": (CollisionObject, scene.apply_object),
        "attached_collision_object": (AttachedCollisionObject, scene.apply_attached),
    }
    node = context.node
    for name, (message_type, apply) in kinds.items():
        kind = _kind(name, apply)
        node.create_subscription(
            message_type,
            name,
            lambda message, kind=kind: updates.take(message, kind),
            EACH_ONE,
            event_callbacks=SubscriptionEventCallbacks(message_lost=updates.lost),
            callback_group=updates.group,
        )
    publisher = node.create_publisher(PlanningScene, "monitored_planning_scene", MONITORED_DEPTH)
    return MonitoredScene(context, scene, publisher)


def _kind(name: str, apply: Callable[[Any], None]) -> Kind:
    return Kind(name, check_sizes, lambda context, message: apply(message))
