"""Packed chains and trees of problems."""

from collections.abc import Mapping

from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.robot.chain import KinematicChain, Motion, build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.chain import PackedChain, pack_chain
from kinopt_ros.solvers.cpu.tree import PackedTree, pack_tree
from kinopt_ros.solvers.locked_joints import PreparedChains


def prepared_chains(robot: RobotModel, quick_restarts: int) -> PreparedChains[PackedChain]:
    """Return the packed chains of problems with one target."""
    return PreparedChains(robot, lambda chains: _packed(robot, chains[0], quick_restarts))


def prepared_trees(robot: RobotModel) -> PreparedChains[PackedTree]:
    """Return the packed chains of all targets."""
    return PreparedChains(robot, lambda chains: pack_tree(chains, robot.limits.lower, robot.limits.upper))


def whole_chain(
    robot: RobotModel, base_link: str, tip_link: str, held: Mapping[int, float] | None, quick_restarts: int
) -> PackedChain:
    """Return a chain of which every joint moves but the held ones; it is not kept."""
    chain = build_chain(robot, base_link, tip_link, held)
    if (chain.motion == Motion.QUATERNION).any():
        raise UnsupportedFeatureError(
            f"solver cpu does not move floating joints; there is one between {base_link!r} and {tip_link!r}"
        )
    return _packed(robot, chain, quick_restarts)


def _packed(robot: RobotModel, chain: KinematicChain, quick_restarts: int) -> PackedChain:
    lower, upper = robot.limits.lower[chain.variables], robot.limits.upper[chain.variables]
    return pack_chain(chain, lower, upper, quick_restarts)
