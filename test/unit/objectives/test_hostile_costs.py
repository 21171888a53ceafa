"""Costs whose code does what it must not, and text that parsers stumble over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kinopt_ros.costs.base import Cost
from kinopt_ros.errors import InvalidRequestError, KinoptError
from kinopt_ros.objectives.cost_error import CostError
from kinopt_ros.objectives.evaluation import evaluate
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.objectives.reading import objective_from_text
from kinopt_ros.robot.sources import load_robot

ROBOT = load_robot("panda")


@dataclass(frozen=True, eq=False, kw_only=True)
class Writes(Cost):
    """Changes what it is shown."""

    name = "writes"
    formula = "r = 0"
    units = "rad"
    what: str = "q"

    def check(self, robot: Any) -> None:
        if self.what == "exits":
            raise SystemExit(3)

    def residual(self, point: Any) -> Any:
        shown = {"q": point.q, "pose": point.pose("panda_hand"), "jacobian": point.jacobian("panda_hand")}
        array = shown[self.what]
        array -= 0.3
        return array.ravel()[:1]


@pytest.mark.parametrize("what", ["q", "pose", "jacobian"])
def test_no_cost_changes_what_is_judged(what: str) -> None:
    q = ROBOT.default_q[None].copy()
    with pytest.raises(CostError, match=r"'writes' .*read-only"):
        evaluate(ROBOT, Objective([Writes(what=what)]), q, 0.1)
    np.testing.assert_array_equal(q[0], ROBOT.default_q)


def test_a_check_that_exits_is_the_costs_own_error() -> None:
    with pytest.raises(CostError, match=r"'writes' .*SystemExit"):
        objective_problem(ROBOT, Objective([Writes(what="exits")]))


@pytest.mark.parametrize(
    "text",
    [
        '[{cost: rest, weight: !!int ""}]',
        '[{cost: rest, weight: !!float ""}]',
        "[{cost: rest, weight: !!bool foo}]",
        "[{cost: rest, weight: !!timestamp foo}]",
        "[{cost: rest, weight: 1" + ":00" * 300 + ".0}]",
        "[{cost: rest, q: {panda_joint1: 1" + "0" * 400 + "}}]",
        "[{cost: rest, weight: !!python/name:os.system x}]",
    ],
)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(KinoptError):
        objective_from_text(ROBOT, text)


def test_names_that_are_no_texts_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="locked"):
        objective_problem(ROBOT, objective_from_text(ROBOT, "[{cost: rest}]"), locked=[{"a": 1}])  # type: ignore[list-item]


def test_what_has_to_hold_needs_a_component_that_counts() -> None:
    with pytest.raises(InvalidRequestError, match="nothing would have to hold"):
        objective_problem(ROBOT, objective_from_text(ROBOT, "[{cost: rest, weight: 0.0, tolerance: 0.1}]"))


def test_weights_are_bounded() -> None:
    with pytest.raises(InvalidRequestError, match="weight"):
        objective_from_text(ROBOT, "[{cost: rest, weight: 1.0e+9}]")
