"""Joint groups for robots without SRDF: one per leaf of the tree."""

from collections.abc import Sequence

from kinopt_ros.robot.model import Joint, JointGroup, JointType


def leaf_groups(root_link: str, joints: Sequence[Joint]) -> dict[str, JointGroup]:
    """Make one group per leaf link that something can move, named after that link: the chain from the root to it.

    The group holds every joint that moves the chain, so also a driver elsewhere that a joint of it mimics.
    Chains that end in a fixed joint, as tool frames do, come first, then those that end in a moving one, as
    fingers do; both in the order of the links.
    """
    above = {joint.child_link: joint for joint in joints}
    by_name = {joint.name: joint for joint in joints}
    order = {joint.name: i for i, joint in enumerate(joints)}
    parents = {joint.parent_link for joint in joints}
    groups: dict[str, JointGroup] = {}
    leaves = [joint for joint in joints if joint.child_link not in parents]
    leaves.sort(key=lambda joint: joint.type is not JointType.FIXED)
    for leaf in (joint.child_link for joint in leaves):
        links, drivers, link = list[str](), set[str](), leaf
        while link in above:
            joint = above[link]
            driver = by_name[joint.mimics] if joint.mimics else joint
            if driver.is_active:
                drivers.add(driver.name)
            links.append(link)
            link = joint.parent_link
        if drivers:
            groups[leaf] = JointGroup(
                name=leaf,
                joints=tuple(sorted(drivers, key=order.__getitem__)),
                links=tuple(reversed(links)),
                base_link=root_link,
                tip_link=leaf,
            )
    return groups
