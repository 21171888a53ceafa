"""The public interface that users call: build an IkProblem, solve_ik, verified answer.

Starts from the robot's default state.
"""

from collections.abc import Mapping
from typing import Any

from kinopt_ros.array import Float64
from kinopt_ros.bench.peers import Peer
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.solvers.base import Solver

TOLERANCE = 1e-6
"""Tolerance that the benchmark asks for, m and rad."""


def public_peer(name: str, plugin: type[Solver], task: IkTask, options: Mapping[str, Any]) -> Peer:
    """Configure a plugin; the problem is built anew in every call."""
    reason = plugin.unavailable_reason()
    if reason is not None:
        raise SolverUnavailableError(reason)
    solver = plugin()
    solver.configure(task.robot, options)
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

    first = build_problem(task.T_base_target[0])
    order = first.variables.argsort()
    solver.solve_ik(first)  # which refuses what it cannot

    def solve(T_base_target: Float64) -> Float64:
        answer: Float64 = solver.solve_ik(build_problem(T_base_target)).q[0, 0, order]
        return answer

    return Peer(name, solver.version, 1, solve)
