"""Arguments of public functions that are something else than they should be."""

from typing import Any

import numpy as np
import pytest

from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, KinoptError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.verification.collision import check_collisions, clearance_of

PANDA = load_robot("panda")
HUGE = 10**400
"""A number that no float holds."""


@pytest.mark.parametrize(
    "name", ["deadline", "min_separation", "clearance", "manipulability_weight", "limit_tolerance"]
)
@pytest.mark.parametrize("given", [HUGE, "x", [], True])
def test_numbers(name: str, given: Any) -> None:
    with pytest.raises(InvalidRequestError, match=f"{name} is .*; allowed is a number"):
        ik_problem(PANDA, np.eye(4), scene=EMPTY_SCENE, **{name: given})


def test_a_tolerance_beyond_all_floats() -> None:
    problem = ik_problem(PANDA, np.eye(4), orientation_tolerance=HUGE)
    with pytest.raises(InvalidGoalError, match="orientation_tolerance"):
        create_solver("cpu", PANDA).solve_ik(problem)


@pytest.mark.parametrize("name", ["tip_link", "unlocked_groups", "locked_joints", "locked_groups"])
@pytest.mark.parametrize("given", [5, object(), [5], b"x", np.array(3), np.array(["panda_hand"])])
def test_names(name: str, given: Any) -> None:
    with pytest.raises(InvalidRequestError, match=f"{name} (is|has) .*; allowed (is a list of|are) names"):
        ik_problem(PANDA, np.eye(4), **{name: given})


@pytest.mark.parametrize("name", ["unlocked_groups", "locked_joints", "locked_groups"])
def test_one_name_is_no_list_of_letters(name: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"{name} is 'hand'; allowed is a list of names"):
        ik_problem(PANDA, np.eye(4), **{name: "hand"})


@pytest.mark.parametrize("given", [5, "x", [], {}])
def test_scenes(given: Any) -> None:
    arm = PANDA.default_q[:7]
    for ask in (
        lambda: ik_problem(PANDA, np.eye(4), scene=given),
        lambda: trajectory_problem(PANDA, arm, group="panda_arm", scene=given),
        lambda: check_collisions(PANDA, given, PANDA.default_q[None]),
        lambda: clearance_of(PANDA, given, PANDA.default_q),
    ):
        with pytest.raises(InvalidRequestError, match=r"scene is .*; allowed is a Scene"):
            ask()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"scene": None}, InvalidRequestError),
        ({"clearance": []}, InvalidRequestError),
        ({"clearance": HUGE}, InvalidRequestError),
        ({"q": 5}, InvalidStateError),
        ({"q": "x"}, InvalidStateError),
        ({"q": [[HUGE] * 8]}, InvalidStateError),
        ({"q": np.full((1, 8), np.nan)}, InvalidStateError),
    ],
)
def test_states_to_check(change: dict[str, Any], error: type[KinoptError]) -> None:
    given: dict[str, Any] = {"scene": EMPTY_SCENE, "q": PANDA.default_q[None], **change}
    with pytest.raises(error, match=next(iter(change))):
        check_collisions(PANDA, **given)


@pytest.mark.parametrize("prefer", ["closest", "mid_range", "manipulability"])
@pytest.mark.parametrize("num_solutions", [1, 3])
def test_no_target_has_no_answer_whatever_is_preferred(prefer: str, num_solutions: int) -> None:
    asked = ik_problem(PANDA, np.zeros((0, 4, 4)), prefer=prefer, num_solutions=num_solutions)
    assert create_solver("cpu", PANDA).solve_ik(asked).q.shape == (0, num_solutions, 7)


def test_a_list_of_numbers_is_a_configuration() -> None:
    q = PANDA.default_q
    asked = clearance_of(PANDA, EMPTY_SCENE, q.tolist())  # type: ignore[arg-type]
    assert asked.distance == clearance_of(PANDA, EMPTY_SCENE, q).distance


def test_one_link_is_no_list_of_letters() -> None:
    with pytest.raises(InvalidRequestError, match="links is 'panda_hand'; allowed is a list of names"):
        forward_kinematics(PANDA, PANDA.default_q, "panda_hand")
