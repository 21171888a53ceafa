"""An index that nobody preferred before: a file and a line in the list are all that it needs."""

import copy
import pickle
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
import pytest

from kinopt_ros.array import Float64, Int64
from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import InvalidRequestError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.planning.batching import merged, structure_key, taken_apart
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences import every
from kinopt_ros.problems.preferences.base import Preference
from kinopt_ros.problems.preferences.index import IndexPreference
from kinopt_ros.problems.preferences.manipulability import Manipulability
from kinopt_ros.problems.preferences.posture import Posture
from kinopt_ros.problems.record import load_record, make_record, recorded_problem, save_record
from kinopt_ros.problems.task import Task
from kinopt_ros.robot.chain import KinematicChain, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Capabilities, Feature, Solver
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.solvers.registry import create_solver

ROBOT = seven_revolute()


@dataclass(frozen=True, eq=False)
class Room(IndexPreference):
    """Prefers solutions far from the position limits: the least share of a joint's range that is left."""

    name: ClassVar[str] = "room"
    lower: Float64 | None = None
    upper: Float64 | None = None

    @classmethod
    def of(
        cls, robot: RobotModel, variables: Annotated[Int64, "n"], weight: float, beside: Posture | None
    ) -> Self:
        limits = robot.limits
        return cls(weight, beside, limits.lower[variables].copy(), limits.upper[variables].copy())

    def value(
        self, task: Task, q: Annotated[Float64, "N n"], request: Annotated[Int64, "N"]
    ) -> Annotated[Float64, "N"]:
        assert self.lower is not None
        assert self.upper is not None
        left = np.minimum(q - self.lower, self.upper - q) / (self.upper - self.lower)
        return np.asarray(left.min(axis=1))


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every, "INDICES", (*every.INDICES, Room))


@pytest.fixture(scope="module")
def solver() -> Iterator[Solver]:
    found = create_solver("cpu", ROBOT)
    found.warm_up()
    yield found
    found.close()


def asked(rows: slice = slice(4), **options: object) -> IkProblem:
    q = random_configurations(ROBOT, 4, 5)
    T = forward_kinematics(ROBOT, q, links=("l7",))[rows, 0]
    return ik_problem(ROBOT, T, tip_link="l7", **options)  # type: ignore[arg-type]


def test_the_cpu_solver_prefers_it(solver: Solver) -> None:
    problem = asked(prefer="room")
    plain, preferred = solver.solve_ik(asked()), solver.solve_ik(problem)
    assert preferred.success.all()
    room = problem.preference
    assert isinstance(room, Room)
    task, every_request = Task(problem, [chain_between(ROBOT, problem.base_link, "l7")]), np.arange(4)
    index = [room.value(task, result.q[:, 0], every_request) for result in (plain, preferred)]
    assert (index[1] >= index[0]).all()
    assert index[1].mean() > 1.4 * index[0].mean()
    np.testing.assert_array_equal(preferred.distance[:, 0], -index[1])


def test_requests_are_merged_to_the_same_answers(solver: Solver) -> None:
    parts = [asked(slice(k, k + 1), prefer="room") for k in range(2)]
    assert structure_key(parts[0]) == structure_key(parts[1])
    assert structure_key(parts[0]) != structure_key(asked(slice(1), prefer="manipulability"))
    together = taken_apart(solver.solve_ik(merged(parts, 1e12)), [1, 1])
    for part, result in zip(parts, together, strict=True):
        np.testing.assert_allclose(result.q, solver.solve_ik(part).q, atol=1e-9)  # sums differ by rounding


def test_records_copies_and_pickles_keep_it(tmp_path: Path) -> None:
    problem = asked(prefer="room")
    file = tmp_path / "record.yaml"
    save_record(make_record(ROBOT, problem, "cpu"), file)
    again = recorded_problem(load_record(file), ROBOT)
    assert isinstance(again.preference, Room)
    assert isinstance(problem.preference, Room)
    np.testing.assert_array_equal(again.preference.lower, problem.preference.lower)
    beside = replace(problem.preference, beside=Posture(np.zeros((4, 7)), np.ones(7)))
    assert copy.deepcopy(beside) is beside
    back = pickle.loads(pickle.dumps(beside))
    assert isinstance(back, Room)
    assert back.posture is not None
    assert not back.posture.reference.flags.writeable
    assert beside.rows(np.array([2])).posture.reference.shape == (1, 7)


def test_solvers_that_do_not_know_it_refuse_it_by_name() -> None:
    class Older(CpuSolver):
        name = "older"
        capabilities = Capabilities(CpuSolver.capabilities.joint_types, frozenset(Feature))

    solver = Older()
    solver.configure(ROBOT)
    solver.check_supported(asked(prefer="manipulability"))
    with pytest.raises(UnsupportedFeatureError, match="solver older does not support a preference for room"):
        solver.solve_ik(asked(prefer="room"))
    solver.close()


def test_what_is_no_preference_is_refused(solver: Solver) -> None:
    with pytest.raises(InvalidRequestError, match="preference is a str; allowed are Posture, Manipulability"):
        solver.solve_ik(replace(asked(), preference="closest"))  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="the weight of manipulability is -1"):
        solver.solve_ik(replace(asked(), preference=Manipulability(-1.0)))


class Lowest(Preference):
    """A preference of neither kind: searches would not know of it."""

    posture = None
    index = None

    def check(self, problem: IkProblem, robot: RobotModel) -> None:
        pass

    def cost(self, problem: IkProblem, chains: Sequence[KinematicChain], q: Float64) -> Float64:
        return np.asarray(q[..., 1])

    def rows(self, rows: Int64) -> Self:
        return self

    def key(self) -> Hashable:
        return "lowest"

    def joined(self, several: Sequence[Self]) -> Self:
        return self


class Sorted(Posture):
    """A posture with a cost of its own, which the search that the posture leads does not know of."""

    def cost(self, problem: IkProblem, chains: Sequence[KinematicChain], q: Float64) -> Float64:
        return np.asarray(q[..., 1])


def test_a_preference_that_no_search_follows_is_refused(solver: Solver) -> None:
    for given in (Lowest(), Sorted(np.zeros((4, 7)), np.ones(7))):
        with pytest.raises(InvalidRequestError, match=f"preference is a {type(given).__name__}; allowed are"):
            solver.solve_ik(replace(asked(), preference=given))


def test_kinds_that_know_different_things_are_not_merged() -> None:
    problem = asked(prefer="room")
    assert isinstance(problem.preference, Room)
    assert problem.preference.upper is not None
    other = replace(problem.preference, upper=problem.preference.upper - 0.5)
    assert structure_key(problem) == structure_key(replace(problem, preference=replace(problem.preference)))
    assert structure_key(problem) != structure_key(replace(problem, preference=other))


def test_what_a_record_cannot_bring_back_is_refused() -> None:
    class Freely(Manipulability):
        """A kind that is not in the list, though one that it derives from is."""

    problem = asked(prefer="room")
    assert isinstance(problem.preference, Room)
    assert problem.preference.upper is not None
    other = replace(problem.preference, upper=problem.preference.upper - 0.5)
    for given in (Freely(), other):
        with pytest.raises(InvalidRequestError, match=f"no record can keep .* {type(given).__name__}"):
            make_record(ROBOT, replace(problem, preference=given), "cpu")


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (lambda q: np.full(len(q), np.nan), "a value that is not finite"),
        (lambda q: np.full(len(q), np.inf), "a value that is not finite"),
        (lambda q: q[:, 1:2], r"values as float64 \(\d+, 1\); allowed is"),
        (lambda q: None, "values as NoneType"),
        (lambda q: 1.0, "values as float"),
    ],
)
def test_an_index_that_sorts_nothing_is_refused(
    form: Callable[[Float64], Float64], said: str, solver: Solver
) -> None:
    class Careless(IndexPreference):
        name = "careless"

        def value(self, task: Task, q: Float64, request: Int64) -> Float64:
            return form(q)

    with pytest.raises(InvalidRequestError, match=f"index Careless has {said}"):
        solver.solve_ik(replace(asked(slice(1)), preference=Careless()))
