"""Starts at link poses that have to hold: the kernel of inverse kinematics leads each start there, in microseconds."""

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64, filled
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.kinematics.tangent import directions
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.robot.chain import Motion, build_chain, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.cpu.chain import pack_chain
from kinopt_ros.solvers.cpu.plain import AIM, TABLE_TRIES, compiled_search, signed
from kinopt_ros.solvers.lru import LruCache

if TYPE_CHECKING:
    from kinopt_ros.solvers.cpu.chain import PackedChain

RESTARTS = 200
"""Random restarts where a first start, and the table of seeds, lead to no solution."""
_ACCEPTED = 1e-6
"""Distance, m, and angle, rad, from the pose that end an attempt."""
_NOTHING = np.empty(0)
_CHAINS = 16
"""Chains with held values that are kept packed."""


@dataclass(frozen=True, eq=False)
class Anchor:
    """A link pose that has to hold, and what moves the link."""

    cost: int
    """Its number in the objective."""
    base_link: str
    link: str
    held: Annotated[Int64, "h"]
    """Variables of the chain that do not move."""
    key: tuple[str, str, bytes]
    """What tells chains apart, but for held values."""


def anchors_of(robot: RobotModel, objective: Objective, free: Annotated[Bool, "nv"]) -> tuple[Anchor, ...]:
    """Return the link poses that have to hold if each can be met by variables of its own; none if not."""
    found: list[Anchor] = []
    taken: set[int] = set()
    known = directions(robot)
    own = set(known.scalar_variables[free[known.scalar_directions]].tolist())
    for number, cost in enumerate(objective):
        if type(cost) is not LinkPose or not cost.holds:
            continue
        base = cost.base_link or robot.root_link
        chain = chain_between(robot, base, cost.link)
        moving = set(chain.variables.tolist()) & own
        if (chain.motion == Motion.QUATERNION).any() or not moving or moving & taken:
            return ()
        taken |= moving
        held = np.array(sorted(set(chain.variables.tolist()) - moving), dtype=np.int64)
        found.append(Anchor(number, base, cost.link, held, (base, cost.link, held.tobytes())))
    return tuple(found)


class PoseStarts:
    """Leads starts to poses, for one robot. Thread-safe."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        self._chains: LruCache[tuple[tuple[str, str, bytes], bytes], PackedChain] = LruCache(_CHAINS)
        self._lock = threading.Lock()

    def lead(
        self, problem: ObjectiveProblem, anchors: tuple[Anchor, ...], starts: Annotated[Float64, "B S nq"]
    ) -> None:
        """Change starts so that the poses of all anchors are met, as far as they can be; the first of each request is
        tried the hardest, as the others shall stay different."""
        for anchor in anchors:
            costs = [cast(LinkPose, objective.costs[anchor.cost]) for objective in problem.objectives]
            for cost in costs:
                if not (cost.weight if isinstance(cost.weight, float) else np.all(cost.weight)):
                    return
            T = np.array([_target(cost) for cost in costs])
            if not len(anchor.held):
                _lead(self._packed(anchor, _NOTHING), T, starts, problem.random_seed)
                continue
            values = starts[:, 0].take(anchor.held, axis=1)
            if len(values) == 1 or (values == values[:1]).all():
                _lead(self._packed(anchor, values[0]), T, starts, problem.random_seed)
                continue
            for rows in _groups(values):
                mine = starts[rows]
                _lead(self._packed(anchor, values[rows[0]]), T[rows], mine, problem.random_seed)
                starts[rows] = mine

    def _packed(self, anchor: Anchor, values: Annotated[Float64, "h"]) -> "PackedChain":
        key = (anchor.key, values.tobytes())
        with self._lock:
            packed = self._chains.get(key)
        if packed is None:
            held = dict(zip(anchor.held.tolist(), values.tolist(), strict=True))
            chain = build_chain(self._robot, anchor.base_link, anchor.link, held)
            limits = self._robot.limits
            packed = pack_chain(chain, limits.lower[chain.variables], limits.upper[chain.variables], RESTARTS)
            with self._lock:
                self._chains.put(key, packed)
        return packed


def _target(cost: LinkPose) -> Annotated[Float64, "4 4"]:
    """Return the pose of the link itself."""
    if cost.T_link_tool is None:
        return cost.T_base_target
    return cost.T_base_target @ inverse(cost.T_link_tool)


def _groups(values: Annotated[Float64, "B h"]) -> list[Annotated[np.ndarray, "R"]]:
    """Return which requests hold the same values."""
    group = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    return [np.flatnonzero(group == number) for number in range(int(group.max()) + 1)]


def _lead(
    packed: "PackedChain",
    T: Annotated[Float64, "R 4 4"],
    starts: Annotated[Float64, "R S nq"],
    random_seed: int,
) -> None:
    R, S, nq = starts.shape
    starts[:, 0, packed.variables] = _solved(packed, T, starts[:, 0], TABLE_TRIES, RESTARTS, random_seed)
    if S > 1:
        rest = starts[:, 1:].reshape(-1, nq)
        further = _solved(packed, np.repeat(T, S - 1, axis=0), rest, 0, 0, random_seed)
        starts[:, 1:, packed.variables] = further.reshape(R, S - 1, -1)


def _solved(
    packed: "PackedChain",
    T: Annotated[Float64, "N 4 4"],
    starts: Annotated[Float64, "N nq"],
    table_tries: int,
    restarts: int,
    random_seed: int,
) -> Annotated[Float64, "N n"]:
    """Return the variables of a chain where each start leads to."""
    N = len(starts)
    q = starts.take(packed.variables, axis=1)
    compiled_search()(
        T,
        np.ascontiguousarray(starts),
        np.empty((N, 0, q.shape[1])),
        packed.numbers,
        packed.shape,
        _EFFORT,
        _tries(table_tries, restarts, random_seed),
        q,
        filled((N,), np.inf),
        np.zeros(N, np.int64),
        np.zeros(N, np.bool_),
    )
    return q


@lru_cache(maxsize=64)
def _tries(table_tries: int, restarts: int, random_seed: int) -> Annotated[Int64, "6"]:
    """Return the whole numbers of a search; nobody writes them."""
    return np.array([table_tries, 0, restarts, signed(random_seed), True, True], dtype=np.int64)


_EFFORT = np.array([AIM, AIM, _ACCEPTED, _ACCEPTED, 0.0, 0.0])
