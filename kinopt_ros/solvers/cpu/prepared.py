"""Packed chains and trees, kept for the next request of the same structure."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.robot.chain import KinematicChain, Motion, build_chain, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.chain import PackedChain, pack_chain
from kinopt_ros.solvers.cpu.tree import PackedTree, pack_tree, with_tool

K = TypeVar("K")
V = TypeVar("V")
Packed = TypeVar("Packed", PackedChain, PackedTree)
Key = tuple[object, ...]

CAPACITY = 64
"""Structures kept. Some 20 kB each; packing one takes half a millisecond, which a request whose held joints carry
sensor noise pays every time."""


@dataclass(frozen=True, eq=False)
class Prepared(Generic[Packed]):
    """Packed chains and where their variables stand in a problem's answer."""

    packed: Packed
    columns: Annotated[Int64, "n"]


class PreparedChains:
    """Least recently used ones go first. May be used from several threads."""

    def __init__(self, robot: RobotModel, quick_restarts: int) -> None:
        self._robot = robot
        self._quick_restarts = quick_restarts
        self._lock = threading.Lock()
        self._held: OrderedDict[Key, Int64] = OrderedDict()
        self._chains: OrderedDict[Key, Prepared[PackedChain]] = OrderedDict()
        self._trees: OrderedDict[Key, Prepared[PackedTree]] = OrderedDict()

    def chains_of(self, problem: IkProblem) -> Iterator[tuple[Annotated[Int64, "R"], Prepared[PackedChain]]]:
        """Requests whose held variables have the same values, and the chain of their one target, until all requests
        are named."""
        return self._of(problem, self._chains, lambda chains: self._pack(chains[0]))

    def trees_of(self, problem: IkProblem) -> Iterator[tuple[Annotated[Int64, "R"], Prepared[PackedTree]]]:
        """Likewise, with the chains of all targets."""
        limits = self._robot.limits
        return self._of(problem, self._trees, lambda chains: pack_tree(chains, limits.lower, limits.upper))

    def whole(self, base_link: str, tip_link: str, held: Mapping[int, float] | None) -> PackedChain:
        """A chain of which every joint moves but the held ones; not kept."""
        chain = build_chain(self._robot, base_link, tip_link, held)
        if (chain.motion == Motion.QUATERNION).any():
            raise UnsupportedFeatureError(
                f"solver cpu does not move floating joints; there is one between {base_link!r} and {tip_link!r}"
            )
        return self._pack(chain)

    def _of(
        self,
        problem: IkProblem,
        known: OrderedDict[Key, Prepared[Packed]],
        pack: Callable[[tuple[KinematicChain, ...]], Packed],
    ) -> Iterator[tuple[Int64, Prepared[Packed]]]:
        structure = (problem.base_link, problem.joints, *(_key(target) for target in problem.targets))
        held = self._held_variables(problem, structure)
        values = problem.state[:, held]
        if (values == values[:1]).all():
            if len(values):
                rows = np.arange(len(values))
                yield rows, self._get(problem, structure, held, values[0], known, pack)
            return
        distinct, group = np.unique(values, axis=0, return_inverse=True)
        for number, row in enumerate(distinct):
            rows = np.flatnonzero(group.reshape(-1) == number)
            yield rows, self._get(problem, structure, held, row, known, pack)

    def _held_variables(self, problem: IkProblem, structure: Key) -> Int64:
        with self._lock:
            held = self._held.get(structure)
        if held is None:
            chains = [chain_between(self._robot, problem.base_link, t.link) for t in problem.targets]
            moving = np.unique(np.concatenate([chain.variables for chain in chains]))
            held = np.setdiff1d(moving, problem.variables)
            with self._lock:
                _remember(self._held, structure, held)
        return held

    def _get(
        self,
        problem: IkProblem,
        structure: Key,
        held: Int64,
        values: Float64,
        known: OrderedDict[Key, Prepared[Packed]],
        pack: Callable[[tuple[KinematicChain, ...]], Packed],
    ) -> Prepared[Packed]:
        key = (*structure, values.tobytes())
        with self._lock:
            prepared = known.get(key)
            if prepared is not None:
                known.move_to_end(key)
                return prepared
        packed = pack(
            self._chains_with_tools(problem, dict(zip(held.tolist(), values.tolist(), strict=True)))
        )
        column = {int(variable): k for k, variable in enumerate(problem.variables)}
        columns = np.array([column[int(variable)] for variable in packed.variables], dtype=np.int64)
        prepared = Prepared(packed, columns)
        with self._lock:
            _remember(known, key, prepared)
        return prepared

    def _chains_with_tools(self, problem: IkProblem, held: Mapping[int, float]) -> tuple[KinematicChain, ...]:
        return tuple(
            with_tool(build_chain(self._robot, problem.base_link, target.link, held), target.T_link_tool)
            for target in problem.targets
        )

    def _pack(self, chain: KinematicChain) -> PackedChain:
        limits = self._robot.limits
        lower, upper = limits.lower[chain.variables], limits.upper[chain.variables]
        return pack_chain(chain, lower, upper, self._quick_restarts)


def _key(target: PoseTarget) -> Key:
    return target.link, None if target.T_link_tool is None else target.T_link_tool.tobytes()


def _remember(entries: OrderedDict[K, V], key: K, value: V) -> None:
    entries[key] = value
    entries.move_to_end(key)
    while len(entries) > CAPACITY:
        entries.popitem(last=False)
