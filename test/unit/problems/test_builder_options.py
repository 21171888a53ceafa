"""ik_problem: what moves, what counts as reached, which solution."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.conformance.robots import seven_revolute, with_mimic
from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    KinoptError,
    UnknownGroupError,
    UnknownJointError,
    UnknownNameError,
)
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse, pose, so3_exp
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.validation import check_ik_problem
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

ROBOT = seven_revolute()
T_WORLD_ROOT = pose(so3_exp(np.array([0.1, 0.2, -0.7])), np.array([1.0, -2.0, 0.5]))


def test_locked_joints_do_not_move() -> None:
    problem = ik_problem(ROBOT, np.eye(4), tip_link="l7", locked_joints=["j3", "j1"])
    assert problem.joints == ("j2", "j4", "j5", "j6", "j7")


def test_locking_a_mimic_joint_locks_its_driver() -> None:
    robot = with_mimic()
    follower = robot.mimic_joints[0]
    problem = ik_problem(robot, np.eye(4), tip_link=robot.link_names[-1], locked_joints=[follower.name])
    assert follower.mimics not in problem.joints


def test_locked_and_unlocked_groups() -> None:
    panda = load_robot("panda")
    both = ik_problem(panda, np.eye(4), group="panda_arm", unlocked_groups=["hand"])
    assert set(both.joints) == set(panda.group("panda_arm").joints) | set(panda.group("hand").joints)
    again = ik_problem(panda, np.eye(4), group="panda_arm", unlocked_groups=["hand"], locked_groups=["hand"])
    assert again.joints == panda.group("panda_arm").joints


def test_each_tip_has_its_own_tool() -> None:
    tools = np.array([T_WORLD_ROOT, np.eye(4)])
    problem = ik_problem(ROBOT, np.stack([np.eye(4)] * 2), tip_link=("l4", "l7"), T_link_tool=tools)
    for target, tool in zip(problem.targets, tools, strict=True):
        np.testing.assert_array_equal(target.T_link_tool, tool)  # type: ignore[arg-type]
    with pytest.raises(InvalidGoalError, match=r"\(2, 4, 4\); allowed is \(4, 4\)"):
        ik_problem(ROBOT, np.eye(4), tip_link="l7", T_link_tool=tools)


def test_everything_locked_is_an_error() -> None:
    with pytest.raises(InvalidRequestError, match="not locked"):
        ik_problem(ROBOT, np.eye(4), tip_link="l7", locked_joints=ROBOT.active_joints)


def test_several_tips_share_the_joints_of_all_chains() -> None:
    T = np.stack([np.eye(4)] * 2)
    problem = ik_problem(ROBOT, T, base_link="l1", tip_link=("l4", "l7"))
    assert [target.link for target in problem.targets] == ["l4", "l7"]
    assert problem.joints == ("j2", "j3", "j4", "j5", "j6", "j7")
    assert problem.batch_size == 1
    assert ik_problem(ROBOT, np.stack([T] * 5), tip_link=("l4", "l7")).batch_size == 5


def test_free_axes_are_infinite_tolerances() -> None:
    problem = ik_problem(ROBOT, np.eye(4), tip_link="l7", free_axes=["rz", "x"], position_tolerance=1e-3)
    (target,) = problem.targets
    assert target.position_tolerance == (math.inf, 1e-3, 1e-3)
    assert target.free_orientation == (False, False, True)
    assert target.plain is None
    assert ik_problem(ROBOT, np.eye(4), tip_link="l7").targets[0].plain == (1e-4, 1e-3)


def test_targets_in_a_world_that_the_base_stands_in() -> None:
    state = ROBOT.default_q + 0.1
    T_root_target = np.stack([np.eye(4), pose(so3_exp(np.array([0.3, 0.0, 0.0])), np.array([0.3, 0.0, 0.4]))])
    problem = ik_problem(
        ROBOT,
        T_WORLD_ROOT @ T_root_target,
        base_link="l2",
        tip_link="l7",
        state=state,
        T_world_root=T_WORLD_ROOT,
    )
    T_root_l2 = forward_kinematics(ROBOT, state, links=("l2",))[0]
    np.testing.assert_allclose(
        problem.targets[0].T_base_target, inverse(T_root_l2) @ T_root_target, atol=1e-12
    )


def test_a_world_needs_a_base_that_stands() -> None:
    with pytest.raises(InvalidRequestError, match="stands still"):
        ik_problem(ROBOT, np.eye(4), group="l7", base_link="l3", tip_link="l7", T_world_root=np.eye(4))


def test_closest_is_measured_from_the_first_seed_else_the_state() -> None:
    state, seed = ROBOT.default_q + 0.1, ROBOT.default_q - 0.1
    by_state = ik_problem(ROBOT, np.eye(4), tip_link="l7", state=state, prefer="closest").posture
    by_seed = ik_problem(ROBOT, np.eye(4), tip_link="l7", state=state, seeds=seed, prefer="closest").posture
    assert by_state is not None
    assert by_seed is not None
    np.testing.assert_array_equal(by_state.reference[0], state)
    np.testing.assert_array_equal(by_seed.reference[0], seed)


def test_mid_range_measures_every_joint_by_its_range() -> None:
    posture = ik_problem(ROBOT, np.eye(4), tip_link="l7", prefer="mid_range").posture
    assert posture is not None
    lower, upper = ROBOT.limits.lower, ROBOT.limits.upper
    np.testing.assert_allclose(posture.distance(upper[None]), 0.5 * np.sqrt(7))
    np.testing.assert_allclose(posture.distance(0.5 * (lower + upper)[None]), 0.0, atol=1e-12)


def test_a_state_per_request() -> None:
    states = np.stack([ROBOT.default_q, ROBOT.default_q + 0.1])
    problem = ik_problem(ROBOT, np.stack([np.eye(4)] * 2), tip_link="l7", state=states)
    np.testing.assert_array_equal(problem.state, states)


BAD: dict[str, tuple[dict[str, Any], type[KinoptError], str]] = {
    "unknown axis": ({"free_axes": ["yaw"]}, UnknownNameError, "yaw"),
    "axes as text": ({"free_axes": "rz"}, InvalidRequestError, "rz"),
    "all axes free": ({"free_axes": ["x", "y", "z", "rx", "ry", "rz"]}, InvalidGoalError, "free"),
    "two tolerances": ({"position_tolerance": (1e-3, 1e-3)}, InvalidGoalError, "three"),
    "a tolerance of zero": ({"orientation_tolerance": (0.0, 1.0, 1.0)}, InvalidGoalError, "orientation"),
    "a tolerance that is no number": ({"position_tolerance": math.nan}, InvalidGoalError, "nan"),
    "a tool that is no transform": ({"T_link_tool": 2.0 * np.eye(4)}, InvalidGoalError, "T_link_tool"),
    "a tool of the wrong shape": ({"T_link_tool": np.eye(3)}, InvalidGoalError, r"\(3, 3\)"),
    "a world that is no transform": ({"T_world_root": np.zeros((4, 4))}, InvalidGoalError, "T_world_root"),
    "unknown locked joint": ({"locked_joints": ["nobody"]}, UnknownJointError, "nobody"),
    "unknown locked group": ({"locked_groups": ["nobody"]}, UnknownGroupError, "nobody"),
    "unknown unlocked group": ({"unlocked_groups": ["nobody"]}, UnknownGroupError, "nobody"),
    "unknown preference": ({"prefer": "nicest"}, UnknownNameError, "mid_range"),
    "a weight with nothing to weigh": (
        {"prefer": "any", "manipulability_weight": 1.0},
        InvalidRequestError,
        "closest, rest, mid_range",
    ),
    "a negative weight": (
        {"prefer": "mid_range", "manipulability_weight": -1.0},
        InvalidRequestError,
        "is -1.0; allowed is 0",
    ),
    "a weight that is no number": (
        {"prefer": "mid_range", "manipulability_weight": math.nan},
        InvalidRequestError,
        "is nan",
    ),
    "manipulability of too few joints": (
        {"prefer": "manipulability", "locked_joints": ["j1", "j2"]},
        InvalidRequestError,
        "5 variables cannot move 6 axes",
    ),
    "rest without a posture": ({"prefer": "rest"}, InvalidRequestError, "rest"),
    "a posture without rest": ({"rest": ROBOT.default_q}, InvalidRequestError, "rest"),
    "a rest posture of the wrong size": ({"prefer": "rest", "rest": np.zeros(3)}, InvalidStateError, "7"),
    "a rest posture with NaN": (
        {"prefer": "rest", "rest": np.full(7, np.nan)},
        InvalidStateError,
        "not finite",
    ),
    "too many solutions": ({"num_solutions": 1001}, InvalidRequestError, "1000"),
    "a negative separation": ({"min_separation": -1.0}, InvalidRequestError, "min_separation"),
    "states for three requests": ({"state": np.zeros((3, 7))}, InvalidStateError, r"\(3, 7\)"),
    "one tip twice": ({"tip_link": ("l7", "l7")}, InvalidRequestError, "once"),
    "no tip": ({"tip_link": ()}, InvalidRequestError, "at least one"),
    "one pose for two tips": ({"tip_link": ("l6", "l7")}, InvalidGoalError, r"\(2, 4, 4\)"),
}


@pytest.mark.parametrize("case", sorted(BAD))
def test_bad_options_are_refused_by_name(case: str) -> None:
    options, error, words = BAD[case]
    with pytest.raises(error, match=words):
        check_ik_problem(ik_problem(ROBOT, np.eye(4), **({"tip_link": "l7"} | options)), ROBOT)


def test_a_target_is_frozen() -> None:
    target = PoseTarget("l7", np.eye(4)[None].copy(), T_link_tool=np.eye(4))
    with pytest.raises(ValueError, match="read-only"):
        target.T_link_tool[0, 3] = 1.0  # type: ignore[index]


def test_numbers_of_numpy_are_numbers() -> None:
    plain = ik_problem(ROBOT, np.eye(4), position_tolerance=0.25, num_solutions=3, random_seed=7)
    theirs = ik_problem(
        ROBOT,
        np.eye(4),
        position_tolerance=np.float32(0.25),
        orientation_tolerance=np.array(1e-3),
        num_solutions=np.int64(3),
        random_seed=np.uint64(7),
    )
    assert theirs.targets[0].position_tolerance == plain.targets[0].position_tolerance
    assert theirs.targets[0].orientation_tolerance == plain.targets[0].orientation_tolerance
    assert (type(theirs.num_solutions), type(theirs.random_seed)) == (int, int)
    assert (theirs.num_solutions, theirs.random_seed) == (3, 7)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"num_solutions": 1.5}, "num_solutions is 1.5; allowed is a whole number"),
        ({"random_seed": "7"}, "random_seed is '7'; allowed is a whole number"),
        ({"min_separation": "a"}, "min_separation is 'a'"),
        ({"deadline": "soon"}, "deadline is 'soon'"),
        ({"rest": [10**400] * ROBOT.nq, "prefer": "rest"}, "rest must be an array of real numbers"),
        ({"position_tolerance": None}, "position_tolerance must be"),
        ({"free_axes": None}, "free_axes is None; allowed is a list of names"),
        ({"free_axes": np.array([["x"]])}, "free_axes is array"),
        ({"turns": np.zeros(3)}, "turns is array"),
        ({"prefer": None}, "prefer is None; allowed is a name"),
        ({"prefer": np.zeros(3)}, "prefer is array"),
        ({"prefer": "rest"}, "rest, the posture itself, is not given"),
        ({"state": np.full(ROBOT.nq, 1e200)}, "not finite or beyond 1e[+]09 rad or m"),
        ({"state": np.full(ROBOT.nq, 1.1e9)}, "not finite or beyond 1e[+]09 rad or m"),
        ({"seeds": np.full(7, -1.1e9)}, "seeds contains a value that is not finite, or beyond 1e[+]09"),
        ({"prefer": "rest", "rest": np.full(ROBOT.nq, 1e200)}, "beyond 1e[+]100"),
        ({"T_link_tool": pose(np.eye(3), np.array([1e200, 0.0, 0.0]))}, "at most 1e[+]100"),
    ],
)
def test_what_is_no_usable_number_is_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(KinoptError, match=words):
        check_ik_problem(ik_problem(ROBOT, np.eye(4), **given), ROBOT)


def test_a_group_of_nothing_but_the_virtual_joint_cannot_be_unlocked() -> None:
    urdf, _ = find_robot("panda")
    robot = robot_from_urdf(
        urdf.read_text(),
        '<robot name="panda"><virtual_joint name="world" type="planar" parent_frame="map" child_link="panda_link0"/>'
        '<group name="arm"><chain base_link="panda_link0" tip_link="panda_link8"/></group>'
        '<group name="base"><joint name="world"/></group></robot>',
    )
    with pytest.raises(InvalidRequestError, match="'base' of unlocked_groups has no joint"):
        ik_problem(robot, np.eye(4), group="arm", unlocked_groups=["base"])


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": np.zeros((1, ROBOT.nq), dtype=np.float32)}, "state has numbers of type float32"),
        ({"seeds": np.zeros((1, 0, 7), dtype=np.int64)}, "seeds has numbers of type int64"),
        ({"variables": np.arange(7.0)}, "variables has numbers of type float64; allowed is int64"),
        (
            {"targets": (PoseTarget("l7", np.eye(4, dtype=np.complex128)[None]),)},
            "T_base_target has numbers of",
        ),
        (
            {"targets": (PoseTarget("l7", np.eye(4)[None], T_link_tool=np.eye(4, dtype=">f8")),)},
            "T_link_tool has numbers of type >f8",
        ),
        ({"num_solutions": None}, "num_solutions None"),
        ({"clearance": "x"}, "clearance 'x'"),
        ({"deadline": 10**400}, "allowed are numbers"),
    ],
)
def test_problems_made_by_hand_have_the_types_that_are_agreed(fields: dict[str, Any], said: str) -> None:
    """They failed in compiled code, some options only; imaginary parts were dropped."""
    made = replace(ik_problem(ROBOT, np.eye(4), tip_link="l7"), **fields)
    with pytest.raises(KinoptError, match=re.escape(said)):
        check_ik_problem(made, ROBOT)
