"""Pairs of a robot's links that can be expected to touch, from its tree alone."""

import math
from itertools import combinations

from kinopt_ros.robot.model import Joint, JointType, RobotModel

LinkPair = tuple[str, str]
"""Two links, in the order of ``robot.link_names``."""


def link_pairs(robot: RobotModel) -> list[LinkPair]:
    """Return all pairs of links that have shapes."""
    return list(combinations([name for name in robot.link_names if name in robot.collision_shapes], 2))


def rigid_pairs(robot: RobotModel) -> frozenset[LinkPair]:
    """Return pairs of links with shapes between which there is no joint that moves."""
    body: dict[str, str] = {}
    for name in robot.link_names:
        joint = robot.parent_joint.get(name)
        fixed = joint is not None and joint.type is JointType.FIXED
        body[name] = body[joint.parent_link] if joint is not None and fixed else name
    return frozenset(pair for pair in link_pairs(robot) if body[pair[0]] == body[pair[1]])


def adjacent_pairs(robot: RobotModel, most_moving: float = 1) -> frozenset[LinkPair]:
    """Return pairs of links with shapes that are connected by joints, without other shapes between them.

    Of the joints between them no more than ``most_moving`` may move.

    Several that move, as those of a shoulder whose links between have no shapes, can fold the outer link back onto the
    inner one. A planar or floating joint takes its link anywhere, so that nothing holds the two together: what it joins
    is never adjacent. Links whose shapes could not be read count as having some.
    """
    solid = set(robot.collision_shapes) | set(robot.unchecked_links)
    pairs = set()
    for name in robot.collision_shapes:
        above = robot.parent_joint.get(name)
        moving = _moving(above)
        while above is not None and above.parent_link not in solid:
            above = robot.parent_joint.get(above.parent_link)
            moving += _moving(above)
        held = moving <= most_moving and moving < math.inf
        if above is not None and above.parent_link in robot.collision_shapes and held:
            pairs.add((above.parent_link, name))
    return frozenset(pairs)


def _moving(joint: Joint | None) -> float:
    """Return how many joints that move a joint counts as."""
    if joint is None or joint.type is JointType.FIXED:
        return 0
    return math.inf if joint.type in (JointType.PLANAR, JointType.FLOATING) else 1
