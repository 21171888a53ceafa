"""Offers MoveIt's services where moveit_msgs is installed, and warns when somebody else offers them, too."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.motion.controllers import Controllers
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.moveit.serving import MoveItService, serve
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.serving import Serving
from kinopt_ros.ros.serving.urgent import UrgentExecutor
from kinopt_ros.ros.topics.scene_update import SceneUpdateTopic

MakeTask: TypeAlias = Callable[[Any, Reply], Task]
"""Function of one of our services that makes the task of a request."""
PARAMETER = "moveit_services"
WATCH_SECONDS = 2.0


class Closing(Protocol):
    """What has to be closed before the node is."""

    def close(self) -> None:
        """End what it does."""


def offer_moveit_services(
    context: Context,
    serving: Serving,
    trajectories: Serving,
    tasks: Mapping[str, MakeTask],
    updates: SceneUpdateTopic,
    output: MotionOutput,
    controllers: Controllers,
    urgent: UrgentExecutor,
) -> list[Closing]:
    """Offer MoveIt's services, actions and topics in the node's namespace; return what has to be closed.

    Nothing is offered if parameter moveit_services says so, or moveit_msgs is not there.

    Args:
        context: of the node.
        serving: for what is quick.
        trajectories: for what takes seconds.
        tasks: of our services, by name.
        updates: makes changes of the scene that come by topic.
        output: what motions are sent through.
        controllers: who does them.
        urgent: hears what may not wait.
    """
    node = context.node
    if not context.parameter(PARAMETER):
        return []
    try:
        import_module("moveit_msgs.srv")
    except ImportError:
        node.get_logger().info("moveit_msgs is not installed: MoveIt's services are not offered")
        return []
    # Imported late, as they import moveit_msgs.
    from kinopt_ros.ros.moveit.check_state_validity import CheckStateValidity
    from kinopt_ros.ros.moveit.compute_cartesian_path import ComputeCartesianPath
    from kinopt_ros.ros.moveit.compute_fk import ComputeFk
    from kinopt_ros.ros.moveit.compute_ik import ComputeIk
    from kinopt_ros.ros.moveit.contact_display import ContactDisplay
    from kinopt_ros.ros.moveit.execute_trajectory import offer_execute_trajectory
    from kinopt_ros.ros.moveit.move_action import offer_move_action
    from kinopt_ros.ros.moveit.moving_goals import MoveItActions
    from kinopt_ros.ros.moveit.other_motions import OtherMotions
    from kinopt_ros.ros.moveit.plan_kinematic_path import PlanKinematicPath
    from kinopt_ros.ros.moveit.planners import offer_planner_services
    from kinopt_ros.ros.moveit.planning_scene import MoveItScene
    from kinopt_ros.ros.moveit.scene_offer import offer_scene_topics, scene_services
    from kinopt_ros.ros.moveit.sequences import offer_plan_sequence_path, offer_sequence_move_group

    scene = MoveItScene(context)
    display = node.create_publisher(
        import_module("moveit_msgs.msg").DisplayTrajectory, "display_planned_path", 10
    )
    others = OtherMotions(context, output)
    contacts = ContactDisplay(context)
    planner = PlanKinematicPath(
        context,
        tasks["plan_trajectory"],
        tasks["compute_cartesian_path"],
        display.publish,
        others,
        contacts,
    )
    quick: list[MoveItService] = [
        ComputeIk(context, tasks["solve_ik"]),
        ComputeFk(context, tasks["compute_fk"]),
        CheckStateValidity(context, contacts),
        *scene_services(context, scene),
    ]
    slow: list[MoveItService] = [
        ComputeCartesianPath(context, tasks["compute_cartesian_path"], others),
        planner,
    ]
    for service in quick:
        serve(serving, service)
    for service in slow:
        serve(trajectories, service)
    actions = MoveItActions(context, output, controllers, urgent)
    offer_execute_trajectory(actions)
    offer_move_action(actions, trajectories, planner)
    offer_sequence_move_group(actions, trajectories, planner)
    names = [service.name for service in (*quick, *slow)]
    names += offer_planner_services(node)
    names.append(offer_plan_sequence_path(node, trajectories, planner))
    names += [f"{name}/_action/send_goal" for name in actions.names]
    _Watch(node, [node.resolve_service_name(name) for name in names])
    return [actions, offer_scene_topics(context, scene, updates)]


class _Watch:
    """Looks for others that offer equal services: whose answer a client would get is then a matter of luck."""

    def __init__(self, node: Node, names: list[str]) -> None:
        self._node = node
        self._names = names
        self._said: frozenset[str] = frozenset()
        # Not by simulated time, which can stand still.
        node.create_timer(WATCH_SECONDS, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _look(self) -> None:
        shared = frozenset(name for name in self._names if self._node.count_services(name) > 1)
        if shared - self._said:
            self._node.get_logger().error(
                f"{', '.join(sorted(shared))}: another node, such as move_group, offers them, too, and clients get "
                f"the answer of either. Start one of them in a namespace, or this one with {PARAMETER}: false"
            )
        self._said = shared
