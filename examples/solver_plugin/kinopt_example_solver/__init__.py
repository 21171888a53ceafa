"""Damped least squares with random restarts, in plain NumPy: a whole solver plugin in one file.

It is here to be read and copied, not to be fast. Verification, refusals and messages come from the base class.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose_error, so3_log
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import KinematicChain, build_chain
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers.base import Capabilities, Option, Solver
from kinopt_ros.solvers.result import IkCandidates


class ExampleDls(Solver):
    """q <- clip(q + Jᵀ (J Jᵀ + λ 1)⁻¹ e) until the pose error is small; a random restart when it is not."""

    name = "example_dls"
    version = "0.1.0"
    capabilities = Capabilities(frozenset({JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC}))
    options = (
        Option("max_restarts", 10, "Random start configurations per target.", 1, 1000),
        Option("max_iterations", 40, "Steps per start configuration.", 1, 1000),
        Option("damping", 1e-4, "λ of the damped step.", 0.0, 1.0),
    )

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        self._options = options

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        chain = build_chain(self.robot, problem.base_link, problem.targets[0].link)
        B, n = problem.batch_size, len(problem.variables)
        q = np.full((B, 1, n), np.nan)
        attempt = np.empty((B, n))
        iterations = np.zeros(B, dtype=np.int64)
        timed_out = np.zeros(B, dtype=bool)
        for b in range(B):
            best = np.inf
            attempt[b] = self._clipped(problem, problem.state[b, problem.variables])
            for start in self._starts(problem, b):
                if problem.deadline is not None and time.monotonic() > problem.deadline:
                    timed_out[b] = True
                    break
                candidate, error, steps = self._descend(problem, chain, b, start)
                iterations[b] += steps
                if error < best:
                    best, attempt[b] = error, candidate
                if best <= 1.0:
                    q[b, 0] = attempt[b]
                    break
        return IkCandidates(q, attempt, iterations, timed_out)

    def _starts(self, problem: IkProblem, b: int) -> Iterator[Any]:
        yield problem.state[b, problem.variables]
        yield from problem.seeds[b]
        # Every target gets equal starts, so that its answer does not depend on the other targets.
        seed = problem.random_seed
        yield from random_configurations(self.robot, self._options["max_restarts"], seed)[
            :, problem.variables
        ]

    def _descend(
        self, problem: IkProblem, chain: KinematicChain, b: int, start: Any
    ) -> tuple[Any, float, int]:
        """Configuration reached, its error in units of the tolerances, steps."""
        target, variables = problem.targets[0], problem.variables
        # Columns of the Jacobian that belong to solved variables; the others are held.
        columns = [list(chain.variables).index(v) if v in chain.variables else -1 for v in variables]
        moving = [i for i, column in enumerate(columns) if column >= 0]
        full = problem.state[b].copy()
        full[variables] = self._clipped(problem, start)
        error, steps = np.inf, 0
        while steps < self._options["max_iterations"]:
            steps += 1
            T = chain_pose(chain, full[chain.variables])
            T_target = target.T_base_target[b]
            distance, angle = pose_error(T_target, T)
            error = max(
                float(distance) / target.position_tolerance, float(angle) / target.orientation_tolerance
            )
            if error <= 1.0:
                break
            e = np.concatenate([T_target[:3, 3] - T[:3, 3], so3_log(T_target[:3, :3] @ T[:3, :3].T)])
            J = geometric_jacobian(chain, full[chain.variables])[:, [columns[i] for i in moving]]
            dq = J.T @ np.linalg.solve(J @ J.T + self._options["damping"] * np.eye(6), e)
            solved = full[variables]
            solved[moving] += np.clip(dq, -1.0, 1.0)
            full[variables] = self._clipped(problem, solved)
        return full[variables], error, steps

    def _clipped(self, problem: IkProblem, q: Any) -> Any:
        limits = self.robot.limits
        return np.clip(q, limits.lower[problem.variables], limits.upper[problem.variables])
