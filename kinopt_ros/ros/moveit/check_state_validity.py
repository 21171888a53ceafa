"""check_state_validity: whether a state keeps the limits, collides with nothing and meets constraints."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Vector3
from moveit_msgs.msg import ConstraintEvalResult, ContactInformation
from moveit_msgs.srv import GetStateValidity

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import status_message
from kinopt_ros.ros.moveit.constraints import evaluate
from kinopt_ros.ros.moveit.contact_display import ContactDisplay
from kinopt_ros.ros.moveit.robot_state import configuration_of, joint_state_of
from kinopt_ros.ros.moveit.serving import MoveItService
from kinopt_ros.ros.serving.handler_task import HandlerTask
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.scene.scene import Scene
from kinopt_ros.status import Status
from kinopt_ros.verification.configuration import limit_violation


@dataclass
class _Verdict:
    """Verdict on a state."""

    status: StatusMsg = field(default_factory=StatusMsg)
    """SUCCESS: the state was judged; its message then says what the answer has no field for. Else why it was not."""
    valid: bool = False
    contacts: list[Any] = field(default_factory=list)
    constraint_result: list[Any] = field(default_factory=list)


class CheckStateValidity(MoveItService):
    """moveit_msgs/GetStateValidity. Unlike MoveIt's, a state outside of the position limits is not valid. With a
    group_name its joints and what they move are judged, else the whole robot. The answer has no room for errors: who
    asks for what cannot be judged gets ``valid: false`` without contacts, and the node's log says why."""

    name = "check_state_validity"
    type = GetStateValidity
    answer = _Verdict

    def __init__(self, context: Context, display: ContactDisplay) -> None:
        """``display`` shows the contacts that are found."""
        self._context = context
        self._display = display
        self._checked: tuple[RobotModel, Scene] | None = None
        """Robot and scene that were checked last: their meshes are read, so the next check of them is quick."""

    def task(self, request: Any, reply: Reply) -> tuple[Task, None]:
        """Return the task of a request."""
        loaded = self._context.loaded
        known = (loaded.model, self._context.scene.of(loaded.model)) == self._checked
        patience = self._context.parameter("ik.max_timeout")

        def pool() -> SolverPool:
            return self._context.loaded.pool

        return HandlerTask(self._handle, request, reply, not known, pool, patience), None

    def write(self, response: Any, answer: Any, asked: None) -> None:
        """Write the verdict."""
        del asked
        if answer.status.code == Status.SUCCESS and answer.status.message:
            self._context.node.get_logger().info(
                f"{self.name}: not valid: {answer.status.message}", throttle_duration_sec=1.0
            )
        response.valid = answer.valid
        response.contacts = answer.contacts
        response.constraint_result = answer.constraint_result

    def _handle(self, request: Any, verdict: Any) -> None:
        from kinopt_ros.verification.collision import check_collisions

        context = self._context
        robot = context.loaded.model
        scene = context.scene.of(robot)
        variables, links = _judged(robot, request.group_name)
        given = joint_state_of(request.robot_state, robot)
        q = configuration_of(context, given, robot.link_names)
        met = evaluate(context, robot, request.constraints, q)
        bodies = links | {name for name, attached in scene.attached.items() if attached.link in links}
        [found] = check_collisions(robot, scene, q[None]).contacts
        contacts = [contact for contact in found if contact.a in bodies or contact.b in bodies]
        verdict.contacts = [self._contact(robot, scene, contact) for contact in contacts]
        self._display.show(robot, contacts)
        verdict.constraint_result = [ConstraintEvalResult(result=ok, distance=away) for ok, away in met]
        outside = _outside(robot, q, variables)
        verdict.valid = not contacts and not outside and all(ok for ok, _ in met)
        verdict.status = status_message(Status.SUCCESS, outside)
        self._checked = robot, scene

    def _contact(self, robot: RobotModel, scene: Scene, contact: Any) -> ContactInformation:
        message = ContactInformation(
            depth=contact.depth,
            contact_body_1=contact.a,
            body_type_1=_kind(robot, scene, contact.a),
            contact_body_2=contact.b,
            body_type_2=_kind(robot, scene, contact.b),
        )
        message.header.frame_id = robot.root_link
        message.header.stamp = self._context.node.get_clock().now().to_msg()
        x, y, z = ((contact.point_a + contact.point_b) / 2.0).tolist()
        message.position = Point(x=x, y=y, z=z)
        # Out of the second body, so along the way by which the first one leaves it: from the deeper end to the other.
        way = contact.point_b - contact.point_a
        length = float(np.linalg.norm(way))
        if length > 0.0:
            x, y, z = (way / length).tolist()
            message.normal = Vector3(x=x, y=y, z=z)
        return message


def _judged(robot: RobotModel, group: str) -> tuple[np.ndarray[Any, Any], set[str]]:
    """Return the variables whose limits count, and the links whose contacts do."""
    if not group:
        return np.arange(robot.nq), set(robot.link_names)
    variables = {i for joint in robot.group(group).joints for i in robot.variables_of(joint)}
    moved = {
        link
        for link in robot.link_names
        if variables & set(chain_between(robot, robot.root_link, link).variables.tolist())
    }
    return np.array(sorted(variables), dtype=np.int64), moved


def _kind(robot: RobotModel, scene: Scene, body: str) -> int:
    if body in robot.link_index:
        return int(ContactInformation.ROBOT_LINK)
    return int(
        ContactInformation.ROBOT_ATTACHED if body in scene.attached else ContactInformation.WORLD_OBJECT
    )


def _outside(robot: RobotModel, q: Any, variables: np.ndarray[Any, Any]) -> str:
    """Return which of some joints is outside of its limits; nothing if none is."""
    excess = float(limit_violation(robot, q[None], variables)[0])
    if excess <= 0.0:
        return ""
    away = np.maximum(robot.limits.lower - q, q - robot.limits.upper)[variables]
    worst = int(variables[int(away.argmax())])
    name = robot.variable_names[worst]
    return f"joint {name!r} at {q[worst]:.6g}, or one that mimics it, is {excess:.3g} outside of its limits"
