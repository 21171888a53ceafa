"""Forward kinematics in float64, the reference for all others.

Values that are not finite give poses that are not finite: who must refuse them does so before.
"""

from collections.abc import Sequence
from typing import Annotated
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, quoted
from kinopt_ros.kinematics.motions import Motions, as_states
from kinopt_ros.robot.chain import JointMotion, KinematicChain, joint_motions
from kinopt_ros.robot.model import RobotModel


def chain_pose(chain: KinematicChain, q: Annotated[Float64, "... n"]) -> Annotated[Float64, "... 4 4"]:
    """Compute the pose ``T_base_tip`` of the chain's tip link in its base link.

    Args:
        chain: the chain; its constants are computed once and kept as long as it lives.
        q: values (rad, m) of ``chain.variables``, in that order, for any number of states, also none.

    Raises:
        InvalidStateError: the last dimension is not n, or a quaternion is zero.
    """
    states, leading = as_states(q, len(chain.variables), f"the chain {chain.base_link} -> {chain.tip_link}")
    tail = chain.T_fixed[-1]
    if len(chain.motion) == 0:
        constant: Float64 = np.tile(tail, (*leading, 1, 1))
        return constant
    T = chain_motions(chain).transforms(states)
    if len(states) == 1:  # plain 4x4 products cost half of stacked ones
        T = T[:, 0]
    T_base_tip = T[0]
    for T_step in T[1:]:
        T_base_tip = T_base_tip @ T_step
    poses: Float64 = (T_base_tip.reshape(-1, 4) @ tail).reshape(*leading, 4, 4)
    return poses


def forward_kinematics(
    robot: RobotModel, q: Annotated[Float64, "... nq"], links: Sequence[str] | None = None
) -> Annotated[Float64, "... L 4 4"]:
    """Compute poses ``T_root_link`` of links in the frame of the root link.

    Args:
        robot: the robot; its constants are computed once and kept as long as it lives.
        q: configurations (rad, m) for any number of states, also none.
        links: which links, in the order of the answer; all of ``robot.link_names`` if None.

    Raises:
        InvalidStateError: the last dimension is not nq, or a quaternion is zero.
        UnknownLinkError: a link that the robot does not have.
        InvalidRequestError: one name in place of a list.
    """
    if isinstance(links, str):
        raise InvalidRequestError(f"links is {quoted(links)}; allowed is a list of names")
    states, leading = as_states(q, robot.nq, f"robot {robot.name!r}")
    wanted = list(range(len(robot.link_names))) if links is None else [robot.link(name) for name in links]
    poses = _tree(robot).poses(states, wanted)
    return poses.reshape(*leading, len(wanted), 4, 4)


def chain_motions(chain: KinematicChain) -> Motions:
    """Return the chain's elementary motions, ready to be evaluated."""
    motions = _chain_cache.get(chain)
    if motions is None:
        motions = Motions(
            chain.T_fixed[:-1], chain.motion, chain.axis, chain.column, chain.multiplier, chain.offset
        )
        _chain_cache[chain] = motions
    return motions


class _Tree:
    """All joints of a robot as elementary motions, and for each link which of them follow its parent."""

    def __init__(self, robot: RobotModel) -> None:
        self.parent = [-1]
        self.steps: list[range] = [range(0)]
        self.fixed: list[Float64 | None] = [None]
        T_fixed: list[Float64] = []
        steps: list[JointMotion] = []
        for joint in robot.joints:
            own = joint_motions(joint)
            self.parent.append(robot.link_index[joint.parent_link])
            self.steps.append(range(len(steps), len(steps) + len(own)))
            self.fixed.append(None if own else joint.T_parent_joint)
            T_fixed += [joint.T_parent_joint if k == 0 else np.eye(4) for k in range(len(own))]
            steps += own
        self.motions = Motions(
            np.array(T_fixed).reshape(-1, 4, 4),
            np.array([step.motion for step in steps], dtype=np.int64),
            np.array([step.axis for step in steps], dtype=np.float64).reshape(-1, 3),
            np.array([step.variable for step in steps], dtype=np.int64),
            np.array([step.multiplier for step in steps], dtype=np.float64),
            np.array([step.offset for step in steps], dtype=np.float64),
        )

    def poses(self, q: Annotated[Float64, "B nq"], wanted: Sequence[int]) -> Annotated[Float64, "B L 4 4"]:
        T = self.motions.transforms(q) if self.motions.size else np.empty((0, len(q), 4, 4))
        known: dict[int, Float64] = {0: np.broadcast_to(np.eye(4), (len(q), 4, 4))}
        for link in self._needed(wanted):
            T_root_link = known[self.parent[link]]
            fixed = self.fixed[link]
            if fixed is not None:
                # One product of a tall matrix instead of a stack of small ones.
                T_root_link = (T_root_link.reshape(-1, 4) @ fixed).reshape(-1, 4, 4)
            for step in self.steps[link]:
                T_root_link = T_root_link @ T[step]
            known[link] = T_root_link
        poses = np.empty((len(q), len(wanted), 4, 4))
        for k, link in enumerate(wanted):
            poses[:, k] = known[link]
        return poses

    def _needed(self, wanted: Sequence[int]) -> list[int]:
        """Return the links asked for and all above them but the root, parents first."""
        needed: set[int] = set()
        for link in wanted:
            while link > 0 and link not in needed:
                needed.add(link)
                link = self.parent[link]
        return sorted(needed)


def _tree(robot: RobotModel) -> _Tree:
    tree = _tree_cache.get(robot)
    if tree is None:
        tree = _Tree(robot)
        _tree_cache[robot] = tree
    return tree


_chain_cache: WeakKeyDictionary[KinematicChain, Motions] = WeakKeyDictionary()
_tree_cache: WeakKeyDictionary[RobotModel, _Tree] = WeakKeyDictionary()
