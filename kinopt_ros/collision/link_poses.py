"""Fast poses of a robot's links (microseconds), for collision checks and searches.

``kinematics/forward.py`` is the reference, which the tests hold it to.
"""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.collision.kernels.tree import tree_poses
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.chain import JointMotion, joint_motions
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel


class Tree(NamedTuple):
    """Some links and all above them, parents first, as ``kernels/tree.py`` takes them.

    The arrays are not read-only: numba would compile twice.
    """

    parent: Annotated[Int64, "L"]
    """Parent of every link; -1 for the root."""
    T_fixed: Annotated[Float64, "L 4 4"]
    """Transform before the motions of the joint above every link."""
    first: Annotated[Int64, "L"]
    last: Annotated[Int64, "L"]
    """End of the range of elementary motions of every link; ``first`` is its begin."""
    motion: Annotated[Int64, "m"]
    axis: Annotated[Float64, "m 3"]
    variable: Annotated[Int64, "m"]
    multiplier: Annotated[Float64, "m"]
    offset: Annotated[Float64, "m"]


def link_poses(
    robot: RobotModel, q: Annotated[Float64, "M nq"], links: tuple[str, ...]
) -> Annotated[Float64, "M W 4 4"]:
    """Compute poses ``T_root_link`` of links; q must be finite."""
    if q.ndim != 2 or q.shape[1] != robot.nq:  # is refused there
        return forward_kinematics(robot, q, links)
    tree, wanted = tree_above(robot, links)
    poses = np.empty((len(q), len(tree.parent), 4, 4))
    tree_poses(np.array(q, dtype=np.float64, order="C"), tree, poses)
    chosen: Float64 = poses[:, wanted]
    return chosen


@remembered
def tree_above(robot: RobotModel, links: tuple[str, ...]) -> tuple[Tree, Annotated[Int64, "W"]]:
    """Return the tree of the links and what is above them, and which of the tree's links those are that were asked
    for."""
    order = _with_parents(robot, links)
    index = {name: k for k, name in enumerate(order)}
    steps: list[JointMotion] = []
    parent, T_fixed, first = [], [], []
    for name in order:
        joint = robot.parent_joint.get(name)
        parent.append(-1 if joint is None else index[joint.parent_link])
        T_fixed.append(np.eye(4) if joint is None else joint.T_parent_joint)
        first.append(len(steps))
        steps += () if joint is None else joint_motions(joint)
    tree = Tree(
        parent=np.array(parent, dtype=np.int64),
        T_fixed=np.array(T_fixed).reshape(-1, 4, 4),
        first=np.array(first, dtype=np.int64),
        last=np.array([*first[1:], len(steps)][: len(first)], dtype=np.int64),
        motion=np.array([step.motion for step in steps], dtype=np.int64),
        axis=np.array([step.axis for step in steps], dtype=np.float64).reshape(-1, 3),
        variable=np.array([step.variable for step in steps], dtype=np.int64),
        multiplier=np.array([step.multiplier for step in steps], dtype=np.float64),
        offset=np.array([step.offset for step in steps], dtype=np.float64),
    )
    return tree, np.array([index[name] for name in links], dtype=np.int64)


def _with_parents(robot: RobotModel, links: Iterable[str]) -> list[str]:
    needed: set[str] = set()
    for name in links:
        while name not in needed:
            needed.add(name)
            if name in robot.parent_joint:
                name = robot.parent_joint[name].parent_link
    return [name for name in robot.link_names if name in needed]
