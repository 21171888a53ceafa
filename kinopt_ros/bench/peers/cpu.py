"""The cpu plugin's quick path: one candidate per call, unverified, as the other libraries answer, too."""

from kinopt_ros.array import Float64
from kinopt_ros.bench.peers import Peer
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.solvers.cpu.plugin import CpuSolver


def build(task: IkTask) -> Peer:
    """Compile (or load from the cache) and prepare the chain."""
    reason = CpuSolver.unavailable_reason()
    if reason is not None:
        raise SolverUnavailableError(reason)
    solver = CpuSolver()
    solver.configure(task.robot)
    held = [i for i in range(task.robot.nq) if i not in set(task.variables.tolist())]
    quick_solve = solver.chain_ik(
        task.base_link, task.tip_link, held={i: float(task.robot.default_q[i]) for i in held}
    ).solve

    def solve(T_base_target: Float64) -> Float64:
        return quick_solve(T_base_target)[0]

    return Peer("cpu", solver.version, 0, solve)
