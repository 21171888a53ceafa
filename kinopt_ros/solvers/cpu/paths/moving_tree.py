"""Part of a robot that some variables move, in the form that compiled functions take."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.link_poses import link_poses
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.robot.chain import Motion, in_plane_axes, joint_motions
from kinopt_ros.robot.model import RobotModel


@dataclass(frozen=True, eq=False)
class MovingTree:
    """Tree of motions about or along z, parents first; node 0 is the root, which does not move."""

    parent: Annotated[Int64, "M"]
    """Parent of each node; -1 for node 0."""
    fixed: Annotated[Float64, "M 12"]
    """Pose of each node before its motion in the frame of its parent: rotation (row-major), then position."""
    turns: Annotated[Bool, "M"]
    """Whether each node turns about z; else it moves along z."""
    column: Annotated[Int64, "M"]
    """Variable of the path that drives each node; -1 for node 0."""
    multiplier: Annotated[Float64, "M"]
    offset: Annotated[Float64, "M"]
    node: Annotated[Int64, "L"]
    """Node that carries each link of the robot."""
    T_node_link: Annotated[Float64, "L 4 4"]

    @property
    def arrays(self) -> tuple[Int64, Float64, Bool, Int64, Float64, Float64]:
        """Arrays in the form that the kernels take."""
        return self.parent, self.fixed, self.turns, self.column, self.multiplier, self.offset


def moving_tree(
    robot: RobotModel, variables: Annotated[Int64, "n"], q: Annotated[Float64, "nq"]
) -> MovingTree:
    """Build the tree of the links that ``variables`` move, while all others stay at ``q``."""
    column_of = {variable: k for k, variable in enumerate(variables.tolist())}
    T_root = link_poses(robot, q[None], robot.link_names)[0]
    parent, fixed, turns, column, multiplier, offset = [-1], [np.eye(4)], [True], [-1], [0.0], [0.0]
    node, pose = {robot.root_link: 0}, {robot.root_link: np.eye(4)}
    for joint in robot.joints:
        steps = joint_motions(joint)
        above, T = node[joint.parent_link], pose[joint.parent_link]
        if any(step.variable in column_of for step in steps if step.motion is not Motion.QUATERNION):
            T = T @ joint.T_parent_joint
            for step in steps:
                x, y = in_plane_axes(step.axis)
                aligned = np.eye(4)
                aligned[:3, :3] = np.array([x, y, step.axis]).T
                parent.append(above)
                fixed.append(T @ aligned)
                turns.append(step.motion is Motion.ROTATION)
                # What is held beside a variable that moves, of one joint, is a motion by a constant.
                moves = step.variable in column_of
                column.append(column_of[step.variable] if moves else 0)
                multiplier.append(step.multiplier if moves else 0.0)
                offset.append(step.offset + (0.0 if moves else step.multiplier * float(q[step.variable])))
                above, T = len(parent) - 1, aligned.T
        else:
            a, b = robot.link_index[joint.parent_link], robot.link_index[joint.child_link]
            T = T @ inverse(T_root[a]) @ T_root[b]
        node[joint.child_link], pose[joint.child_link] = above, T
    table = np.array(fixed)
    return MovingTree(
        parent=np.array(parent, dtype=np.int64),
        fixed=np.concatenate([table[:, :3, :3].reshape(-1, 9), table[:, :3, 3]], axis=1),
        turns=np.array(turns, dtype=np.bool_),
        column=np.array(column, dtype=np.int64),
        multiplier=np.array(multiplier),
        offset=np.array(offset),
        node=np.array([node[name] for name in robot.link_names], dtype=np.int64),
        T_node_link=np.array([pose[name] for name in robot.link_names]),
    )
