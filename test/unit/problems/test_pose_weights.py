"""Weights in place of tolerances: what they free, what goes with them, and what is refused by name."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, KinoptError
from kinopt_ros.planning.batching import structure_key
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.problems.pose_weights import LARGEST_RATIO, PoseWeights
from kinopt_ros.problems.record import load_record, make_record, recorded_problem, save_record
from kinopt_ros.problems.target_errors import weighted_cost, what_is_met
from kinopt_ros.problems.trajectory import PoseGoal
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.problems.validation import check_ik_problem

ROBOT = seven_revolute()


def problem(weights: Any = None, **options: Any) -> IkProblem:
    made = ik_problem(ROBOT, np.eye(4), tip_link="l7", nearest=weights or PoseWeights(), **options)
    check_ik_problem(made, ROBOT)
    return made


def test_numbers_of_any_kind_become_python_s() -> None:
    weights = PoseWeights(np.float32(2.0), [1, 0, np.int64(3)])
    assert weights == PoseWeights(2.0, (1.0, 0.0, 3.0))
    assert hash(weights) == hash(PoseWeights(2.0, (1.0, 0.0, 3.0)))
    assert weights.all == (2.0, 2.0, 2.0, 1.0, 0.0, 3.0)
    assert weights.free_position == (False, False, False)
    assert weights.free_orientation == (False, True, False)


@pytest.mark.parametrize(
    "given",
    [
        -1.0,
        math.nan,
        math.inf,
        1e-7,
        1e7,
        True,
        "1",
        None,
        (1.0, 2.0),
        (1.0, 2.0, -3.0),
        [[1.0, 2.0, 3.0]],
        [1, 2, "3"],
    ],
)
@pytest.mark.parametrize("kind", ["position", "orientation"])
def test_what_is_no_weight_is_refused_by_name(kind: str, given: Any) -> None:
    with pytest.raises(InvalidGoalError, match=f"weight of {kind}.*allowed is"):
        PoseWeights(**{kind: given})


def test_weights_that_ask_for_nothing_are_refused() -> None:
    with pytest.raises(InvalidGoalError, match="nothing is asked"):
        PoseWeights(0.0, (0.0, 0.0, 0.0))
    with pytest.raises(InvalidGoalError, match="every axis free"):
        problem(PoseWeights(1.0, 0.0), free_axes=["x", "y", "z"])


def test_an_axis_is_free_by_its_weight_or_its_tolerance() -> None:
    target = problem(PoseWeights((1.0, 0.0, 1.0), 0.1), free_axes=["rz"]).targets[0]
    assert target.free_position == (False, True, False)
    assert target.free_orientation == (False, False, True)
    assert target.plain is None
    assert problem().targets[0].plain == (1e-4, 1e-3)
    assert problem().nearest
    assert not ik_problem(ROBOT, np.eye(4), tip_link="l7").nearest


def test_tips_may_have_weights_of_their_own() -> None:
    T = np.stack([np.eye(4)] * 2)
    one, other = PoseWeights(), PoseWeights(2.0, 0.0)
    made = ik_problem(ROBOT, T, tip_link=("l5", "l7"), nearest=[one, other])
    assert [target.weights for target in made.targets] == [one, other]
    both = ik_problem(ROBOT, T, tip_link=("l5", "l7"), nearest=other)
    assert [target.weights for target in both.targets] == [other, other]
    for given in ([one], "ab", 3.0, [one, None]):
        with pytest.raises(InvalidGoalError, match="allowed is PoseWeights"):
            ik_problem(ROBOT, T, tip_link=("l5", "l7"), nearest=given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"num_solutions": 2}, "num_solutions is 2"),
        ({"turns": True}, "turns"),
        ({"prefer": "closest"}, "preference"),
        ({"prefer": "manipulability"}, "preference"),
    ],
)
def test_what_does_not_go_with_weights_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidRequestError, match=named):
        problem(**options)


def test_targets_with_and_without_weights_do_not_mix() -> None:
    target = problem().targets[0]
    for targets in ((target, replace(target, weights=None)), (replace(target, weights=None), target)):
        with pytest.raises(InvalidGoalError, match="'l7' has no weights"):
            check_ik_problem(replace(problem(), targets=targets), ROBOT)
    with pytest.raises(InvalidGoalError, match="allowed is PoseWeights"):
        check_ik_problem(replace(problem(), targets=(replace(target, weights=1.0),)), ROBOT)  # type: ignore[arg-type]


def test_weights_too_far_apart_are_refused() -> None:
    assert problem(PoseWeights(LARGEST_RATIO, 1.0)).nearest
    with pytest.raises(InvalidGoalError, match="ratio"):
        problem(PoseWeights(1.1 * LARGEST_RATIO, 1.0))


def test_motions_refuse_weights() -> None:
    goal = PoseGoal((PoseTarget("l7", np.eye(4)[None], weights=PoseWeights()),))
    with pytest.raises(KinoptError, match=r"goal.*has weights"):
        trajectory_problem(ROBOT, goal)


def test_requests_of_other_weights_are_not_solved_together() -> None:
    keys = {
        structure_key(problem(weights))
        for weights in (PoseWeights(), PoseWeights(2.0), PoseWeights(1.0, 0.0))
    }
    assert len(keys) == 3
    assert structure_key(problem()) == structure_key(problem())


def test_records_keep_weights(tmp_path: Path) -> None:
    weights = PoseWeights((1.0, 0.3, 0.0), 0.1)
    record = make_record(ROBOT, problem(weights), "cpu")
    save_record(record, tmp_path / "record.yaml")
    read = recorded_problem(load_record(tmp_path / "record.yaml"), ROBOT)
    assert read.targets[0].weights == weights
    plain = dict(record.problem)
    plain["targets"] = [{k: v for k, v in target.items() if k != "weights"} for target in plain["targets"]]
    assert not recorded_problem(
        replace(record, problem=plain), ROBOT
    ).nearest  # one of before there were weights
    plain["targets"] = [plain["targets"][0] | {"weights": {"position": -1.0, "orientation": 0.1}}]
    with pytest.raises(KinoptError, match="weight of position"):
        recorded_problem(replace(record, problem=plain), ROBOT)


def test_costs_and_what_is_met_by_hand() -> None:
    """A quarter turn about z, 3 cm along x and 4 cm along y of the target's frame."""
    T, tool = np.eye(4)[None], np.eye(4)[None].copy()
    tool[0, :2, :2] = [[0.0, -1.0], [1.0, 0.0]]
    tool[0, :2, 3] = 0.03, 0.04
    target = problem(PoseWeights(2.0, (1.0, 1.0, 0.5))).targets[0]
    assert weighted_cost(target, T, tool)[0] == pytest.approx(0.1**2 + (0.25 * np.pi) ** 2)
    met = what_is_met(target, T, tool)
    assert met.distance[0] == pytest.approx(0.05)
    assert met.angle[0] == pytest.approx(0.5 * np.pi)
    assert not met.position[0]
    assert not met.orientation[0]
    freed = problem(PoseWeights((0.0, 0.0, 1.0), (1.0, 1.0, 0.0))).targets[0]
    assert weighted_cost(freed, T, tool)[0] == pytest.approx(0.0, abs=1e-20)
    met = what_is_met(freed, T, tool)
    assert met.position[0]
    assert met.orientation[0]
