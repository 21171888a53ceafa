"""Order of links and joints: parents before children, each subtree in one piece, siblings as in the file."""

from collections.abc import Sequence

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.robot.urdf_elements import JointElement


def order_tree(
    links: Sequence[str], joints: Sequence[JointElement]
) -> tuple[tuple[str, ...], tuple[JointElement, ...]]:
    """Sort links and joints so that everything follows its parent; the first link is the root.

    Raises:
        RobotDescriptionError: unknown links, a link with two parents, no root, several roots, a cycle.
    """
    parent_joint = _parent_joints(set(links), joints)
    roots = [link for link in links if link not in parent_joint]
    if not roots:
        raise RobotDescriptionError(
            f"there is no root link: the joints form a cycle ({_cycle(links, parent_joint)})"
        )
    if len(roots) > 1:
        named = ", ".join(repr(root) for root in roots[:10])
        more = f" and {len(roots) - 10} more" if len(roots) > 10 else ""
        raise RobotDescriptionError(f"there must be one root link, but {named}{more} have no parent joint")
    below: dict[str, list[JointElement]] = {link: [] for link in links}
    for joint in joints:
        below[joint.parent_link].append(joint)
    ordered_links, ordered_joints = [roots[0]], []
    waiting = list(reversed(below[roots[0]]))
    while waiting:
        joint = waiting.pop()
        ordered_joints.append(joint)
        ordered_links.append(joint.child_link)
        waiting.extend(reversed(below[joint.child_link]))
    if len(ordered_links) < len(links):
        reached = set(ordered_links)
        lost = [link for link in links if link not in reached]
        raise RobotDescriptionError(
            f"the joints form a cycle not reached from the root {roots[0]!r} ({_cycle(lost, parent_joint)})"
        )
    return tuple(ordered_links), tuple(ordered_joints)


def _parent_joints(links: set[str], joints: Sequence[JointElement]) -> dict[str, JointElement]:
    parent_joint: dict[str, JointElement] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent_link), ("child", joint.child_link)):
            if link not in links:
                raise RobotDescriptionError(
                    f"joint {joint.name!r} has the {role} link {link!r}, which does not exist"
                )
        if joint.parent_link == joint.child_link:
            raise RobotDescriptionError(f"joint {joint.name!r} joins link {joint.child_link!r} to itself")
        if joint.child_link in parent_joint:
            other = parent_joint[joint.child_link].name
            raise RobotDescriptionError(
                f"link {joint.child_link!r} has two parents: joints {other!r} and {joint.name!r}"
            )
        parent_joint[joint.child_link] = joint
    return parent_joint


def _cycle(links: Sequence[str], parent_joint: dict[str, JointElement], most: int = 8) -> str:
    """Return the joint names of one cycle among links that all have a parent."""
    link, seen = links[0], set[str]()
    while link not in seen:
        seen.add(link)
        link = parent_joint[link].parent_link
    names = []
    start = link
    while True:
        names.append(parent_joint[link].name)
        link = parent_joint[link].parent_link
        if link == start:
            break
    names.reverse()
    return " -> ".join(names[:most]) + (" -> ..." if len(names) > most else "")
