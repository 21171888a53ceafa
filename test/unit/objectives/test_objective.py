"""Objectives, and problems made of them: what they refuse, and which points count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from support.cost_cases import every_joint, target

from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.smoothness import LeastJerk, Smoothness
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.tangent import difference, directions
from kinopt_ros.objectives.objective import MOST_COSTS, Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem, with_objectives
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot

HAND = LinkPose(link="panda_hand", T_base_target=target(), tolerance=1e-3)


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


def test_titles_are_numbered_where_they_repeat() -> None:
    objective = Objective([Rest(), Rest(), Rest(label="home"), HAND, Rest()])
    assert objective.titles == ("rest", "rest 2", "home", "link_pose", "rest 3")
    assert len(set(objective.titles)) == len(objective)
    assert list(objective) == list(objective.costs)


def test_titles_are_never_twice_the_same() -> None:
    objective = Objective([Rest(label="rest 2"), Rest(), Rest(), Rest(), Rest(label="rest 2")])
    assert objective.titles[:3] == ("rest 2", "rest", "rest 3")
    assert len(set(objective.titles)) == 5


def test_structures_are_equal_where_only_numbers_differ() -> None:
    def structure(link: str, x: float, **other: Any) -> object:
        T = np.eye(4)
        T[0, 3] = x
        return Objective([LinkPose(link=link, T_base_target=T, **other), Rest(weight=x)]).structure

    first = structure("hand", 0.1)
    assert first == structure("hand", 0.2, label="reach", weight=3.0)
    assert hash(first) == hash(structure("hand", 0.2))
    others = [("arm", {}), ("hand", {"tolerance": 1e-3}), ("hand", {"T_link_tool": np.eye(4)})]
    assert all(first != structure(link, 0.1, **other) for link, other in others)


def test_what_has_to_hold() -> None:
    assert Objective([Rest(), HAND]).has_to_hold
    assert not Objective([Rest()]).has_to_hold
    assert Objective([Rest(tolerance=0.0)]).has_to_hold


@pytest.mark.parametrize("costs", [[], [Rest()] * (MOST_COSTS + 1), ["rest"], [None]])
def test_objectives_refuse(costs: list[Any]) -> None:
    with pytest.raises(KinoptError):
        Objective(costs)


def test_points_that_count() -> None:
    objective = Objective([Rest(), Smoothness(), LeastJerk(), Rest(points=(-1, 0, -1, 3))])
    rest, smoothness, jerk, some = objective.costs
    assert objective.points_of(rest, 6) == (0, 1, 2, 3, 4, 5)
    assert objective.points_of(smoothness, 6) == (0, 1, 2, 3, 4)
    assert objective.points_of(jerk, 6) == (0, 1, 2, 3, 4, 5)
    assert objective.points_of(some, 6) == (0, 3, 5)
    assert objective.points_of(Smoothness(points=(2, -1)), 6) == (2,)


@dataclass(frozen=True, eq=False, kw_only=True)
class Both(Rest):
    """Wants neighbours and derivatives."""

    name: ClassVar[str] = "both"
    span: ClassVar[int] = 2
    order: ClassVar[int] = 1


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("no objective", {"objective": []}, "Objective"),
    ("a list of costs", {"objective": [Rest()]}, "Objective"),
    ("unknown link", {"objective": Objective([LinkPose(link="nose", T_base_target=target())])}, "nose"),
    ("too few points", {"objective": Objective([VelocityLimits()])}, "2 neighbouring points; 1 is"),
    (
        "too few points",
        {"objective": Objective([LeastJerk()]), "num_points": 3},
        "4 neighbouring points; 3 are",
    ),
    ("point beyond", {"objective": Objective([Rest(points=(5,))]), "num_points": 5}, "allowed is -5 to 4"),
    ("point before", {"objective": Objective([Rest(points=(-6,))]), "num_points": 5}, "allowed is -5 to 4"),
    (
        "no point",
        {"objective": Objective([Smoothness(points=(-1,))]), "num_points": 5},
        "points after its own",
    ),
    ("both", {"objective": Objective([Both()]), "num_points": 5}, "a span and an order"),
    ("another structure", {"objective": [Objective([Rest()]), Objective([Rest(), Rest()])]}, "objective 1"),
    (
        "other joints",
        {"objective": [Objective([Rest()]), Objective([Rest(joints=("panda_joint1",))])]},
        "objective 1",
    ),
    ("num_points", {"num_points": 0}, "num_points is 0"),
    ("num_points", {"num_points": True}, "num_points is True"),
    ("too large", {"num_points": 400}, "are more than 1024 variables"),
    ("num_points", {"num_points": 513}, "num_points is 513"),
    ("num_points", {"num_points": 2.0}, "num_points is 2.0"),
    ("dt", {"dt": 0.0}, "dt is 0.0"),
    ("dt", {"dt": np.nan}, "dt is nan"),
    ("dt", {"dt": "fast"}, "dt is 'fast'"),
    ("dt", {"dt": True}, "dt is True"),
    ("clearance", {"clearance": -1.0}, "clearance is -1.0"),
    ("num_starts", {"num_starts": -1}, "num_starts is -1"),
    ("num_starts", {"num_starts": 1025}, "num_starts is 1025"),
    ("random_seed", {"random_seed": -1}, "random_seed is -1"),
    ("random_seed", {"random_seed": 0.5}, "random_seed is 0.5"),
    ("deadline", {"deadline": "soon"}, "deadline is 'soon'"),
    ("deadline", {"deadline": np.nan}, "deadline is nan"),
    ("group", {"group": "nose"}, "nose"),
    ("group and joints", {"group": "panda_arm", "joints": ["panda_joint1"]}, "not both"),
    ("joint", {"joints": ["nose"]}, "nose"),
    ("joint", {"joints": ["panda_hand_joint"]}, "panda_hand_joint"),
    ("no joint", {"joints": []}, "nothing is left"),
    ("locked", {"locked": ["nose"]}, "nose"),
    ("state", {"state": np.zeros(3)}, "state has shape (3,)"),
    ("state", {"state": np.full(8, np.nan)}, "state has values"),
    ("state", {"state": np.full(8, 1e10)}, "state has values"),
    ("state", {"state": np.zeros((2, 8))}, "state has shape (2, 8)"),
    ("state", {"state": "home"}, "state"),
    ("seeds", {"seeds": np.zeros((2, 8))}, "seeds has shape (2, 8)"),
    ("seeds", {"seeds": np.zeros((2, 3, 8))}, "seeds has shape (1, 2, 3, 8)"),
    ("seeds", {"seeds": np.full((1, 1, 8), np.inf)}, "seeds has values"),
]


@pytest.mark.parametrize(("name", "values", "said"), BAD, ids=[f"{name} {said}" for name, _, said in BAD])
def test_problems_refuse(panda: RobotModel, name: str, values: dict[str, Any], said: str) -> None:
    del name
    values = {"objective": Objective([Rest()])} | values
    with pytest.raises(KinoptError) as error:
        objective_problem(panda, **values)
    assert said in str(error.value)


def test_quaternions_of_states() -> None:
    robot = every_joint()
    q = robot.default_q.copy()
    q[3:7] = 0.0
    with pytest.raises(KinoptError, match="quaternion of length 0"):
        objective_problem(robot, Objective([Rest()]), joints=["a"], state=q)
    q[3:7] = [2.0, 0.0, 0.0, 0.0]
    problem = objective_problem(robot, Objective([Rest()]), joints=["a"], state=q)
    assert problem.state[0, 3:7].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_seeds_do_not_move_what_is_held() -> None:
    robot = every_joint()
    known = directions(robot)
    state, seed = random_configurations(robot, 2, 0)
    problem = objective_problem(
        robot,
        Objective([Rest()]),
        joints=["fly", "a"],
        locked=["fly/rot_x", "fly/rot_y"],
        state=state,
        seeds=seed[None, None],
    )
    step = difference(known, state, problem.seeds[0, 0, 0])
    np.testing.assert_allclose(step[~problem.free], 0.0, atol=1e-9)
    assert problem.seeds[0, 0, 0, robot.joint("a").first_variable] == pytest.approx(
        seed[robot.joint("a").first_variable], abs=1e-12
    )


def test_what_is_filled_in(panda: RobotModel) -> None:
    B, T = 3, 4
    objectives = [Objective([Rest(weight=float(b + 1))]) for b in range(B)]
    seeds = np.zeros((2, T, panda.nq))
    problem = objective_problem(panda, objectives, num_points=T, seeds=seeds, state=panda.default_q)
    assert problem.batch_size == B
    assert problem.state.shape == (B, panda.nq)
    assert problem.seeds.shape == (B, 2, T, panda.nq)
    assert problem.free.sum() == 7
    assert not problem.seeds.flags.writeable
    assert problem.objective is objectives[0]
    assert not problem.late
    assert objective_problem(panda, objectives[0], deadline=0.0).late
    seeds[:] = 1.0
    assert not (problem.seeds[..., 0] == 1.0).any()


def moved_target() -> np.ndarray:
    T = target().copy()
    T[:3, 3] += 0.01, -0.02, 0.03
    return T


def test_an_objective_with_another_target_is_as_if_made_anew() -> None:
    first = Objective([HAND, Rest(weight=0.1)])
    other = first.replace("link_pose", T_base_target=moved_target())
    anew = Objective([HAND.replace(T_base_target=moved_target()), Rest(weight=0.1)])
    assert other.titles == anew.titles
    assert other.structure is first.structure
    assert other.structure == anew.structure
    assert other.costs[1] is first.costs[1]
    cost = other.costs[0]
    assert isinstance(cost, LinkPose)
    np.testing.assert_array_equal(cost.T_base_target, moved_target())
    np.testing.assert_array_equal(HAND.T_base_target, target())
    assert not cost.T_base_target.flags.writeable


@pytest.mark.parametrize(
    "values",
    [{"weight": (1.0,) * 6}, {"tolerance": None}, {"T_link_tool": np.eye(4)}, {"link": "panda_link8"}],
)
def test_an_objective_with_another_structure_knows_it(values: dict[str, Any]) -> None:
    first = Objective([HAND, Rest(weight=0.1)])
    other = first.replace("link_pose", **values)
    assert other.structure != first.structure
    assert other.structure == Objective([HAND.replace(**values), Rest(weight=0.1)]).structure


def test_titles_follow_a_replaced_label() -> None:
    objective = Objective([Rest(), Rest()]).replace("rest 2", label="home")
    assert objective.titles == ("rest", "home")
    assert objective.replace("home", label="rest").titles == ("rest", "rest 2")


@pytest.mark.parametrize(
    ("title", "values", "said"),
    [
        ("reach", {"weight": 1.0}, "no cost has the title 'reach'; there are link_pose, rest"),
        ("rest", {"weight": -1.0}, "weight is -1.0"),
        ("rest", {"weight": "much"}, "weight"),
        ("link_pose", {"T_base_target": np.full((4, 4), np.nan)}, "finite"),
        ("link_pose", {"tolerance": ()}, "tolerance"),
    ],
)
def test_replaced_values_are_checked(title: str, values: dict[str, Any], said: str) -> None:
    with pytest.raises(KinoptError, match=said):
        Objective([HAND, Rest()]).replace(title, **values)


def test_names_that_a_cost_lacks_are_refused_as_ever() -> None:
    with pytest.raises(TypeError, match="wieght"):
        HAND.replace(wieght=1.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class Derived(Rest):
    """A cost that works something out when it is made."""

    name: ClassVar[str] = "derived"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "doubled", 2.0 * float(np.max(self.weight)))


def test_what_a_cost_works_out_itself_is_worked_out_anew() -> None:
    assert Derived(weight=1.0).replace(weight=3.0).doubled == 6.0  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Slotted(Rest):
    """A cost whose own field is in no dictionary."""

    name: ClassVar[str] = "slotted"
    gain: float = 1.0


def test_costs_with_slots_are_replaced() -> None:
    other = Slotted(gain=2.0).replace(weight=3.0)
    assert (other.gain, other.weight) == (2.0, 3.0)


def test_a_problem_with_other_objectives_is_as_if_made_anew(panda: RobotModel) -> None:
    first = Objective([HAND, Rest(weight=0.1)])
    other = first.replace("link_pose", T_base_target=moved_target())
    made = objective_problem(panda, first, num_starts=3, random_seed=5)
    problem = with_objectives(panda, made, other)
    anew = objective_problem(panda, other, num_starts=3, random_seed=5)
    assert problem.objectives == (other,)
    assert made.objectives == (first,)
    for name in ("joints", "num_points", "dt", "num_starts", "more_starts", "random_seed", "scene"):
        assert getattr(problem, name) == getattr(anew, name)
    for name in ("free", "state", "seeds"):
        np.testing.assert_array_equal(getattr(problem, name), getattr(anew, name))


def test_costs_that_were_checked_are_not_checked_again(
    panda: RobotModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Objective([HAND, Rest(weight=0.1)])
    made = objective_problem(panda, first)
    checked: list[type] = []
    for kind in (LinkPose, Rest):
        usual = kind.check

        def check(self: Any, robot: RobotModel, usual: Any = usual) -> None:
            checked.append(type(self))
            usual(self, robot)

        monkeypatch.setattr(kind, "check", check)
    with_objectives(panda, made, first.replace("link_pose", T_base_target=moved_target()))
    assert checked == [LinkPose]
    objective_problem(panda, first)
    assert checked == [LinkPose, LinkPose, Rest]


def made_problem(panda: RobotModel) -> ObjectiveProblem:
    return objective_problem(panda, [Objective([HAND, Rest(weight=0.1)])] * 2)


@pytest.mark.parametrize(
    ("objectives", "said"),
    [
        ([Objective([HAND, Rest()])], "1 objectives are given; allowed are 2"),
        ([Objective([HAND, Rest()])] * 3, "3 objectives are given; allowed are 2"),
        (
            [Objective([HAND, Rest()]), Objective([HAND])],
            "objective 1 of a batch has another structure than those of",
        ),
        ([Objective([Rest()])] * 2, "objective 0 of a batch has another structure than those of"),
        (["rest", "rest"], "Objective"),
        ([Objective([HAND.replace(T_base_target=2.0 * np.eye(4)), Rest()])] * 2, "is no pose"),
    ],
)
def test_other_objectives_refuse(panda: RobotModel, objectives: list[Any], said: str) -> None:
    with pytest.raises(KinoptError, match=said):
        with_objectives(panda, made_problem(panda), objectives)
