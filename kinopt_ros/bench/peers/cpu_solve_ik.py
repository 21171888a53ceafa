"""The plugin cpu as every user gets it, from the robot's default state."""

from kinopt_ros.bench.peers import Peer
from kinopt_ros.bench.peers.public import public_peer
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.solvers.cpu.plugin import CpuSolver


def build(task: IkTask) -> Peer:
    """Any chain."""
    return public_peer("cpu:solve_ik", CpuSolver, task, {})
