"""Offers MoveIt's services where moveit_msgs is installed, and says so when somebody else offers them, too."""

from importlib import import_module

from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from kinopt_ros.ros.context import Context
from kinopt_ros.ros.moveit.serving import MoveItService, serve
from kinopt_ros.ros.services.compute_cartesian_path import CartesianPathService
from kinopt_ros.ros.services.compute_fk import FkService
from kinopt_ros.ros.services.plan_trajectory import PlanTrajectoryService
from kinopt_ros.ros.services.solve_ik import IkService
from kinopt_ros.ros.serving.serving import Serving

PARAMETER = "moveit_services"
WATCH_SECONDS = 2.0


def offer_moveit_services(
    context: Context,
    serving: Serving,
    solve_ik: IkService,
    compute_fk: FkService,
    trajectories: Serving,
    cartesian_path: CartesianPathService,
    plan_trajectory: PlanTrajectoryService,
) -> None:
    """Offer them in the node's namespace, if parameter moveit_services says so and moveit_msgs is installed."""
    node = context.node
    if not context.parameter(PARAMETER):
        return
    try:
        import_module("moveit_msgs.srv")
    except ImportError:
        node.get_logger().info("moveit_msgs is not installed: MoveIt's services are not offered")
        return
    # Imported late, as they import moveit_msgs.
    from kinopt_ros.ros.moveit.check_state_validity import CheckStateValidity
    from kinopt_ros.ros.moveit.compute_cartesian_path import ComputeCartesianPath
    from kinopt_ros.ros.moveit.compute_fk import ComputeFk
    from kinopt_ros.ros.moveit.compute_ik import ComputeIk
    from kinopt_ros.ros.moveit.plan_kinematic_path import PlanKinematicPath

    services: list[MoveItService] = [
        ComputeIk(context, solve_ik.task),
        ComputeFk(context, compute_fk.task),
        CheckStateValidity(context),
    ]
    slow: list[MoveItService] = [
        ComputeCartesianPath(context, cartesian_path.task),
        PlanKinematicPath(context, plan_trajectory.task, cartesian_path.task),
    ]
    for service in services:
        serve(serving, service)
    for service in slow:
        serve(trajectories, service)
    _Watch(node, [node.resolve_service_name(service.name) for service in (*services, *slow)])


class _Watch:
    """Looks for others that offer the same services: whose answer a client would get is then a matter of luck."""

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
