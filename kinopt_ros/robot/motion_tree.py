"""A robot's joints as elementary motions, one behind the other, for code that walks through all of them."""

from collections.abc import Iterable

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.robot.chain import JointMotion, joint_motions
from kinopt_ros.robot.model import RobotModel


class MotionTree:
    """Elementary motions that some links depend on, and which of them, and where, each link is fixed to."""

    def __init__(self, robot: RobotModel, links: Iterable[str] | None = None) -> None:
        """``links``: those that matter; None: all."""
        needed = set(robot.link_names if links is None else ())
        for link in links or ():
            while link in robot.parent_joint and link not in needed:
                needed.add(link)
                link = robot.parent_joint[link].parent_link
        self.parent: list[int] = []
        """For each motion the one before; -1: it is the first one."""
        self.steps: list[JointMotion] = []
        self.fixed: list[Float64] = []
        """What stands before each motion, behind the one before: poses of shape (4, 4)."""
        self.of_link: dict[str, tuple[int, Float64]] = {robot.root_link: (-1, np.eye(4))}
        """For each link the motion that it is behind, and its pose there."""
        for joint in robot.joints:
            if joint.child_link not in needed:
                continue
            motion, T = self.of_link[joint.parent_link]
            T = T @ joint.T_parent_joint
            for step in joint_motions(joint):
                self.parent.append(motion)
                self.steps.append(step)
                self.fixed.append(T)
                motion, T = len(self.steps) - 1, np.eye(4)
            self.of_link[joint.child_link] = motion, T

    def chain(self, link: str) -> list[int]:
        """Return the motions from the root to a link."""
        found, at = [], self.of_link[link][0]
        while at >= 0:
            found.append(at)
            at = self.parent[at]
        return found[::-1]
