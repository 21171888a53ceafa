"""One target in, one candidate out, with nothing in between: for benchmarks and tight loops."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.numba_cache import loaded_or_compiled
from kinopt_ros.solvers.cpu.chain import PackedChain
from kinopt_ros.solvers.cpu.kernels.plain import SOLVE_ONE, solve_one


class ChainIk:
    """Solves single targets of one chain to 1e-6 m and 1e-6 rad, always the same way.

    Internal to this plugin: what it returns is a candidate that keeps the joint limits but was not verified. Users
    call ``Solver.solve_ik``.
    """

    __slots__ = ("_n", "_packed", "variables")

    def __init__(self, packed: PackedChain) -> None:
        loaded_or_compiled(solve_one, SOLVE_ONE, may_compile=True)
        # One array costs less per call than two.
        self._packed = np.concatenate([packed.shape.view(np.float64), packed.numbers])
        self._n = len(packed.variables)
        self.variables = packed.variables
        """Indices in the robot's q of the answer's columns."""

    def solve(self, T_base_target: Annotated[Float64, "4 4"]) -> tuple[Annotated[Float64, "n"], bool]:
        """Return a configuration and whether it reaches the target; if not, it is the best attempt."""
        q = np.empty(self._n)
        try:
            return q, solve_one(T_base_target, self._packed, q)
        except TypeError:
            # A read-only array, another layout or another dtype: the kernel is compiled for one kind only.
            T = np.array(T_base_target, dtype=np.float64, order="C")
            return q, solve_one(T, self._packed, q)
