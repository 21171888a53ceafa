"""Poses of a robot's links in microseconds, for collision checks and searches.

``kinematics/forward.py`` is the reference, which the tests hold it to, and does what this does not: quaternions.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.tree_kernel import tree_poses
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.chain import JointMotion, Motion, joint_motions
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False)
class _Tree:
    """As ``tree_kernel.tree_poses`` takes it. The arrays are not read-only: numba would compile twice."""

    parent: Annotated[Int64, "L"]
    T_fixed: Annotated[Float64, "L 4 4"]
    first: Annotated[Int64, "L"]
    last: Annotated[Int64, "L"]
    turns: Annotated[Bool, "m"]
    axis: Annotated[Float64, "m 3"]
    variable: Annotated[Int64, "m"]
    multiplier: Annotated[Float64, "m"]
    offset: Annotated[Float64, "m"]
    wanted: Annotated[Int64, "W"]
    """Of the links, those that were asked for."""


def link_poses(
    robot: RobotModel, q: Annotated[Float64, "M nq"], links: tuple[str, ...]
) -> Annotated[Float64, "M W 4 4"]:
    """Poses ``T_root_link`` of links; q must be finite."""
    tree = _tree(robot, links)
    if tree is None or q.ndim != 2 or q.shape[1] != robot.nq:  # what is of a wrong shape is refused there
        return forward_kinematics(robot, q, links)
    poses = np.empty((len(q), len(tree.parent), 4, 4))
    tree_poses(
        np.array(q, dtype=np.float64, order="C"),
        tree.parent,
        tree.T_fixed,
        tree.first,
        tree.last,
        tree.turns,
        tree.axis,
        tree.variable,
        tree.multiplier,
        tree.offset,
        poses,
    )
    chosen: Float64 = poses[:, tree.wanted]
    return chosen


@remembered
def _tree(robot: RobotModel, links: tuple[str, ...]) -> _Tree | None:
    """None if a quaternion moves one of the links."""
    needed: set[str] = set()
    for name in links:
        while name not in needed:
            needed.add(name)
            if name in robot.parent_joint:
                name = robot.parent_joint[name].parent_link
    order = [name for name in robot.link_names if name in needed]
    index = {name: k for k, name in enumerate(order)}
    steps: list[JointMotion] = []
    parent, T_fixed, first = [], [], []
    for name in order:
        joint = robot.parent_joint.get(name)
        parent.append(-1 if joint is None else index[joint.parent_link])
        T_fixed.append(np.eye(4) if joint is None else joint.T_parent_joint)
        first.append(len(steps))
        steps += () if joint is None else joint_motions(joint)
    if any(step.motion is Motion.QUATERNION for step in steps):
        return None
    return _Tree(
        parent=np.array(parent, dtype=np.int64),
        T_fixed=np.array(T_fixed).reshape(-1, 4, 4),
        first=np.array(first, dtype=np.int64),
        last=np.array([*first[1:], len(steps)], dtype=np.int64),
        turns=np.array([step.motion is Motion.ROTATION for step in steps], dtype=np.bool_),
        axis=np.array([step.axis for step in steps], dtype=np.float64).reshape(-1, 3),
        variable=np.array([step.variable for step in steps], dtype=np.int64),
        multiplier=np.array([step.multiplier for step in steps], dtype=np.float64),
        offset=np.array([step.offset for step in steps], dtype=np.float64),
        wanted=np.array([index[name] for name in links], dtype=np.int64),
    )
