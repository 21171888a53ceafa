"""Builds complete IK problems from the little that people want to say."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, KinoptError
from kinopt_ros.problems.ik import ORIENTATION_TOLERANCE, POSITION_TOLERANCE, IkProblem, PoseTarget
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import JointGroup, RobotModel


def ik_problem(
    robot: RobotModel,
    T_base_target: ArrayLike,
    *,
    group: str | None = None,
    base_link: str | None = None,
    tip_link: str | None = None,
    state: ArrayLike | None = None,
    seeds: ArrayLike | None = None,
    position_tolerance: float = POSITION_TOLERANCE,
    orientation_tolerance: float = ORIENTATION_TOLERANCE,
    num_solutions: int = 1,
    deadline: float | None = None,
    random_seed: int = 0,
) -> IkProblem:
    """One pose or B poses for one link.

    Args:
        robot: the robot.
        T_base_target: target pose(s) of the tip link in the base link, (4, 4) or (B, 4, 4).
        group: joints to move, and the default of base and tip. Without it, every active joint between
            base_link and tip_link moves; without a tip as well, the robot's first group is taken.
        base_link: frame of the targets; default: the group's base, else the root link.
        tip_link: link to place; default: the group's tip.
        state: configuration of the whole robot (nq,): held joints and first seed; default: robot.default_q.
        seeds: more start values: (n,) or (S, n) for all requests, or (B, S, n).
        position_tolerance: m.
        orientation_tolerance: rad.
        num_solutions: distinct solutions wanted per request.
        deadline: value of time.monotonic() after which no new attempt is started.
        random_seed: same problem, same random seed: same answer.

    Raises:
        KinoptError: an unknown name, or something that does not fit (see problems.validation).
    """
    T = _numbers(T_base_target, "T_base_target", InvalidGoalError)
    if T.ndim == 2:
        T = T[None]
    if T.ndim != 3 or T.shape[1:] != (4, 4):
        raise InvalidGoalError(f"T_base_target has shape {T.shape}; allowed is (4, 4) or (B, 4, 4)")
    base, tip, joints = resolve_chain(robot, group, base_link, tip_link)
    variables = variables_of_joints(robot, joints)
    return IkProblem(
        targets=(PoseTarget(tip, T, position_tolerance, orientation_tolerance),),
        base_link=base,
        joints=joints,
        variables=variables,
        state=robot.default_q if state is None else _numbers(state, "state", InvalidStateError),
        seeds=_expand_seeds(seeds, len(T), len(variables)),
        num_solutions=num_solutions,
        deadline=deadline,
        random_seed=random_seed,
    )


@remembered
def resolve_chain(
    robot: RobotModel, group: str | None, base_link: str | None, tip_link: str | None
) -> tuple[str, str, tuple[str, ...]]:
    """Base link, tip link and joints to move, from whichever of them was said.

    Raises:
        KinoptError: an unknown name, a group without a tip, or joints that do not move the tip.
    """
    if group is None and tip_link is None:
        group = default_group(robot).name
    chosen = None if group is None else robot.group(group)
    base = base_link or (chosen.base_link if chosen else None) or robot.root_link
    tip = tip_link or (chosen.tip_link if chosen else None)
    if tip is None:
        raise InvalidRequestError(f"group {group!r} is no chain and has no tip; name a tip_link")
    moving = _chain_joints(robot, base, tip)
    joints = moving if chosen is None else chosen.joints
    if not set(joints) & set(moving):
        raise InvalidRequestError(
            f"no joint of {'the chain' if chosen is None else f'group {group!r}'} moves {tip!r} against {base!r}"
        )
    return base, tip, joints


@remembered
def default_group(robot: RobotModel) -> JointGroup:
    """The group taken where a request names none: the first one with a tip that its joints move."""
    for group in robot.groups.values():
        if group.tip_link is not None:
            moving = _chain_joints(robot, group.base_link or robot.root_link, group.tip_link)
            if set(group.joints) & set(moving):
                return group
    raise InvalidRequestError(
        f"robot {robot.name!r} has no joint group with a tip; name base_link and tip_link"
    )


def _chain_joints(robot: RobotModel, base: str, tip: str) -> tuple[str, ...]:
    """Active joints whose variables move tip against base."""
    moved = set(chain_between(robot, base, tip).variables.tolist())
    return tuple(
        name
        for name in robot.active_joints
        if moved & set(robot.variables_of(name)) and name not in robot.passive_joints
    )


def _numbers(given: ArrayLike, what: str, error: type[KinoptError]) -> Float64:
    """A float64 copy; the error given if it is no array of real numbers."""
    try:
        array = np.array(given)
        if array.dtype.kind in "fiu":
            return array.astype(np.float64)
        shown = f"an array of {array.dtype}"
    except (TypeError, ValueError):  # ragged
        shown = "no regular array"
    raise error(f"{what} must be an array of real numbers; it is {shown}")


def _expand_seeds(seeds: ArrayLike | None, batch: int, n: int) -> Float64:
    if seeds is None:
        return np.empty((batch, 0, n))
    given = _numbers(seeds, "seeds", InvalidStateError)
    shape: Sequence[int] = given.shape
    if given.ndim <= 2 and shape[-1:] == (n,):
        return np.broadcast_to(given.reshape(1, -1, n), (batch, given.size // n if n else 0, n)).copy()
    if given.ndim == 3 and shape[0] == batch and shape[2] == n:
        return given
    raise InvalidStateError(
        f"seeds has shape {tuple(shape)}; allowed is ({n},), (S, {n}) or ({batch}, S, {n})"
    )
