"""What a problem's targets ask, as equations of its variables: their errors, and how the variables change them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.jacobian import geometric_jacobian, tangent_columns
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.robot.chain import KinematicChain, Motion, with_tool

if TYPE_CHECKING:
    from kinopt_ros.problems.ik import IkProblem, PoseTarget


class Task:
    """What a problem's targets ask, as R equations of its n variables."""

    def __init__(self, problem: "IkProblem", chains: Sequence[KinematicChain]) -> None:
        """``chains`` lead from the base link to the target's links, nothing held."""
        self._problem = problem
        self._parts = [
            (target, with_tool(chain, target.T_link_tool), _columns(problem, chain))
            for target, chain in zip(problem.targets, chains, strict=True)
        ]

    def jacobian(
        self, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"]
    ) -> Annotated[Float64, "N R n"]:
        """Compute velocities along and about the axes of the targets that are not free; 0 for what moves no target."""
        rows = []
        for target, chain, (to, source) in self._parts:
            J = geometric_jacobian(chain, self._whole(q, request)[:, chain.variables])
            R_target_base = np.swapaxes(target.T_base_target[request, :3, :3], -1, -2)
            wanted = np.zeros((len(q), 6, q.shape[1]))
            wanted[:, :3, to] = R_target_base @ J[:, :3, source]
            wanted[:, 3:, to] = R_target_base @ J[:, 3:, source]
            rows.append(wanted[:, counting(target)])
        return np.concatenate(rows, axis=1)

    def errors(
        self, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"]
    ) -> Annotated[Float64, "N R"]:
        """Compute errors of the same rows, m and rad, as ``kinematics.pose_errors`` defines them."""
        rows = []
        for target, chain, _ in self._parts:
            T_base_tool = chain_pose(chain, self._whole(q, request)[:, chain.variables])
            errors = axis_errors(
                target.T_base_target[request], T_base_tool, target.free_position, target.free_orientation
            )
            rows.append(np.concatenate(errors, axis=1)[:, counting(target)])
        return np.concatenate(rows, axis=1)

    def _whole(self, q: Float64, request: Int64) -> Annotated[Float64, "N nq"]:
        full = self._problem.state[request]
        full[:, self._problem.variables] = q
        return full


def counting(target: "PoseTarget") -> list[int]:
    """Return which of the rows x y z rx ry rz of a target are not free."""
    free = (*target.free_position, *target.free_orientation)
    return [row for row in range(6) if not free[row]]


def _columns(problem: "IkProblem", chain: KinematicChain) -> tuple[list[int], list[int]]:
    """Return columns of the problem's variables, and those of the chain's Jacobian that belong to them."""
    first, _ = tangent_columns(chain)
    source = {
        int(chain.variables[column]): int(first[i])
        for i, column in enumerate(chain.column)
        if chain.motion[i] != Motion.QUATERNION
    }
    pairs = [(k, source[v]) for k, v in enumerate(problem.variables.tolist()) if v in source]
    return [to for to, _ in pairs], [column for _, column in pairs]
