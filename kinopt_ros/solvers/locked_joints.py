"""Grouping of a batch's requests by held joint values, and what a plugin prepared for each group."""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Generic, Protocol, TypeVar

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.problems.chains import default_group
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.robot.chain import KinematicChain, build_chain, chain_between, with_tool
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.lru import LruCache
from kinopt_ros.solvers.result import IkCandidates

CAPACITY = 64
"""Number of structures kept, some 20 kB each. Packing one takes half a millisecond, which a request whose held joints
carry sensor noise pays every time."""


DEFAULT_GROUP = "default"
"""In the option ``groups`` of a solver: the group that requests mean which name none."""


def named_groups(robot: RobotModel, names: str) -> list[str]:
    """Return the groups that the option ``groups`` of a solver names, separated by commas.

    Raises:
        KinoptError: the robot has no such group.
    """
    given = [name.strip() for name in names.split(",") if name.strip()]
    groups = [default_group(robot).name if name == DEFAULT_GROUP else name for name in given]
    for name in groups:
        robot.group(name)
    return groups


def group_chain(robot: RobotModel, group_name: str) -> KinematicChain | None:
    """Return the chain of a group's plain requests, other joints held at ``robot.default_q``.

    None if the group has no tip, or nothing of it moves.
    """
    group = robot.group(group_name)
    if group.tip_link is None:
        return None
    base = group.base_link or robot.root_link
    moving = {i for name in group.joints for i in robot.variables_of(name)}
    whole = build_chain(robot, base, group.tip_link)
    held = {int(i): float(robot.default_q[i]) for i in whole.variables if int(i) not in moving}
    chain = build_chain(robot, base, group.tip_link, held)
    return chain if len(chain.variables) else None


class HasVariables(Protocol):
    """Result of a plugin's packing of a problem's chains."""

    @property
    def variables(self) -> Annotated[Int64, "n"]:
        """Indices in the robot's q of the variables that move the chains."""


Packed = TypeVar("Packed", bound=HasVariables)
Key = tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Prepared(Generic[Packed]):
    """Packed chains, and the columns of their variables in a problem's answer."""

    packed: Packed
    columns: Annotated[Int64, "n"]
    in_order: bool
    """Whether the variables are all columns, from the first to the last."""


class PreparedChains(Generic[Packed]):
    """The chains of problems' targets, held values and tools folded in, packed by a function of the plugin.

    Least recently used ones go first. May be used from several threads.
    """

    def __init__(self, robot: RobotModel, pack: Callable[[tuple[KinematicChain, ...]], Packed]) -> None:
        self._robot = robot
        self._pack = pack
        self._lock = threading.Lock()
        self._held: LruCache[Key, Int64] = LruCache(CAPACITY)
        self._prepared: LruCache[Key, Prepared[Packed]] = LruCache(CAPACITY)

    def of(self, problem: IkProblem) -> Iterator[tuple[Annotated[Int64, "R"], Prepared[Packed]]]:
        """Yield requests whose held variables have the same values, and the chains of their targets, until all are
        named."""
        B = problem.batch_size
        if B == 1:
            yield np.arange(1), self.of_one(problem)
            return
        structure = _structure(problem)
        held = self._held_variables(problem, structure)
        values = problem.state[:, held] if len(held) else np.empty((B, 0))
        if not len(held) or (values == values[:1]).all():
            if B:
                yield np.arange(B), self._get(problem, structure, held, values[0])
            return
        distinct, group = np.unique(values, axis=0, return_inverse=True)
        for number, row in enumerate(distinct):
            rows = np.flatnonzero(group.reshape(-1) == number)
            yield rows, self._get(problem, structure, held, row)

    def of_one(self, problem: IkProblem) -> Prepared[Packed]:
        """Return the chains of the targets of a problem with one request."""
        structure = _structure(problem)
        with self._lock:
            prepared = self._prepared.get(structure)  # is there if nothing is held
        if prepared is None:
            held = self._held_variables(problem, structure)
            prepared = self._get(problem, structure, held, problem.state[0, held])
        return prepared

    def _held_variables(self, problem: IkProblem, structure: Key) -> Int64:
        with self._lock:
            held = self._held.get(structure)
        if held is None:
            chains = [chain_between(self._robot, problem.base_link, t.link) for t in problem.targets]
            moving = np.unique(np.concatenate([chain.variables for chain in chains]))
            held = np.setdiff1d(moving, problem.variables)
            with self._lock:
                self._held.put(structure, held)
        return held

    def _get(self, problem: IkProblem, structure: Key, held: Int64, values: Float64) -> Prepared[Packed]:
        key = (*structure, values.tobytes()) if len(held) else structure
        with self._lock:
            prepared = self._prepared.get(key)
        if prepared is not None:
            return prepared
        values_of = dict(zip(held.tolist(), values.tolist(), strict=True))
        packed = self._pack(self._chains_with_tools(problem, values_of))
        column = {int(variable): k for k, variable in enumerate(problem.variables)}
        columns = np.array([column[int(variable)] for variable in packed.variables], dtype=np.int64)
        prepared = Prepared(packed, columns, columns.tolist() == list(range(len(problem.variables))))
        with self._lock:
            self._prepared.put(key, prepared)
        return prepared

    def _chains_with_tools(self, problem: IkProblem, held: Mapping[int, float]) -> tuple[KinematicChain, ...]:
        return tuple(
            with_tool(build_chain(self._robot, problem.base_link, target.link, held), target.T_link_tool)
            for target in problem.targets
        )


def solve_in_parts(
    problem: IkProblem,
    chains: PreparedChains[Packed],
    solve: Callable[[IkProblem, Prepared[Packed]], IkCandidates],
) -> IkCandidates:
    """Return candidates of all requests, solved together as far as they hold the same values."""
    if problem.batch_size == 1:
        return solve(problem, chains.of_one(problem))
    parts: list[tuple[Int64, IkCandidates]] = []
    for rows, prepared in chains.of(problem):
        part = problem if len(rows) == problem.batch_size else rows_of(problem, rows)
        parts.append((rows, solve(part, prepared)))
    if len(parts) == 1:
        return parts[0][1]
    B, n = problem.batch_size, len(problem.variables)
    K = max((found.q.shape[1] for _, found in parts), default=problem.num_solutions)
    joined = IkCandidates(
        np.full((B, K, n), np.nan),
        np.empty((B, n)),
        np.zeros(B, np.int64),
        np.zeros(B, np.bool_),
        parts[0][1].algorithm if parts else "",
    )
    for rows, found in parts:
        joined.q[rows, : found.q.shape[1]], joined.attempt[rows] = found.q, found.attempt
        joined.iterations[rows], joined.timed_out[rows] = found.iterations, found.timed_out
    return joined


def standing(problem: IkProblem, robot: RobotModel) -> Annotated[Float64, "B n"]:
    """Return the state of the solved variables, inside the limits."""
    variables = problem.variables
    return np.asarray(
        np.clip(problem.state[:, variables], robot.limits.lower[variables], robot.limits.upper[variables])
    )


def _structure(problem: IkProblem) -> Key:
    return (problem.base_link, problem.joints, *map(_key, problem.targets))


def _key(target: PoseTarget) -> Key:
    return target.link, None if target.T_link_tool is None else target.T_link_tool.tobytes()
