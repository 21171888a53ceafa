"""Moves of configurations out of collisions while their tips stay: along self-motions and free axes of the targets."""

from typing import TYPE_CHECKING, Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import KinematicChain, Motion
from kinopt_ros.robot.model import RobotModel

if TYPE_CHECKING:
    from kinopt_ros.collision.field import SphereField

STEPS = 25
MARGIN = 0.02
"""Distance beyond contact that they are moved, m, as the end of the way is not exact."""
_LARGEST_STEP = 0.15
"""Largest step of any variable, rad or m."""
_DAMPING = 1e-6


def moved_clear(
    robot: RobotModel,
    problem: IkProblem,
    chains: tuple[KinematicChain, ...],
    field: "SphereField",
    q: Annotated[Float64, "M n"],
    request: int,
) -> Annotated[Float64, "M n"]:
    """Move configurations of the solved variables from q to less cost in the field; they end not exactly at the target.

    Steps of the subgradient method of B. T. Polyak (1969) for a cost whose least value is 0, projected into the null
    space of the task, to which the error is corrected at every step.

    Args:
        robot: the robot.
        problem: what is asked.
        chains: from the base link to each target's link.
        field: of the robot in the problem's scene.
        q: where to start, any number of configurations.
        request: which of the problem's requests they are for.
    """
    if not len(q) or any((chain.motion == Motion.QUATERNION).any() for chain in chains):
        return q
    variables = problem.variables
    lower, upper = robot.limits.lower[variables], robot.limits.upper[variables]
    full = np.repeat(problem.state[request][None], len(q), axis=0)
    q = q.copy()
    identity = np.eye(len(variables))
    for _ in range(STEPS):
        if problem.late:
            break
        full[:, variables] = q
        near = field.closeness(full, problem.clearance + MARGIN)
        active = near.cost > 0.0
        if not active.any():
            break
        J, error = _task(problem, chains, full, request)
        gradient = near.gradient[:, variables]
        # Variables at a limit that the way out would push beyond do not take part.
        held = ((q <= lower) & (gradient > 0.0)) | ((q >= upper) & (gradient < 0.0))
        J = np.where(held[:, None], 0.0, J)
        gradient = np.where(held, 0.0, gradient)
        inverse = np.swapaxes(J, 1, 2) @ np.linalg.inv(
            J @ np.swapaxes(J, 1, 2) + _DAMPING * np.eye(J.shape[1])
        )
        free = ((identity - inverse @ J) @ gradient[..., None])[..., 0]
        square = np.maximum((free * free).sum(axis=1), 1e-9)
        step = -(near.cost / square)[:, None] * free
        step = np.where(active[:, None], step, 0.0)
        step *= _shortened(step)
        step -= (inverse @ error[..., None])[..., 0]
        q = np.clip(q + step * _shortened(step), lower, upper)
    return q


def _shortened(step: Annotated[Float64, "M n"]) -> Annotated[Float64, "M 1"]:
    longest = np.abs(step).max(axis=1, initial=0.0)
    return np.asarray((_LARGEST_STEP / np.maximum(longest, _LARGEST_STEP))[:, None])


def _task(
    problem: IkProblem, chains: tuple[KinematicChain, ...], full: Annotated[Float64, "M nq"], request: int
) -> tuple[Annotated[Float64, "M r n"], Annotated[Float64, "M r"]]:
    """Compute Jacobian and errors in the targets' frames, of the axes that are not free."""
    column = {int(variable): k for k, variable in enumerate(problem.variables)}
    rows, errors = [], []
    for target, chain in zip(problem.targets, chains, strict=True):
        own = full[:, chain.variables]
        T_base_tool = chain_pose(chain, own)
        J_tip = geometric_jacobian(chain, own)
        if target.T_link_tool is not None:
            lever = T_base_tool[:, :3, :3] @ target.T_link_tool[:3, 3]
            J_tip[:, :3] += np.cross(J_tip[:, 3:], lever[:, :, None], axis=1)
            T_base_tool = T_base_tool @ target.T_link_tool
        T_base_target = target.T_base_target[request]
        position, orientation = axis_errors(
            T_base_target[None], T_base_tool, target.free_position, target.free_orientation
        )
        R = T_base_target[:3, :3].T
        J = np.zeros((len(full), 6, len(problem.variables)))
        solved = [k for k, variable in enumerate(chain.variables.tolist()) if variable in column]
        to = [column[int(chain.variables[k])] for k in solved]
        J[:, :3, to] = R @ J_tip[:, :3][:, :, solved]
        J[:, 3:, to] = R @ J_tip[:, 3:][:, :, solved]
        kept = ~np.array((*target.free_position, *target.free_orientation), dtype=np.bool_)
        rows.append(J[:, kept])
        errors.append(np.concatenate([position, orientation], axis=1)[:, kept])
    return np.concatenate(rows, axis=1), np.concatenate(errors, axis=1)
