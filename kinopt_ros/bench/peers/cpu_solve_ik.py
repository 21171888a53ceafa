"""The public interface that users call: build an IkProblem, solve_ik, verified answer.

Starts from the robot's default state.
"""

from kinopt_ros.array import Float64
from kinopt_ros.bench.peers import Peer
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.solvers.cpu.plugin import CpuSolver

TOLERANCE = 1e-6
"""Tolerance that the benchmark asks for, m and rad."""


def build(task: IkTask) -> Peer:
    """Configure the plugin; the problem is built anew in every call."""
    reason = CpuSolver.unavailable_reason()
    if reason is not None:
        raise SolverUnavailableError(reason)
    solver = CpuSolver()
    solver.configure(task.robot)
    robot, base, tip = task.robot, task.base_link, task.tip_link

    def build_problem(T_base_target: Float64) -> IkProblem:
        return ik_problem(
            robot,
            T_base_target,
            base_link=base,
            tip_link=tip,
            position_tolerance=TOLERANCE,
            orientation_tolerance=TOLERANCE,
        )

    order = build_problem(task.T_base_target[0]).variables.argsort()

    def solve(T_base_target: Float64) -> Float64:
        answer: Float64 = solver.solve_ik(build_problem(T_base_target)).q[0, 0, order]
        return answer

    return Peer("cpu:solve_ik", solver.version, 1, solve)
