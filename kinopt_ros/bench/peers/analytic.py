"""The plugin analytic: the solution nearest to the robot's default state, as every user gets it."""

from kinopt_ros.bench.peers import Peer
from kinopt_ros.bench.peers.public import public_peer
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.solvers.analytic.plugin import AnalyticSolver


def build(task: IkTask) -> Peer:
    """Any chain that has a closed form."""
    return public_peer("analytic:solve_ik", AnalyticSolver, task, {"groups": ""})
