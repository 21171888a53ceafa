"""~/compute_cartesian_path: poses in, one verified motion along straight lines out."""

import time
from dataclasses import dataclass
from typing import Any

from kinopt_msgs.srv import ComputeCartesianPath
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError
from kinopt_ros.planning.cartesian.plan import plan_cartesian_path
from kinopt_ros.planning.cartesian.result import CartesianResult
from kinopt_ros.planning.cartesian.steps import CartesianSteps
from kinopt_ros.planning.motion import commanded_variables
from kinopt_ros.problems.chains import resolve_chain
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import (
    matrices_from_poses,
    nonnegative,
    said,
    status_message,
    trajectory_message,
)
from kinopt_ros.ros.requests.ik import tool_of
from kinopt_ros.ros.requests.planning_task import PlanningTask
from kinopt_ros.ros.requests.timeouts import timeout_of
from kinopt_ros.ros.requests.trajectory import (
    assumed_sentence,
    controller_order,
    demand,
    pace,
    start_state,
)
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService
from kinopt_ros.solvers.result import IkResult


class ComputeCartesianPathService(QueuedService):
    """Service that plans one motion along straight lines; it moves nothing."""

    name = "compute_cartesian_path"
    type = ComputeCartesianPath
    takes_seconds = True

    def task(self, request: Any, reply: Reply) -> "_PathTask":
        """Return the task of a request, as QueuedService has it."""
        return _PathTask(request.client, _read(self._context, request, reply.arrived), reply)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A request in terms of the library."""

    loaded: LoadedRobot
    arguments: dict[str, Any]
    """Arguments for ``plan_cartesian_path``."""
    assumed: str
    solver: str
    allow_fallback: bool
    timeout: float


def _read(context: Context, request: Any, arrived: float) -> _Asked:
    loaded = context.loaded
    robot = loaded.model
    if not request.waypoints:
        raise InvalidGoalError("waypoints is empty; give at least one pose")
    tip = tip_of(context, robot, request.link) if request.link else None
    group = request.group or None
    if group is None and tip is None:
        group = context.group_name(robot)
    base, link, joints = resolve_chain(robot, group, None, None if tip is None else tip.link)
    joints = one_variable_each(robot, joints)
    joints = controller_order(context.parameter("controller_joints") or (), joints, publish=False)
    frame = request.header.frame_id
    needed = {
        *context.moving(robot, [(base, frame), (base, link)]),
        *commanded_variables(robot, joints).tolist(),
    }
    scene = None if request.ignore_collisions else context.scene.of(robot)
    start = start_state(context, robot, request.state, sorted(needed), publish=False)
    T_base_frame = context.frames.T_link_frame(robot, base, frame, start.q, request.header.stamp)
    tool = tool_of(request.tool)
    timeout = timeout_of(context, request.timeout, "trajectory")
    return _Asked(
        loaded=loaded,
        arguments={
            "waypoints": T_base_frame @ matrices_from_poses(request.waypoints, "waypoints"),
            "group": group,
            "joints": joints,
            "base_link": base,
            "link": link,
            "T_link_tool": tool if tip is None else tip.with_tool(tool),
            "keep_orientation": request.keep_orientation,
            "start": start.q,
            "steps": _steps(request),
            **demand(context, scene, request),
            **pace(context, request),
            "deadline": arrived + timeout,
            "limit_tolerance": context.parameter("limit_tolerance"),
            "start_tolerance": context.parameter("start_state_tolerance"),
        },
        assumed=assumed_sentence(robot, start.state, sorted(needed), request.state.name, scene),
        solver=request.solver or context.parameter("ik.solver") or context.parameter("solver"),
        allow_fallback=context.parameter("allow_fallback") and not request.no_fallback,
        timeout=timeout,
    )


def _steps(request: Any) -> CartesianSteps:
    defaults = CartesianSteps()

    def given(name: str) -> float:
        default = getattr(defaults, name) or 0.0
        return nonnegative(getattr(request, name), name, InvalidRequestError, default)

    return CartesianSteps(
        max_step=given("max_step"),
        max_angle=given("max_angle"),
        tolerance=given("tolerance"),
        max_revolute_jump=given("max_revolute_jump"),
        max_prismatic_jump=given("max_prismatic_jump"),
        jump_factor=given("jump_factor") or None,
    )


class _PathTask(PlanningTask):
    """One request."""

    def __init__(self, client: str, asked: _Asked, reply: Reply) -> None:
        super().__init__(client, asked.loaded, asked.arguments["scene"], asked.timeout, reply.arrived)
        self.asked = asked
        self._reply = reply
        self._fallback_reason = ""

    def answer(self) -> None:
        """Plan the motion, and answer."""
        asked, reply = self.asked, self._reply
        response = reply.response()
        response.queue_time = reply.queue_time = self.waited
        self._fill(response, plan_cartesian_path(asked.loaded.model, self._solve_ik, **asked.arguments))
        response.wall_time = time.monotonic() - reply.arrived
        reply.send(response)

    def refuse(self, error: Exception) -> None:
        """Answer with an error."""
        self._reply.queue_time = self.waited
        self._reply.refuse(error)

    def _solve_ik(self, problem: IkProblem) -> IkResult:
        asked = self.asked
        pooled = asked.loaded.pool.solve_ik(problem, asked.solver, asked.allow_fallback)
        self._fallback_reason = self._fallback_reason or pooled.fallback_reason
        return pooled.result

    def _fill(self, response: Any, result: CartesianResult) -> None:
        response.status = status_message(
            result.status, result.message or said(self.asked.assumed, *result.notes)
        )
        if result.trajectory is not None:
            root = self.asked.loaded.model.root_link
            response.trajectory = trajectory_message(result.trajectory, root)
        response.fraction = result.fraction
        response.waypoints_reached = result.waypoints
        response.scene_version = result.scene_version or 0
        response.solver_used = result.solver
        response.fallback_reason = self._fallback_reason
        response.checks, response.not_checked = list(result.checks), list(result.not_checked)
