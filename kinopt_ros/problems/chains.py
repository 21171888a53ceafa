"""Choice of the links and joints that a request is about, from whichever of them it names."""

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import JointGroup, RobotModel
from kinopt_ros.robot.variables import joint_named


@remembered
def resolve_chain(
    robot: RobotModel, group: str | None, base_link: str | None, tip_link: str | None
) -> tuple[str, str, tuple[str, ...]]:
    """Find base link, tip link and joints to move of a request for one link.

    Raises:
        KinoptError: an unknown name, a group without a tip, or joints that do not move the tip.
    """
    base, links, joints = resolve_joints(
        robot, group, base_link, None if tip_link is None else (tip_link,), (), (), ()
    )
    return base, links[0], joints


@remembered
def resolve_joints(
    robot: RobotModel,
    group: str | None,
    base_link: str | None,
    tip_links: tuple[str, ...] | None,
    unlocked_groups: tuple[str, ...],
    locked_joints: tuple[str, ...],
    locked_groups: tuple[str, ...],
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Find base link, tip links and joints to move.

    Raises:
        KinoptError: an unknown name, a group without a tip, or joints that do not move one of the tips.
    """
    if group is None and tip_links is None:
        group = default_group(robot).name
    chosen = None if group is None else robot.group(group)
    base = base_link or (chosen.base_link if chosen else None) or robot.root_link
    if tip_links is None:
        if chosen is None or chosen.tip_link is None:
            raise InvalidRequestError(f"group {group!r} is no chain and has no tip; name a tip_link")
        tip_links = (chosen.tip_link,)
    moving = {tip: _chain_joints(robot, base, tip) for tip in tip_links}
    free = set(chosen.joints) if chosen else {name for joints in moving.values() for name in joints}
    for name in unlocked_groups:
        joints_of_group = robot.group(name).joints
        if not joints_of_group:
            raise InvalidRequestError(f"group {name!r} of unlocked_groups has no joint that could move")
        free.update(joints_of_group)
    whose = "of the chain" if chosen is None else f"of group {group!r}"
    locked = {name for other in locked_groups for name in robot.group(other).joints}
    whole, axes = _locked(robot, locked_joints)
    locked |= whole
    free -= locked
    joints = tuple(name for name in robot.active_joints if name in free)
    for tip, chain in moving.items():
        if not free & set(chain):
            left = " that is not locked" if locked else ""
            raise InvalidRequestError(f"no joint {whose}{left} moves {tip!r} against {base!r}")
    if not unlocked_groups and chosen is not None:
        joints = _in_order(chosen, free)
    return base, tip_links, _without_axes(robot, joints, axes) if axes else joints


@remembered
def default_group(robot: RobotModel) -> JointGroup:
    """Return the group of requests that name none: the first one with a tip that its joints move."""
    for group in robot.groups.values():
        if group.tip_link is not None:
            moving = _chain_joints(robot, group.base_link or robot.root_link, group.tip_link)
            if set(group.joints) & set(moving):
                return group
    raise InvalidRequestError(
        f"robot {robot.name!r} has no joint group with a tip; name base_link and tip_link"
    )


@remembered
def unlocked(robot: RobotModel, joints: tuple[str, ...], locked_joints: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of some joints that are not locked; of a joint with locked axes the other variables.

    Raises:
        KinoptError: an unknown name, or none is left.
    """
    locked, axes = _locked(robot, locked_joints)
    left = _without_axes(robot, tuple(name for name in joints if name not in locked), axes)
    if not left:
        raise InvalidRequestError(f"locked_joints leave none of {', '.join(joints)} to move")
    return left


def _locked(robot: RobotModel, names: tuple[str, ...]) -> tuple[set[str], set[str]]:
    """Return the joints that are locked as a whole, those that drive a named mimic joint among them, and all locked
    variables that are named singly."""
    named = {name: joint_named(robot, name) for name in names}
    axes = {name for name, joint in named.items() if joint.name != name}
    whole = {joint.mimics or name for name, joint in named.items() if joint.name == name}
    whole |= {named[name].name for name in axes if axes.issuperset(_variable_names(robot, named[name].name))}
    return whole, axes


def _variable_names(robot: RobotModel, joint: str) -> list[str]:
    return [robot.variable_names[i] for i in robot.variables_of(joint)]


def _without_axes(robot: RobotModel, joints: tuple[str, ...], axes: set[str]) -> tuple[str, ...]:
    """Return joints, of which those with locked axes are replaced by the names of their other variables."""
    found: list[str] = []
    for name in joints:
        variables = _variable_names(robot, name)
        found += [name] if axes.isdisjoint(variables) else [v for v in variables if v not in axes]
    return tuple(found)


def _in_order(group: JointGroup, free: set[str]) -> tuple[str, ...]:
    return tuple(name for name in group.joints if name in free)


def _chain_joints(robot: RobotModel, base: str, tip: str) -> tuple[str, ...]:
    """Return the active joints whose variables move the tip against the base."""
    moved = set(chain_between(robot, base, tip).variables.tolist())
    return tuple(
        name
        for name in robot.active_joints
        if moved & set(robot.variables_of(name)) and name not in robot.passive_joints
    )
