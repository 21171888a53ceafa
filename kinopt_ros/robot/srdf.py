"""Application of an SRDF to a robot: groups, named states, end effectors, disabled collisions.

Real files carry leftovers of other variants of a robot. Whatever names something that the robot does not have
(a state, an end effector, a passive joint, a collision pair, or a whole group: never only a part of one,
which would then move less than its name says) is left out with a warning. What contradicts itself is refused.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from kinopt_ros.errors import InvalidShapeError, RobotDescriptionError, quoted
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.robot.base_joint import with_joint_above_root
from kinopt_ros.robot.chain import joints_between
from kinopt_ros.robot.groups import leaf_groups
from kinopt_ros.robot.model import EndEffector, Joint, JointGroup, JointType, RobotModel, VirtualJoint
from kinopt_ros.robot.new_joint import names_taken
from kinopt_ros.robot.srdf_elements import (
    EndEffectorElement,
    GroupElement,
    SpheresElement,
    SrdfElements,
    StateElement,
    VirtualJointElement,
    read_srdf,
)
from kinopt_ros.robot.variables import variable_names_of
from kinopt_ros.robot.xml_text import finite_number

MAX_MEMBERS = 100_000
"""Most joints of all groups together."""
_MOST_WARNINGS = 200
MAX_DEFAULT_PAIRS = 200_000
"""Most pairs of links that ``<disable_default_collisions>`` may stand for: all of a robot with 632 links, 60 MB."""

_VIRTUAL_TYPES = {kind.value: kind for kind in (JointType.FIXED, JointType.PLANAR, JointType.FLOATING)}


def apply_srdf(robot: RobotModel, srdf_text: str, virtual_joint: bool = False) -> RobotModel:
    """Return a new robot with the groups and annotations of an SRDF.

    An SRDF without groups leaves the groups as they were, but for a virtual joint that moves all of them.

    Args:
        robot: the robot; it stays as it is.
        srdf_text: SRDF.
        virtual_joint: whether the planar or floating virtual_joint becomes a joint of the robot, from a new
            root link, the parent frame, to the root link.

    Raises:
        RobotDescriptionError: not SRDF, a group contained in itself or defined twice, or a virtual joint that is asked
            for and is not there, is fixed, or has a name that is taken.
    """
    elements = read_srdf(srdf_text)
    warnings = list(robot.warnings)
    if elements.name and elements.name != robot.name:
        warnings.append(f"the SRDF is for robot {elements.name!r}, the URDF for {robot.name!r}")
    passive = _passive(robot, elements.passive_joints, warnings)
    virtual = _virtual_joint(robot, elements.virtual_joints, not virtual_joint, warnings)
    if virtual_joint:
        robot = _with_base(robot, virtual)
    groups = _groups(robot, elements, passive, virtual, warnings)
    _add_states(robot, groups, elements, virtual, warnings)
    if not groups:
        warnings.append("the SRDF defines no usable group; there is one per leaf of the tree")
    groups = groups or dict(robot.groups)
    return replace(
        robot,
        groups=groups,
        passive_joints=passive,
        disabled_collisions=_disabled_collisions(robot, elements, warnings),
        virtual_joint=virtual,
        end_effectors=_end_effectors(robot, groups, elements.end_effectors, warnings),
        link_spheres=_link_spheres(robot, elements.spheres, warnings),
        warnings=_limited(warnings, len(robot.warnings)),
    )


def _limited(warnings: list[str], before: int) -> tuple[str, ...]:
    """Return all warnings about the URDF, and as many about the SRDF as a person may read."""
    more = len(warnings) - before - _MOST_WARNINGS
    if more <= 0:
        return tuple(warnings)
    return (*warnings[: before + _MOST_WARNINGS], f"and {more} more about the SRDF")


def _groups(
    robot: RobotModel,
    elements: SrdfElements,
    passive: frozenset[str],
    virtual: VirtualJoint | None,
    warnings: list[str],
) -> dict[str, JointGroup]:
    by_name: dict[str, GroupElement] = {}
    for element in elements.groups:
        if element.name in by_name:
            raise RobotDescriptionError(f"the SRDF defines group {element.name!r} twice")
        by_name[element.name] = element
    joints, links = set(robot.joint_by_name), set(robot.link_index)
    if virtual is not None:
        joints.add(virtual.name)
        links.add(virtual.parent_frame)
    members: dict[str, set[str]] = {}
    total = 0
    for name in _subgroups_first(by_name):
        unknown = _unknown_member(by_name[name], joints, links, members)
        if unknown:
            warnings.append(f"SRDF group {name!r} is left out: its {unknown} does not exist")
            continue
        members[name] = _own_joints(robot, by_name[name])
        members[name].update(*(members[subgroup] for subgroup in dict.fromkeys(by_name[name].groups)))
        total += len(members[name])
        if total > MAX_MEMBERS:
            raise RobotDescriptionError(
                f"the groups of the SRDF have more than {MAX_MEMBERS} joints in all, counted in every group that has "
                "them; these are too many to be read"
            )
    return {name: _group(robot, by_name[name], members[name], passive) for name in by_name if name in members}


def _unknown_member(
    group: GroupElement, joints: set[str], links: set[str], members: Mapping[str, set[str]]
) -> str | None:
    """Return the first member that does not exist."""
    named_links = (*group.links, *(link for chain in group.chains for link in chain))
    for kind, names, known in (
        ("joint", group.joints, joints),
        ("link", named_links, links),
        ("group", group.groups, members),
    ):
        for name in names:
            if name not in known:
                return f"{kind} {name!r}"
    return None


def _subgroups_first(groups: Mapping[str, GroupElement]) -> list[str]:
    """Return group names in an order in which every group follows the groups that it contains."""
    ordered: list[str] = []
    done: set[str] = set()
    for first in groups:
        path: list[str] = []
        open_groups: set[str] = set()
        waiting = [(first, False)]
        while waiting:
            name, left = waiting.pop()
            if left:
                path.pop()
                open_groups.discard(name)
                done.add(name)
                ordered.append(name)
            elif name in open_groups:
                circle = [*path[path.index(name) :], name]
                shown = " -> ".join(circle[:8]) + (" -> ..." if len(circle) > 8 else "")
                raise RobotDescriptionError(f"SRDF groups contain themselves: {shown}")
            elif name not in done:
                path.append(name)
                open_groups.add(name)
                waiting.append((name, True))
                waiting.extend((subgroup, False) for subgroup in groups[name].groups if subgroup in groups)
    return ordered


def _own_joints(robot: RobotModel, group: GroupElement) -> set[str]:
    """Return the joints named by the group itself, its links and its chains, of all types."""
    joints = {name for name in group.joints if name in robot.joint_by_name}
    joints.update(robot.parent_joint[name].name for name in group.links if name in robot.parent_joint)
    for ends in group.chains:
        # The world in front of a virtual joint counts as the root.
        base, tip = (link if link in robot.link_index else robot.root_link for link in ends)
        joints.update(joint.name for part in joints_between(robot, base, tip) for joint in part)
    return joints


def _group(
    robot: RobotModel, element: GroupElement, members: set[str], passive: frozenset[str]
) -> JointGroup:
    joints = [joint for joint in robot.joints if joint.name in members]
    if len(element.chains) == 1 and not (element.joints or element.links or element.groups):
        base, tip = (link if link in robot.link_index else robot.root_link for link in element.chains[0])
        ends: tuple[str | None, str | None] = (base, tip)
    else:
        ends = _serial_ends(robot, joints)
    return JointGroup(
        name=element.name,
        joints=tuple(joint.name for joint in joints if joint.is_active and joint.name not in passive),
        links=tuple(joint.child_link for joint in joints),
        base_link=ends[0],
        tip_link=ends[1],
    )


def _serial_ends(robot: RobotModel, joints: Sequence[Joint]) -> tuple[str | None, str | None]:
    """Return the parent link of the first and the child link of the last joint if all lie on one path down the tree.

    Joints that are not in the group may lie between, as in MoveIt.
    """
    if not joints:
        return None, None
    top = joints[0].parent_link
    up, down = joints_between(robot, top, joints[-1].child_link)
    if up or not {joint.name for joint in joints} <= {joint.name for joint in down}:
        return None, None
    return top, joints[-1].child_link


def _add_states(
    robot: RobotModel,
    groups: dict[str, JointGroup],
    elements: SrdfElements,
    virtual: VirtualJoint | None,
    warnings: list[str],
) -> None:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for state in elements.states:
        group = groups.get(state.group)
        if group is None:
            of = f"group {state.group!r}, which does not exist" if state.group else "no group"
            warnings.append(f"group_state {state.name!r} is of {of}; left out")
            continue
        of_group = found.setdefault(state.group, {})
        if state.name in of_group:
            warnings.append(f"group_state {state.group}/{state.name} is defined twice; the last one counts")
        values = _state_values(robot, group, state, virtual, warnings)
        of_group[state.name] = values
    for name, states in found.items():
        groups[name] = replace(groups[name], states=states)


def _state_values(
    robot: RobotModel,
    group: JointGroup,
    state: StateElement,
    virtual: VirtualJoint | None,
    warnings: list[str],
) -> dict[str, float]:
    values: dict[str, float] = {}
    links = set(group.links) if len(state.values) > 10 else group.links
    for name, numbers in state.values:
        joint = robot.joint_by_name.get(name)
        if joint is None:
            if virtual is None or name != virtual.name:
                warnings.append(
                    f"group_state {state.name!r} has the joint {name!r}, which does not exist; left out"
                )
            continue
        if not joint.is_active:
            continue  # fixed joints have no value, and a mimic joint's follows from its driver
        if len(numbers) != joint.type.num_variables:
            raise RobotDescriptionError(
                f"group_state {state.name!r} has {len(numbers)} numbers for joint {name!r}, "
                f"which needs {joint.type.num_variables}"
            )
        if joint.child_link not in links:
            warnings.append(
                f"group_state {state.name!r} has the joint {name!r}, which is not in the group {group.name!r}; "
                "left out, as MoveIt does"
            )
            continue
        if joint.type is JointType.FLOATING:  # the file's quaternion is x, y, z, w
            numbers = (*numbers[:3], *_unit_quaternion(numbers[3:], state.name, name))
        for i, value in zip(robot.variables_of(name), numbers, strict=True):
            if not robot.limits.lower[i] - 1e-6 <= value <= robot.limits.upper[i] + 1e-6:
                warnings.append(
                    f"group_state {state.name!r} puts {robot.variable_names[i]!r} outside its limits"
                )
            values[robot.variable_names[i]] = value
    return values


def _unit_quaternion(xyzw: tuple[float, ...], state: str, joint: str) -> tuple[float, ...]:
    """Return w, x, y, z scaled to length 1."""
    largest = max(abs(value) for value in xyzw)
    if largest == 0.0:
        raise RobotDescriptionError(f"group_state {state!r} has a zero quaternion for joint {joint!r}")
    x, y, z, w = (value / largest for value in xyzw)  # first, so that no length overflows
    length = math.hypot(x, y, z, w)
    return w / length, x / length, y / length, z / length


def _passive(robot: RobotModel, names: Iterable[str], warnings: list[str]) -> frozenset[str]:
    known = set()
    for name in names:
        if name in robot.joint_by_name:
            known.add(name)
        else:
            warnings.append(f"passive_joint {name!r} does not exist; left out")
    return frozenset(known)


def _virtual_joint(
    robot: RobotModel, elements: Sequence[VirtualJointElement], held: bool, warnings: list[str]
) -> VirtualJoint | None:
    found = None
    for element in elements:
        if element.type not in _VIRTUAL_TYPES:
            raise RobotDescriptionError(
                f"virtual_joint {element.name!r} has type {quoted(element.type)}; "
                f"known: {', '.join(_VIRTUAL_TYPES)}"
            )
        if element.child_link != robot.root_link:
            warnings.append(
                f"virtual_joint {element.name!r} has the child link {element.child_link!r}, "
                f"but the root link is {robot.root_link!r}; left out"
            )
        elif found is not None:
            warnings.append(f"there is a second virtual_joint, {element.name!r}; left out")
        else:
            found = VirtualJoint(
                element.name, _VIRTUAL_TYPES[element.type], element.parent_frame, element.child_link
            )
            if held and found.type is not JointType.FIXED:
                warnings.append(
                    f"virtual_joint {element.name!r} is {element.type}, but nothing here moves it: of groups that name "
                    "it the other joints move (virtual_joint=True, parameter virtual_joint, makes it a joint)"
                )
    return found


def _with_base(robot: RobotModel, virtual: VirtualJoint | None) -> RobotModel:
    """Return a new robot whose first joint is the virtual one."""
    if virtual is None or virtual.type is JointType.FIXED:
        what = (
            "no virtual_joint of the root link"
            if virtual is None
            else f"the fixed virtual_joint {virtual.name!r}"
        )
        raise RobotDescriptionError(
            f"the virtual joint shall move, but the SRDF has {what}; allowed are planar and floating ones"
        )
    taken = names_taken(
        robot, virtual.name, variable_names_of(virtual.name, virtual.type), virtual.parent_frame
    )
    if taken:
        raise RobotDescriptionError(
            f"virtual_joint {virtual.name!r} cannot become a joint: robot {robot.name!r} has {', '.join(taken)} already"
        )
    moving = with_joint_above_root(robot, virtual.name, virtual.type, virtual.parent_frame)
    return replace(moving, groups=leaf_groups(moving.root_link, moving.joints))


def _end_effectors(
    robot: RobotModel,
    groups: Mapping[str, JointGroup],
    elements: Sequence[EndEffectorElement],
    warnings: list[str],
) -> tuple[EndEffector, ...]:
    known = []
    for element in elements:
        if element.group not in groups:
            missing = f"group {element.group!r}"
        elif element.parent_link not in robot.link_index:
            missing = f"parent link {element.parent_link!r}"
        elif element.parent_group is not None and element.parent_group not in groups:
            missing = f"parent group {element.parent_group!r}"
        else:
            known.append(EndEffector(element.name, element.group, element.parent_link, element.parent_group))
            continue
        warnings.append(f"end_effector {element.name!r} has the {missing}, which does not exist; left out")
    return tuple(known)


def _link_spheres(
    robot: RobotModel, elements: Iterable[SpheresElement], warnings: list[str]
) -> dict[str, SphereSet]:
    """Return usable approximations by link. One sphere of radius 0 stands for none, as in MoveIt."""
    found: dict[str, SphereSet] = {}
    for element in elements:
        who = f"link_sphere_approximation of {element.link!r}"
        if element.link not in robot.link_index:
            warnings.append(f"{who} is of a link that does not exist; left out")
            continue
        numbers = [
            [finite_number(word) for text in sphere for word in text.split()] for sphere in element.spheres
        ]
        if any(len(values) != 4 or None in values for values in numbers):
            warnings.append(f"{who} has a sphere that is not a center of 3 numbers and a radius; left out")
            continue
        values = np.array(numbers, dtype=np.float64).reshape(-1, 4)
        values = values[values[:, 3] != 0.0]
        try:
            found[element.link] = SphereSet(values[:, :3].copy(), values[:, 3].copy())
        except InvalidShapeError as error:
            warnings.append(f"{who} is left out: {error}")
    return found


def _disabled_collisions(
    robot: RobotModel, elements: SrdfElements, warnings: list[str]
) -> frozenset[frozenset[str]]:
    """Return pairs disabled by default for a link, less the enabled ones, and those disabled one by one."""
    links = set(robot.link_names)
    named = {*elements.disabled_links, *(link for pair in elements.disabled_pairs for link in pair)}
    named.update(link for pair in elements.enabled_pairs for link in pair)
    unknown = sorted(named - links)
    if unknown:
        shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        warnings.append(f"collision pairs of {len(unknown)} links that do not exist are left out: {shown}")
    by_default = links.intersection(elements.disabled_links)
    d, n = len(by_default), len(links)
    if d * (n - 1) - d * (d - 1) // 2 > MAX_DEFAULT_PAIRS:
        raise RobotDescriptionError(
            f"the SRDF has <disable_default_collisions> for {d} of {n} links; these are more than the "
            f"{MAX_DEFAULT_PAIRS} pairs that are read"
        )
    pairs = {frozenset({link, other}) for link in by_default for other in links}
    pairs -= {frozenset(pair) for pair in elements.enabled_pairs}
    pairs |= {frozenset(pair) for pair in elements.disabled_pairs if links.issuperset(pair)}
    return frozenset(pair for pair in pairs if len(pair) == 2)
