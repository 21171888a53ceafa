"""Builder of complete IK problems from few arguments."""

import math
from collections.abc import Collection, Sequence
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from kinopt_ros.array import Float64, as_numbers, frozen
from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    UnknownNameError,
    shown,
)
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.problems.arguments import as_flag, as_names, as_number, as_scene, as_whole, as_word
from kinopt_ros.problems.chains import default_group, resolve_chain, resolve_joints
from kinopt_ros.problems.ik import (
    MIN_SEPARATION,
    ORIENTATION_TOLERANCE,
    POSITION_TOLERANCE,
    IkProblem,
    PoseTarget,
    Tolerance,
)
from kinopt_ros.problems.limit_tolerance import LIMIT_TOLERANCE, check_limit_tolerance, moved_to_limits
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.preferences.every import ANY, Given, preference_of
from kinopt_ros.problems.validation import check_transforms, variables_of_joints
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene

__all__ = ["default_group", "ik_problem", "resolve_chain"]

AXES = ("x", "y", "z", "rx", "ry", "rz")
"""Names of the axes of a target's frame, along which and about which a request may leave the tip free."""


class UnknownAxisError(UnknownNameError):
    """An axis that a target does not have."""

    kind = "axis"
    status = InvalidGoalError.status


def ik_problem(
    robot: RobotModel,
    T_base_target: ArrayLike,
    *,
    group: str | None = None,
    unlocked_groups: Collection[str] = (),
    locked_joints: Collection[str] = (),
    locked_groups: Collection[str] = (),
    base_link: str | None = None,
    tip_link: str | Sequence[str] | None = None,
    T_link_tool: ArrayLike | None = None,
    T_world_root: ArrayLike | None = None,
    state: ArrayLike | None = None,
    seeds: ArrayLike | None = None,
    position_tolerance: Tolerance = POSITION_TOLERANCE,
    orientation_tolerance: Tolerance = ORIENTATION_TOLERANCE,
    free_axes: Collection[str] = (),
    nearest: PoseWeights | Sequence[PoseWeights] | None = None,
    num_solutions: int = 1,
    min_separation: float = MIN_SEPARATION,
    turns: bool = False,
    prefer: str = ANY,
    rest: ArrayLike | None = None,
    manipulability_weight: float | None = None,
    scene: Scene | None = None,
    clearance: float = 0.0,
    deadline: float | None = None,
    random_seed: int = 0,
    limit_tolerance: float = LIMIT_TOLERANCE,
) -> IkProblem:
    """Build a problem: one pose or B poses for one link, or for several links at once.

    Args:
        robot: the robot.
        T_base_target: target pose(s) of the tip link in the base link, (4, 4) or (B, 4, 4); for T tip links
            (T, 4, 4) or (B, T, 4, 4).
        group: joints to move, and the default of base and tip. Without it, every active joint between
            base_link and tip_link moves; without a tip as well, the robot's first group is taken.
        unlocked_groups: the joints of these groups move as well.
        locked_joints: joints that keep their state to the last bit; of a planar or floating one also single variables
            (``base/x``), of a quaternion all four.
        locked_groups: likewise all joints of these groups.
        base_link: frame of the targets; default: the group's base, else the root link.
        tip_link: link to place, or several; default: the group's tip.
        T_link_tool: pose of a tool in the tip link (in each of them), (4, 4), or one for each of T tip links,
            (T, 4, 4): targets are for the tool.
        T_world_root: pose of the root link in a world that the targets are given in instead of in base_link, (4, 4).
        state: configuration of the whole robot, (nq,) or (B, nq): held joints and first seed; default:
            robot.default_q.
        seeds: more start values: (n,) or (S, n) for all requests, or (B, S, n).
        position_tolerance: m; or three numbers for the axes of the target's frame.
        orientation_tolerance: rad; or three.
        free_axes: axes of the target's frame that do not matter, of x y z rx ry rz (see kinematics.pose_errors).
        nearest: weights, for a configuration as near as possible in place of one that reaches the targets; one for
            all tip links, or one for each. The answer is no success but ``Status.NEAREST``, and tolerances only say
            what is called met.
        num_solutions: distinct solutions wanted per request.
        min_separation: solutions are distinct if one joint differs by more than this, rad or m.
        turns: whether configurations that differ by whole turns of a joint are distinct.
        prefer: ``any`` solution, the one ``closest`` to the first seed (without seeds: to the state), to the posture
            ``rest``, or to the ``mid_range`` of the limits (each joint measured by its range); or the one with the
            greatest ``manipulability``, the index of problems.preferences.manipulability.
        rest: posture of ``prefer="rest"``: configuration of the whole robot, (nq,).
        manipulability_weight: of the index beside one of the postures: the least squared distance from it, less this
            times the index, is preferred. Raising it never lowers the index of the answer.
        scene: what solutions must be free of collisions with, besides the robot itself (``EMPTY_SCENE``: only that);
            None: collisions are not looked at.
        clearance: least distance, m, of bodies that must not touch, with a scene.
        deadline: value of time.monotonic() after which no new attempt is started.
        random_seed: same problem, same random seed: same answer.
        limit_tolerance: seeds that are beyond a position limit by no more than this, rad or m, are moved to the limit;
            ``notes`` of the problem and of its answer say so.

    Raises:
        KinoptError: an unknown name, or something that does not fit (see problems.validation).
    """
    tips = None if tip_link is None or isinstance(tip_link, str) else as_names(tip_link, "tip_link")
    if tips is not None and (not tips or len(set(tips)) != len(tips)):
        raise InvalidRequestError(f"tip_link is {list(tips)}; name at least one link, and each only once")
    T = as_numbers(T_base_target, "T_base_target", InvalidGoalError)
    expected = 3 if tips is None else 4
    if T.ndim == expected - 1:
        frozen(T)  # so that the problem needs no copy of a view of it
        T = T[None]
    if T.ndim != expected or T.shape[-2:] != (4, 4) or (tips is not None and T.shape[1] != len(tips)):
        allowed = "(4, 4) or (B, 4, 4)" if tips is None else f"({len(tips)}, 4, 4) or (B, {len(tips)}, 4, 4)"
        raise InvalidGoalError(f"T_base_target has shape {np.shape(T_base_target)}; allowed is {allowed}")
    base, links, joints = resolve_joints(
        robot,
        group,
        base_link,
        (tip_link,) if isinstance(tip_link, str) else tips,
        as_names(unlocked_groups, "unlocked_groups"),
        as_names(locked_joints, "locked_joints"),
        as_names(locked_groups, "locked_groups"),
    )
    variables = variables_of_joints(robot, joints)
    B, n = len(T), len(variables)
    full = _expand_state(state, robot, B)
    tolerance = check_limit_tolerance(as_number(limit_tolerance, "limit_tolerance"))
    seeds, notes = moved_to_limits(robot, variables, _expand_seeds(seeds, B, n), tolerance, "a seed")
    if T_world_root is not None:
        T = _base_in_world(robot, base, joints, full, T_world_root, T.ndim) @ T
    tools = _tools(T_link_tool, len(links), tips is not None)
    position = _tolerance(position_tolerance, "position_tolerance", free_axes, AXES[:3])
    orientation = _tolerance(orientation_tolerance, "orientation_tolerance", free_axes, AXES[3:])
    weights = _weights(nearest, len(links))
    targets = [
        PoseTarget.filled(
            {
                "link": link,
                "T_base_target": T if tips is None else T[:, k].copy(),
                "position_tolerance": position,
                "orientation_tolerance": orientation,
                "T_link_tool": tools[k],
                "weights": weights[k],
            }
        )
        for k, link in enumerate(links)
    ]
    return IkProblem.filled(
        {
            "targets": tuple(targets),
            "base_link": base,
            "joints": joints,
            "variables": variables,
            "state": full,
            "seeds": seeds,
            "num_solutions": as_whole(num_solutions, "num_solutions"),
            "min_separation": as_number(min_separation, "min_separation"),
            "turns": as_flag(turns, "turns"),
            "preference": None
            if as_word(prefer, "prefer") == ANY and rest is None and manipulability_weight is None
            else preference_of(
                prefer,
                Given(
                    robot,
                    variables,
                    seeds[:, 0] if seeds.shape[1] else full[:, variables],
                    None if rest is None else as_numbers(rest, "rest", InvalidStateError),
                ),
                None
                if manipulability_weight is None
                else as_number(manipulability_weight, "manipulability_weight"),
            ),
            "scene": as_scene(scene),
            "clearance": as_number(clearance, "clearance"),
            "deadline": None if deadline is None else as_number(deadline, "deadline"),
            "random_seed": as_whole(random_seed, "random_seed"),
            "notes": notes,
        }
    )


def _weights(
    given: PoseWeights | Sequence[PoseWeights] | None, count: int
) -> Sequence[PoseWeights] | list[None]:
    """Return the weights of each of so many targets."""
    if given is None:
        return [None] * count
    if isinstance(given, PoseWeights):
        return [given] * count
    listed = list(given) if isinstance(given, Sequence) else []
    if len(listed) != count or not all(isinstance(one, PoseWeights) for one in listed):
        raise InvalidGoalError(
            f"nearest is {shown(given)}; allowed is PoseWeights, or a list of them, one for each of {count} tip links"
        )
    return listed


def _tolerance(given: Tolerance, what: str, free_axes: Collection[str], axes: Sequence[str]) -> Tolerance:
    """Return the tolerance with free axes set to infinity."""
    if type(given) is float and type(free_axes) is tuple and not free_axes:  # most requests
        return given
    for name in as_names(free_axes, "free_axes"):
        if name not in AXES:
            raise UnknownAxisError(name, AXES)
    several = given if isinstance(given, float | int) else _listed(as_numbers(given, what, InvalidGoalError))
    if isinstance(several, tuple) and len(several) != 3:
        raise InvalidGoalError(
            f"{what} is {given}; allowed is one number, or three for the axes of the target"
        )
    if not any(name in free_axes for name in axes):
        return several
    if not isinstance(several, tuple):
        several = (several, several, several)
    x, y, z = (math.inf if name in free_axes else v for name, v in zip(axes, several, strict=True))
    return x, y, z


def _listed(numbers: Float64) -> float | tuple[float, ...]:
    """Return a single number, or those of an array, as a list."""
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.reshape(-1).tolist())


def _base_in_world(
    robot: RobotModel,
    base: str,
    joints: tuple[str, ...],
    state: Float64,
    T_world_root: ArrayLike,
    ndim: int,
) -> Annotated[Float64, "B ... 4 4"]:
    """Return ``T_base_world`` with as many dimensions as the targets have."""
    chain = chain_between(robot, robot.root_link, base)
    if set(chain.variables.tolist()) & set(variables_of_joints(robot, joints).tolist()):
        raise InvalidRequestError(
            f"T_world_root needs a base_link that stands still; {base!r} is moved by the joints to solve for"
        )
    T_world_base = _transform(T_world_root, "T_world_root") @ chain_pose(chain, state[:, chain.variables])
    T_base_world = inverse(T_world_base)
    return T_base_world if ndim == 3 else T_base_world[:, None]


def _tools(given: ArrayLike | None, count: int, several: bool) -> list[Float64] | list[None]:
    """Return the tool in each of so many tip links."""
    if given is None:
        return [None] * count
    T = as_numbers(given, "T_link_tool", InvalidGoalError)
    if T.shape != (4, 4) and (T.shape != (count, 4, 4) or not several):
        allowed = f"(4, 4) or ({count}, 4, 4)" if several else "(4, 4)"
        raise InvalidGoalError(f"T_link_tool has shape {T.shape}; allowed is {allowed}")
    check_transforms(T, "T_link_tool")
    return [T] * count if T.ndim == 2 else list(T)


def _transform(given: ArrayLike, what: str) -> Annotated[Float64, "4 4"]:
    T = as_numbers(given, what, InvalidGoalError)
    if T.shape != (4, 4):
        raise InvalidGoalError(f"{what} has shape {T.shape}; allowed is (4, 4)")
    check_transforms(T[None], what)
    return T


def _expand_state(state: ArrayLike | None, robot: RobotModel, batch: int) -> Annotated[Float64, "B nq"]:
    given = robot.default_q if state is None else as_numbers(state, "state", InvalidStateError)
    if given.shape == (robot.nq,):
        return given[None].copy() if batch == 1 else np.repeat(given[None], batch, axis=0)
    if given.shape == (batch, robot.nq):
        return given
    raise InvalidStateError(
        f"state has shape {given.shape}; allowed is ({robot.nq},) or ({batch}, {robot.nq}): robot {robot.name!r} has "
        f"{robot.nq} variables"
    )


def _expand_seeds(seeds: ArrayLike | None, batch: int, n: int) -> Annotated[Float64, "B S n"]:
    if seeds is None:
        return np.empty((batch, 0, n))
    given = as_numbers(seeds, "seeds", InvalidStateError)
    shape: Sequence[int] = given.shape
    if given.ndim <= 2 and shape[-1:] == (n,):
        return np.broadcast_to(given.reshape(1, -1, n), (batch, given.size // n if n else 0, n)).copy()
    if given.ndim == 3 and shape[0] == batch and shape[2] == n:
        return given
    raise InvalidStateError(
        f"seeds has shape {tuple(shape)}; allowed is ({n},), (S, {n}) or ({batch}, S, {n})"
    )
