"""Packed chains, kept for the next request of the same structure."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeVar

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import Motion, build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.chain import PackedChain, pack_chain

K = TypeVar("K")
V = TypeVar("V")

CAPACITY = 64
"""Chains kept. Some 20 kB each; packing one takes half a millisecond, which a request whose held joints carry
sensor noise pays every time."""


@dataclass(frozen=True, eq=False)
class PreparedChain:
    """A packed chain and where its variables stand in a problem's answer."""

    packed: PackedChain
    columns: Annotated[Int64, "n"]


class PreparedChains:
    """Least recently used chains go first. May be used from several threads."""

    def __init__(self, robot: RobotModel, quick_restarts: int) -> None:
        self._robot = robot
        self._quick_restarts = quick_restarts
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[str, str, tuple[str, ...]], Int64] = OrderedDict()
        self._chains: OrderedDict[tuple[str, str, tuple[str, ...], bytes], PreparedChain] = OrderedDict()

    def of(self, problem: IkProblem) -> Iterator[tuple[Annotated[Int64, "R"], PreparedChain]]:
        """Requests whose held variables have the same values, and the chain of these, until all requests are named."""
        held = self._held_variables(problem)
        values = problem.state[:, held]
        if (values == values[:1]).all():
            if len(values):
                yield np.arange(len(values)), self._get(problem, held, values[0])
            return
        distinct, group = np.unique(values, axis=0, return_inverse=True)
        for number, row in enumerate(distinct):
            yield np.flatnonzero(group.reshape(-1) == number), self._get(problem, held, row)

    def _held_variables(self, problem: IkProblem) -> Int64:
        structure = (problem.base_link, problem.targets[0].link, problem.joints)
        with self._lock:
            held = self._held.get(structure)
        if held is None:
            chain = build_chain(self._robot, structure[0], structure[1])
            held = np.setdiff1d(chain.variables, problem.variables)
            with self._lock:
                _remember(self._held, structure, held)
        return held

    def _get(self, problem: IkProblem, held: Int64, values: Float64) -> PreparedChain:
        key = (problem.base_link, problem.targets[0].link, problem.joints, values.tobytes())
        with self._lock:
            prepared = self._chains.get(key)
            if prepared is not None:
                self._chains.move_to_end(key)
                return prepared
        prepared = self._prepare(problem, dict(zip(held.tolist(), values.tolist(), strict=True)))
        with self._lock:
            _remember(self._chains, key, prepared)
        return prepared

    def whole(self, base_link: str, tip_link: str, held: Mapping[int, float] | None) -> PackedChain:
        """A chain of which every joint moves but the held ones; not kept."""
        chain = build_chain(self._robot, base_link, tip_link, held)
        if (chain.motion == Motion.QUATERNION).any():
            raise UnsupportedFeatureError(
                f"solver cpu does not move floating joints; there is one between {base_link!r} and {tip_link!r}"
            )
        limits = self._robot.limits
        lower, upper = limits.lower[chain.variables], limits.upper[chain.variables]
        return pack_chain(chain, lower, upper, self._quick_restarts)

    def _prepare(self, problem: IkProblem, values: Mapping[int, float]) -> PreparedChain:
        chain = build_chain(self._robot, problem.base_link, problem.targets[0].link, values)
        limits = self._robot.limits
        lower, upper = limits.lower[chain.variables], limits.upper[chain.variables]
        column = {int(variable): k for k, variable in enumerate(problem.variables)}
        columns = np.array([column[int(variable)] for variable in chain.variables], dtype=np.int64)
        return PreparedChain(pack_chain(chain, lower, upper, self._quick_restarts), columns)


def _remember(entries: OrderedDict[K, V], key: K, value: V) -> None:
    entries[key] = value
    entries.move_to_end(key)
    while len(entries) > CAPACITY:
        entries.popitem(last=False)
