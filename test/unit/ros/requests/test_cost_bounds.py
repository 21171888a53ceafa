"""What a request's costs may be at most, before any of them is read."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_msgs.action import OptimizeTrajectory
from kinopt_msgs.msg import Cost
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.xml_text import MAX_NAME_LENGTH
from kinopt_ros.ros.messages.sizes import let_go
from kinopt_ros.ros.requests.costs import LONGEST, MOST_NUMBERS, MOST_TARGETS, bounded_costs, check_targets


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([Cost(cost="rest", label="x" * (MAX_NAME_LENGTH + 1))], "label of"),
        ([Cost(cost="x" * (MAX_NAME_LENGTH + 1))], "cost of"),
        ([Cost(cost="rest", parameters=" " * (LONGEST + 1))], "characters of parameters"),
        ([Cost(cost="rest", points=[0] * (MOST_NUMBERS + 1))], "numbers"),
        ([Cost(cost="rest")] * 5, "5 of a kind"),
        ([Cost(cost=f"c{k}") for k in range(17)], "17 costs"),
    ],
)
def test_what_is_too_much_is_refused(costs: list[Cost], said: str) -> None:
    """A label of 3 MB came back 300 times: a gigabyte, and nothing else was heard for 9 s meanwhile."""
    with pytest.raises(InvalidRequestError, match=said) as refused:
        bounded_costs(costs, "costs")
    assert len(str(refused.value)) < 500


def test_what_is_as_much_as_allowed_is_taken() -> None:
    costs = [Cost(cost="rest", label="x" * MAX_NAME_LENGTH)] * 4
    assert bounded_costs(costs, "costs") == tuple(costs)
    check_targets(costs, MOST_TARGETS)
    check_targets([], 10 * MOST_TARGETS)


def test_costs_outlive_the_request_that_they_came_with() -> None:
    """Goals are emptied as soon as they are read, and costs are read later: no goal with an objective was done."""
    goal = OptimizeTrajectory.Goal(
        objective=[
            Cost(cost="rest", weight=[0.5], tolerance=[0.1], points=[-1], label="home", parameters="{}")
        ]
    )
    [kept] = bounded_costs(goal.objective, "objective")
    let_go(goal)
    assert not goal.objective
    assert (kept.cost, kept.label, kept.parameters) == ("rest", "home", "{}")
    assert [list(kept.weight), list(kept.tolerance), list(kept.points)] == [[0.5], [0.1], [-1]]


def test_targets_with_costs_are_counted() -> None:
    with pytest.raises(InvalidRequestError, match=f"{MOST_TARGETS + 1} targets"):
        check_targets([Cost(cost="rest")], MOST_TARGETS + 1)
