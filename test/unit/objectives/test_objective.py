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
from kinopt_ros.objectives.problem import objective_problem
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
