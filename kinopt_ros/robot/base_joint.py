"""Robot whose root hangs on a planar or floating joint: a mobile base, or a body that floats.

An SRDF's ``virtual_joint`` becomes such a joint when the robot is loaded (``robot.srdf``); ``with_base`` is for robots
whose SRDF has none, and for bounds of where the base may be.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, quoted, shown
from kinopt_ros.robot.limits import LARGEST_LIMIT
from kinopt_ros.robot.model import Joint, JointGroup, JointType, RobotModel
from kinopt_ros.robot.new_joint import names_taken, with_new_joint
from kinopt_ros.robot.variables import variable_names_of
from kinopt_ros.robot.xml_text import MAX_NAME_LENGTH

_BOUNDED = {"planar": ("x", "y", "theta"), "floating": ("x", "y", "z")}
"""What of a base can have bounds, in the order of its variables."""


def with_base(
    robot: RobotModel,
    kind: Literal["planar", "floating"] = "planar",
    name: str = "base",
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> RobotModel:
    """Return a new robot whose root link hangs on a planar or floating joint below a new root link.

    The joint is called ``name``, the new root link ``<name>_origin``. Its variables come before all others: x and y (m)
    and theta (rad, about z) of a planar base, x, y, z (m) and a unit quaternion of a floating one; joint limits and
    MoveIt's files call them ``<name>/x`` and so on (``robot.variable_names``). In the default configuration the base is
    at the new root, or at the place inside the bounds that is nearest to it; velocity, acceleration and jerk have the
    defaults of ``robot.limits``, which ``apply_joint_limits`` changes.

    Groups stay as they are. New ones are ``<name>``, the base's joint alone, and for every group
    ``<group>_on_<name>``, its joints and the base's, which begins at the new root link: requests that name it move the
    base and the arm at once. Requests that name only a tip_link move the base, too.

    Args:
        robot: the robot; it stays as it is.
        kind: ``planar`` or ``floating``.
        name: of the joint.
        bounds: lowest and highest value by ``x``, ``y`` and ``theta`` of a planar base, ``x``, ``y`` and ``z`` of a
            floating one (m, rad); what is not named has no bounds, nor has an infinite one.

    Raises:
        InvalidRequestError: another kind, no text for a name or a long one, bounds that are no range of such a base, or
            names that the robot has already.
    """
    if not isinstance(kind, str) or kind not in _BOUNDED:
        raise InvalidRequestError(f"kind is {shown(kind)}; allowed are 'planar' and 'floating'")
    if not isinstance(name, str) or not name.strip():
        raise InvalidRequestError(f"name is {shown(name)}; allowed is a text that is not empty")
    joint_type, root = JointType(kind), f"{name}_origin"
    taken = names_taken(robot, name, variable_names_of(name, joint_type), root)
    groups = _groups(robot, name, root)
    taken += sorted(groups.keys() & robot.groups.keys())
    virtual = robot.virtual_joint
    if virtual is not None and virtual.name == name:
        taken.append(f"the virtual_joint {name}")
    longest = max((root, *variable_names_of(name, joint_type), *groups), key=len)
    if len(longest) > MAX_NAME_LENGTH:
        raise InvalidRequestError(
            f"a base cannot be called {shown(name)}: {quoted(longest, 60)} is too long for a name; allowed are at most "
            f"{MAX_NAME_LENGTH} characters"
        )
    if taken:
        raise InvalidRequestError(
            f"a base cannot be called {name!r}: robot {robot.name!r} has {', '.join(taken)} already; give another name"
        )
    lower, upper = _range(kind, bounds)
    based = with_joint_above_root(robot, name, joint_type, root)
    limits, default = based.limits, based.default_q.copy()
    default[: len(lower)] = np.clip(0.0, lower, upper)
    return replace(
        based,
        limits=replace(
            limits,
            lower=np.concatenate([lower, limits.lower[len(lower) :]]),
            upper=np.concatenate([upper, limits.upper[len(upper) :]]),
        ),
        default_q=default,
        groups={**robot.groups, **groups},
        virtual_joint=None if virtual is None else replace(virtual, child_link=root),
    )


def with_joint_above_root(robot: RobotModel, name: str, kind: JointType, root_link: str) -> RobotModel:
    """Return a new robot with a planar or floating joint without limits from a new root link to the old one.

    The caller sees to it that the names are new. Groups stay; the joint is in none of them.
    """
    joint = Joint(
        name=name,
        type=kind,
        parent_link=root_link,
        child_link=robot.root_link,
        T_parent_joint=np.eye(4),
        axis=np.array([0.0, 0.0, 1.0] if kind is JointType.PLANAR else [1.0, 0.0, 0.0]),
        first_variable=0,
    )
    default = np.zeros(kind.num_variables)
    if kind is JointType.FLOATING:
        default[3] = 1.0
    return with_new_joint(robot, joint, 0, root_link, 0, default)


def _groups(robot: RobotModel, name: str, root: str) -> dict[str, JointGroup]:
    """Return the new groups: the base alone, and every group on it."""
    alone = JointGroup(
        name, joints=(name,), links=(robot.root_link,), base_link=root, tip_link=robot.root_link
    )
    on_it = (
        replace(
            group,
            name=f"{group.name}_on_{name}",
            joints=(name, *group.joints),
            links=(robot.root_link, *group.links),
            base_link=root if group.tip_link is not None else None,
            states={},
        )
        for group in robot.groups.values()
    )
    return {group.name: group for group in (alone, *on_it)}


def _range(
    kind: str, bounds: Mapping[str, tuple[float, float]] | None
) -> tuple[Annotated[Float64, "3"], Annotated[Float64, "3"]]:
    """Return lower and upper limits of what can have bounds."""
    lower, upper = np.full(3, -np.inf), np.full(3, np.inf)
    if bounds is None:
        return lower, upper
    if not isinstance(bounds, Mapping):
        raise InvalidRequestError(
            f"bounds is {shown(bounds)}; allowed is a mapping from names to two numbers"
        )
    for key, given in bounds.items():
        if key not in _BOUNDED[kind]:
            raise InvalidRequestError(
                f"bounds has {shown(key)}; a {kind} base can have bounds of {', '.join(_BOUNDED[kind])}"
            )
        i = _BOUNDED[kind].index(key)
        lower[i], upper[i] = _pair(key, given)
    return lower, upper


def _pair(key: str, given: object) -> tuple[float, float]:
    """Return a range of two numbers, of which either may be infinite outwards."""
    try:
        low, high = (float(value) for value in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):
        low, high = math.nan, math.nan
    if low <= high and all(
        abs(end) <= LARGEST_LIMIT or end == out for end, out in ((low, -math.inf), (high, math.inf))
    ):
        return low, high
    raise InvalidRequestError(
        f"bounds of {key} are {shown(given)}; allowed are two numbers, the lower one first, of at most "
        f"{LARGEST_LIMIT:g}, or infinite ones for none"
    )
