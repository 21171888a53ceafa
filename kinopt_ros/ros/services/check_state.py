"""~/check_state: whether joint states keep the limits and collide with nothing."""

from typing import Annotated, Any

import numpy as np
from geometry_msgs.msg import Point

from kinopt_msgs.msg import Contact as ContactMsg
from kinopt_msgs.srv import CheckState
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import nonnegative, said, status_message
from kinopt_ros.ros.messages.states import states_from_positions
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status
from kinopt_ros.verification.configuration import limit_violation

QUICK_STATES = 4
"""Most states of a quick request; larger batches go to the slow lane."""
MOST_NAMED = 3
"""Most pairs, or joints, that a sentence names."""
LIMIT_CHECKS = ("finite numbers", "joint limits", "mimic joint limits")


class CheckStateService(QueuedService):
    """Service that checks limits and collisions of one or many states."""

    name = "check_state"
    type = CheckState

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._checked: tuple[RobotModel, Scene] | None = None
        """Robot and scene that were checked last: their meshes are read, so the next check of them is quick."""

    def task(self, request: Any, reply: Reply) -> Task:
        """Return the task of a request, as QueuedService has it."""
        loaded = self._context.loaded
        known = (loaded.model, self._context.scene.of(loaded.model)) == self._checked
        many = len(request.positions) > QUICK_STATES * max(len(request.joint_names), 1)
        patience = self._context.parameter("ik.max_timeout")

        def pool() -> SolverPool:
            return self._context.loaded.pool

        return HandlerTask(self.handle, request, reply, many or not known, pool, patience)

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request cannot be answered."""
        # Imported late, as what they import is heavy: a node that checks no collisions need not have it.
        from kinopt_ros.verification.collision import (
            SELF_COLLISION,
            WORLD_COLLISION,
            check_collisions,
            left_out,
            not_checked,
            self_collision_remedy,
        )

        context = self._context
        robot = context.loaded.model
        scene = context.scene.of(robot)
        named = frozenset(request.joint_names)
        clearance = nonnegative(request.clearance, "clearance", InvalidRequestError, 0.0)
        ways = [(robot.root_link, link) for link in robot.link_names]
        present = context.configuration(robot, ways, named)
        q = states_from_positions(context, robot, request.joint_names, request.positions, present)
        report = check_collisions(robot, scene, q, clearance)
        excess = limit_violation(robot, q, np.arange(robot.nq))
        for row, contacts in enumerate(report.contacts):
            found = [(c.a, c.b, clearance - c.depth) for c in contacts]
            response.contacts += [_contact(row, *one) for one in found]
            outside = _limits_sentence(robot, q[row]) if excess[row] > 0.0 else ""
            code = Status.START_STATE_INVALID if outside else Status.SUCCESS
            code = code if report.free[row] else Status.START_STATE_IN_COLLISION
            response.codes.append(int(code))
            response.valid.append(code is Status.SUCCESS)
            touching = _contacts_sentence(found, clearance) + self_collision_remedy(robot, contacts)
            response.messages.append(said(touching, outside))
        if not request.contacts_only:
            self._fill_closest(robot, scene, q, response)
        response.scene_version = scene.version
        response.checks = [*LIMIT_CHECKS, SELF_COLLISION, WORLD_COLLISION]
        response.not_checked = list(not_checked(robot))
        response.status = status_message(
            Status.SUCCESS, said(context.assumed(robot, ways, named), *left_out(robot))
        )
        self._checked = robot, scene

    def _fill_closest(
        self, robot: RobotModel, scene: Scene, q: Annotated[Float64, "N nq"], response: Any
    ) -> None:
        from kinopt_ros.verification.collision import clearance_of

        for row, state in enumerate(q):
            nearest = clearance_of(robot, scene, state)
            response.closest.append(_contact(row, nearest.a, nearest.b, nearest.distance))
            response.closest_points += [_point(nearest.point_a), _point(nearest.point_b)]


def _contact(row: int, first: str, second: str, distance: float) -> ContactMsg:
    return ContactMsg(state=row, first=first, second=second, distance=float(distance))


def _point(p: Annotated[Float64, "3"] | None) -> Point:
    x, y, z = (float("nan"),) * 3 if p is None else p.tolist()
    return Point(x=x, y=y, z=z)


def _contacts_sentence(found: list[tuple[str, str, float]], clearance: float) -> str:
    """Return a sentence that says what touches what, the deepest first."""
    said = [
        f"{a!r} and {b!r} are {-d:.4g} m in each other"
        if d < 0.0
        else f"{a!r} and {b!r} are {d:.4g} m apart, less than the clearance of {clearance:g} m"
        for a, b, d in found[:MOST_NAMED]
    ]
    more = [f"{len(found) - MOST_NAMED} more pairs"] if len(found) > MOST_NAMED else []
    return "; ".join([*said, *more])


def _limits_sentence(robot: RobotModel, q: Annotated[Float64, "nq"]) -> str:
    """Return a sentence that says which joints are outside of their limits."""
    limits = robot.limits
    outside = np.flatnonzero((q < limits.lower) | (q > limits.upper))
    said = [
        f"{robot.variable_names[i]!r} is {q[i]:.6g}; allowed is {limits.lower[i]:.6g} to {limits.upper[i]:.6g}"
        for i in outside[:MOST_NAMED]
    ]
    more = [f"{len(outside) - MOST_NAMED} more joints are outside of their limits"]
    return (
        "; ".join([*said, *(more if len(outside) > MOST_NAMED else [])])
        or "a mimic joint is outside of its limits"
    )
