"""Filling of answers of kinopt_msgs/PlanTrajectory and results of kinopt_msgs/OptimizeTrajectory."""

from typing import Any

from geometry_msgs.msg import Quaternion
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from kinopt_msgs.msg import PathViolation
from kinopt_msgs.msg import TurningJoint as TurningJointMsg
from kinopt_ros.planning.solver_pool import Pooled
from kinopt_ros.ros.messages.conversions import flat_array, said, status_message, trajectory_message
from kinopt_ros.ros.requests.costs import cost_values
from kinopt_ros.ros.requests.trajectory import TrajectoryRequest
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult, TurningJoint


def empty_answer(response: Any) -> Any:
    """Return a response that says that there is no motion."""
    response.goal_index = -1
    response.clearance = response.length = response.violation.time = float("nan")
    return response


def fill_answer(response: Any, asked: TrajectoryRequest, pooled: Pooled[TrajectoryResult]) -> None:
    """Put a result into a response."""
    result = pooled.result
    empty_answer(response)
    response.status = status_message(
        result.status, said(asked.assumed, *result.notes) if result.success else result.message
    )
    response.solver_used = result.solver
    response.fallback_reason = pooled.fallback_reason
    response.scene_version = result.scene_version or 0
    response.checks, response.not_checked = list(result.checks), list(result.not_checked)
    response.stages, response.stage_times = list(result.stages), list(result.stages.values())
    response.cost_values = cost_values(result.costs)
    if result.trajectory is not None:
        response.trajectory = trajectory_message(result.trajectory, asked.loaded.model.root_link)
        response.turning = [_turning_joint(one) for one in result.turning]
        response.goal_index = result.goal
        response.clearance, response.length = result.clearance, result.length
        response.duration = result.trajectory.duration
    if result.attempt is not None:
        response.violation = _violation(asked, result.attempt)


def _turning_joint(one: TurningJoint) -> Any:
    before, after = (
        Quaternion(w=w, x=x, y=y, z=z) for w, x, y, z in (one.before.tolist(), one.after.tolist())
    )
    return TurningJointMsg(joint=one.joint, angles=list(one.angles), before=before, after=after)


def _violation(asked: TrajectoryRequest, attempt: PathAttempt) -> PathViolation:
    violation = attempt.violation
    message = PathViolation(message=violation.message)
    message.time = float("nan") if violation.time is None else violation.time
    if attempt.state is not None:
        message.state = JointState(name=list(asked.problem.joints), position=flat_array(attempt.state))
    return message


def whole_controller(message: JointTrajectory, names: list[str], positions: list[float]) -> JointTrajectory:
    """Return a motion with the controller's joints that do not move put in.

    Args:
        message: of some of the controller's joints, in its order.
        names: all joints of the controller.
        positions: where they are, rad or m.
    """
    columns = {name: k for k, name in enumerate(message.joint_names)}
    if len(columns) == len(names):
        return message
    whole = JointTrajectory(header=message.header, joint_names=names)
    for point in message.points:
        extended = type(point)(time_from_start=point.time_from_start)
        extended.positions = [
            point.positions[columns[name]] if name in columns else value
            for name, value in zip(names, positions, strict=True)
        ]
        for field in ("velocities", "accelerations"):
            given = getattr(point, field)
            setattr(extended, field, [given[columns[name]] if name in columns else 0.0 for name in names])
        whole.points.append(extended)
    return whole
