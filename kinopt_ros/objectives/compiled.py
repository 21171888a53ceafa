"""Verdicts on many configurations in one compiled call, where all costs are of kinds that are known here; others, and
trajectories, go the way of ``evaluation.py``.

What is judged is packed here, from the robot and the costs themselves: nothing that a solver has packed is looked at.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, overload

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64, all_set, filled
from kinopt_ros.costs.alignment import Alignment
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.center_of_mass import CenterOfMass
from kinopt_ros.costs.joints import counted
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.position_limits import PositionLimits
from kinopt_ros.costs.reference import Reference
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.kinematics.tangent import directions
from kinopt_ros.objectives.evaluation import Term, term_of
from kinopt_ros.objectives.objective import Objective, Structure
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.robot.chain import JointMotion, Motion
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.motion_tree import MotionTree

if TYPE_CHECKING:
    from kinopt_ros.objectives.kernels.verdict import Plan


class Judged(Sequence[tuple[Term, ...]]):
    """Terms of B requests, made of arrays when somebody looks at them."""

    def __init__(
        self, objectives: Sequence[Objective], ends: Sequence[int], residual: Annotated[Float64, "B R"],
        value: Annotated[Float64, "B K"],
    ) -> None:  # fmt: skip
        self._objectives, self._ends, self._residual, self._value = objectives, ends, residual, value
        self._made: dict[int, tuple[Term, ...]] = {}

    def __len__(self) -> int:
        return len(self._objectives)

    @overload
    def __getitem__(self, index: int) -> tuple[Term, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> "list[tuple[Term, ...]]": ...
    def __getitem__(self, index: int | slice) -> "tuple[Term, ...] | list[tuple[Term, ...]]":
        if isinstance(index, slice):
            return [self[b] for b in range(*index.indices(len(self)))]
        b = range(len(self))[index]
        if b not in self._made:
            parts = np.split(self._residual[b], self._ends[:-1])
            objective = self._objectives[b]
            self._made[b] = tuple(
                term_of(cost, title, part[None], value)
                for cost, title, part, value in zip(
                    objective.costs, objective.titles, parts, self._value[b].tolist(), strict=True
                )
            )
        return self._made[b]

    def __iter__(self) -> Iterator[tuple[Term, ...]]:
        return map(self.__getitem__, range(len(self)))


@dataclass(frozen=True, eq=False)
class Judgement:
    """A verdict on B claims that are finite, within limits, and where what is held is."""

    terms: Judged
    met: Annotated[Bool, "B"]
    """Which of them hold everything that has to."""


def load_or_compile(may_compile: bool) -> bool:
    """Make the kernel ready; return whether it is. Where numba is not installed it never is.

    It is loaded if it was compiled before, else compiled if that may be.
    """
    ready = _readiness()
    return ready is not None and bool(ready.load_or_compile(may_compile))


@cache
def _readiness() -> ModuleType | None:
    try:
        from kinopt_ros.objectives.kernels import ready
    except ImportError:
        return None
    return ready


@cache
def _kernel() -> ModuleType:
    """Return the kernel's file: an import takes longer than most of a verdict on one claim."""
    from kinopt_ros.objectives.kernels import verdict

    return verdict


def judged_at_once(
    robot: RobotModel, problem: ObjectiveProblem, q: Annotated[Float64, "B 1 nq"], most_held: float
) -> Judgement | None:
    """Judge claims; None if that has to go another way: a cost is of another kind or not finite, a claim is not right
    in itself, numba is not installed or the program not compiled.

    Args:
        robot: the robot.
        problem: what was asked.
        q: what is claimed; quaternions in it are of length 1, and held where they have to be.
        most_held: how far what is held may have moved, rad or m.
    """
    first = problem.objective
    if problem.num_points > 1 or not _KINDS.keys() >= set(map(type, first.costs)):
        return None
    if not load_or_compile(may_compile=False):
        return None
    kernel = _kernel()
    objectives, B = problem.objectives, problem.batch_size
    packed = _packed(robot, first.structure)
    numbers, weights, tolerances = packed.numbers_of(robot, objectives)
    right, met = np.empty(B, np.bool_), np.empty(B, np.bool_)
    residual, value = np.zeros(weights.shape), np.empty((B, len(first.costs)))
    kernel.judge(
        *packed.plan,
        q.reshape(B, robot.nq),
        np.array(problem.state),
        *_checked(robot, problem.free.tobytes()),
        numbers,
        weights,
        tolerances,
        most_held,
        right,
        residual,
        value,
        met,
    )
    if not all_set(right):
        return None
    return Judgement(Judged(objectives, packed.ends, residual, value), met)


@remembered
def _checked(robot: RobotModel, free: bytes) -> tuple[Int64, Int64, Float64, Float64, Int64]:
    """Return what is held, what moves and its limits, and mimic joints driven by it, as ``verdict.Claims`` has them."""
    known, limits = directions(robot), robot.limits
    moves = np.frombuffer(free, np.bool_)[known.scalar_directions]
    held, moving = known.scalar_variables[~moves], known.scalar_variables[moves]
    driven = [joint for joint in robot.mimic_joints if joint.first_variable in moving]
    rows = [(joint.multiplier, joint.offset, joint.lower, joint.upper) for joint in driven]
    return (
        held,
        moving,
        np.column_stack([limits.lower[moving], limits.upper[moving]]),
        np.array(rows, dtype=np.float64).reshape(-1, 4),
        np.array([joint.first_variable for joint in driven], dtype=np.int64),
    )


@dataclass(frozen=True, eq=False)
class _Packed:
    """What the kernel needs of a robot and a structure of costs."""

    plan: "Plan"
    ends: tuple[int, ...]
    """Where the rows of each cost end."""
    parts: tuple["_Part", ...]
    """Per cost."""
    count: int
    """How many numbers the costs have."""

    def numbers_of(
        self, robot: RobotModel, objectives: Sequence[Objective]
    ) -> tuple[Annotated[Float64, "B N"], Annotated[Float64, "B R"], Annotated[Float64, "B R"]]:
        """Return numbers, weights and tolerances of objectives of this structure."""
        B, R = len(objectives), self.ends[-1]
        numbers, weights, tolerances = np.empty((B, self.count)), np.empty((B, R)), filled((B, R), np.inf)
        for b, objective in enumerate(objectives):
            for part, cost in zip(self.parts, objective.costs, strict=True):
                part.write(robot, cost, numbers[b, part.numbers])
                weights[b, part.rows] = cost.weight
                if cost.tolerance is not None:
                    _write_tolerance(cost, part.pose, tolerances[b, part.rows])
        return numbers, weights, tolerances


class _Part(NamedTuple):
    """Where a cost is in what is packed, and how its numbers come there."""

    write: "Callable[[RobotModel, Any, Float64], None]"
    numbers: slice
    rows: slice
    pose: bool
    """Whether its tolerances are of distance and angle."""


def _write_tolerance(cost: Cost, pose: bool, rows: Annotated[Float64, "m"]) -> None:
    if not isinstance(cost.tolerance, tuple):
        rows[:] = cost.tolerance
    elif pose:
        rows[0], rows[3] = cost.tolerance[0], cost.tolerance[-1]
    elif np.ndim(cost.weight) == 0:
        rows[:] = cost.tolerance
    else:
        rows[np.asarray(cost.weight) != 0.0] = cost.tolerance


@remembered
def _packed(robot: RobotModel, of: Structure) -> _Packed:
    from kinopt_ros.objectives.kernels import verdict as kernel

    costs = of.costs
    massive = robot.inertials if any(type(cost) is CenterOfMass for cost in costs) else {}
    masses = {name: inertial for name, inertial in massive.items() if inertial.mass > 0.0}
    frames = list(masses)
    table = np.zeros((len(costs), kernel.COLUMNS), dtype=np.int64)
    tree = MotionTree(robot)
    lists: list[int] = []
    ends: list[int] = []
    parts: list[_Part] = []
    at = 0
    for row, cost in zip(table, costs, strict=True):
        rows = _KINDS[type(cost)].rows(robot, tree, cost)
        first = ends[-1] if ends else 0
        for column, link in ((kernel.FRAME, rows.link), (kernel.BASE, rows.base_link)):
            if link and link not in frames:
                frames.append(link)
            row[column] = frames.index(link) if link else -1
        row[kernel.FORMULA], row[kernel.VARIANT] = getattr(kernel, rows.formula), rows.variant
        row[kernel.FIRST], row[kernel.SIZE], row[kernel.NUMBERS] = first, rows.size, at
        row[kernel.LISTED], row[kernel.COUNT] = len(lists), len(rows.listed)
        row[kernel.ONE_SIDED], row[kernel.HOLDS] = cost.one_sided, cost.holds
        lists += rows.listed
        ends.append(first + rows.size)
        parts.append(
            _Part(
                _KINDS[type(cost)].write,
                slice(at, at + rows.numbers),
                slice(first, first + rows.size),
                rows.formula == "POSE",
            )
        )
        at += rows.numbers
    known = directions(robot)
    total = sum(inertial.mass for inertial in masses.values())
    plan: Plan = kernel.Plan(
        np.array(tree.parent, dtype=np.int64),
        np.array([step.motion for step in tree.steps], dtype=np.int64),
        np.array([step.variable for step in tree.steps], dtype=np.int64),
        np.array([known.of_variable[step.variable] for step in tree.steps], dtype=np.int64),
        np.array([(step.multiplier, step.offset) for step in tree.steps], dtype=np.float64).reshape(-1, 2),
        np.array([step.axis for step in tree.steps], dtype=np.float64).reshape(-1, 3),
        np.array([_basis(step, T)[:, :3] for step, T in zip(tree.steps, tree.fixed, strict=True)]).reshape(
            -1, 4, 3, 4
        ),
        np.array([tree.of_link[name][0] for name in frames], dtype=np.int64),
        np.array([tree.of_link[name][1][:3] for name in frames]).reshape(-1, 3, 4),
        table,
        np.array(lists, dtype=np.int64),
        np.column_stack([known.lower, known.upper]),
        np.array([(inertial.mass / total, *inertial.center_of_mass) for inertial in masses.values()]).reshape(
            -1, 4
        ),
    )
    return _Packed(plan, tuple(ends), tuple(parts), at)


def _basis(step: JointMotion, T: Annotated[Float64, "4 4"]) -> Annotated[Float64, "4 4 4"]:
    """Return what (1, sin v, cos v, v) are multiplied by to give a motion behind a fixed transform."""
    x, y, z = step.axis
    basis = np.zeros((4, 4, 4))
    basis[0] = T
    if step.motion == Motion.ROTATION:
        K = np.zeros((4, 4))
        K[:3, :3] = (0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)
        basis[0], basis[1], basis[2] = T + T @ K @ K, T @ K, -T @ K @ K
    elif step.motion == Motion.TRANSLATION:
        basis[3, :, 3] = T @ (x, y, z, 0.0)
    return basis


@dataclass(frozen=True)
class _Rows:
    """Structure of a cost."""

    formula: str
    """Name of the formula in ``kernels/verdict.py``."""
    size: int
    numbers: int
    """How many numbers it has."""
    link: str = ""
    base_link: str = ""
    variant: int = 0
    listed: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Kind:
    rows: Callable[[RobotModel, MotionTree, Any], _Rows]
    write: Callable[[RobotModel, Any, Float64], None]
    """Write the numbers of a cost."""


def _pose_rows(robot: RobotModel, tree: MotionTree, cost: LinkPose) -> _Rows:
    tool = cost.T_link_tool is not None
    base_link = "" if cost.base_link == robot.root_link else cost.base_link
    return _Rows("POSE", 6, 32 if tool else 16, cost.link, base_link, tool + 2 * (cost.frame == "base"))


def _write_pose(robot: RobotModel, cost: LinkPose, numbers: Annotated[Float64, "16 or 32"]) -> None:
    numbers[:16] = cost.T_base_target.ravel()
    if cost.T_link_tool is not None:
        numbers[16:] = cost.T_link_tool.ravel()


def _write_relative(robot: RobotModel, cost: RelativePose, numbers: Annotated[Float64, "16"]) -> None:
    numbers[:] = cost.T_a_b.ravel()


def _distance_rows(robot: RobotModel, tree: MotionTree, cost: Rest | Reference) -> _Rows:
    known = directions(robot)
    of_direction = {v + k: (i, k) for i, v in known.quaternions for k in range(3)}
    of_direction |= {
        v: (i, -1)
        for i, v in zip(known.scalar_variables.tolist(), known.scalar_directions.tolist(), strict=True)
    }
    own = [of_direction[v] for v in counted(robot, cost.joints).tolist()]
    return _Rows("DISTANCE", len(own), robot.nq, listed=tuple(number for pair in own for number in pair))


def _write_rest(robot: RobotModel, cost: Rest, numbers: Annotated[Float64, "nq"]) -> None:
    numbers[:] = robot.default_q if cost.q is None else cost.q


def _write_reference(robot: RobotModel, cost: Reference, numbers: Annotated[Float64, "nq"]) -> None:
    numbers[:] = cost.q[0]


def _limit_rows(robot: RobotModel, tree: MotionTree, cost: PositionLimits) -> _Rows:
    known = directions(robot)
    variable = dict(zip(known.scalar_directions.tolist(), known.scalar_variables.tolist(), strict=True))
    own = counted(robot, cost.joints).tolist()
    listed = tuple(number for v in own for number in (variable.get(v, -1), v))
    return _Rows("LIMITS", 2 * len(own), 1, listed=listed)


def _write_margin(robot: RobotModel, cost: PositionLimits, numbers: Annotated[Float64, "1"]) -> None:
    numbers[0] = cost.margin


def _index_rows(robot: RobotModel, tree: MotionTree, cost: Manipulability) -> _Rows:
    counts = np.zeros(directions(robot).nv, dtype=np.int64)
    counts[counted(robot, cost.joints)] = 1
    variant = {"translation": 30, "rotation": 33, "full": 60}[cost.part]
    listed = (*counts.tolist(), *reversed(tree.chain(cost.link)))
    return _Rows("INDEX", 1, 0, cost.link, "", variant, listed)


def _write_nothing(robot: RobotModel, cost: Manipulability, numbers: Annotated[Float64, "0"]) -> None:
    del robot, cost, numbers


def _write_directions(robot: RobotModel, cost: Alignment, numbers: Annotated[Float64, "6"]) -> None:
    numbers[:3], numbers[3:] = cost.axis, cost.direction


def _write_sight(robot: RobotModel, cost: LookAt, numbers: Annotated[Float64, "6"]) -> None:
    numbers[:3], numbers[3:] = cost.axis, cost.place


def _write_place(robot: RobotModel, cost: CenterOfMass, numbers: Annotated[Float64, "3"]) -> None:
    numbers[:] = cost.place


_KINDS: dict[type[Cost], _Kind] = {
    LinkPose: _Kind(_pose_rows, _write_pose),
    RelativePose: _Kind(
        lambda robot, tree, cost: _Rows("POSE", 6, 16, cost.link_b, cost.link_a), _write_relative
    ),
    Rest: _Kind(_distance_rows, _write_rest),
    Reference: _Kind(_distance_rows, _write_reference),
    PositionLimits: _Kind(_limit_rows, _write_margin),
    Manipulability: _Kind(_index_rows, _write_nothing),
    Alignment: _Kind(lambda robot, tree, cost: _Rows("ALIGNMENT", 3, 6, cost.link), _write_directions),
    LookAt: _Kind(lambda robot, tree, cost: _Rows("LOOK_AT", 3, 6, cost.link, cost.base_link), _write_sight),
    CenterOfMass: _Kind(
        lambda robot, tree, cost: _Rows("CENTER_OF_MASS", 3, 3, "", cost.base_link), _write_place
    ),
}
"""The kinds that are compiled, by class: one of a subclass may have another residual."""
