"""ik_problem fills in what follows from the robot."""

import numpy as np
import pytest

from kinopt_ros.conformance.robots import seven_revolute, with_mimic
from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    UnknownGroupError,
    UnknownLinkError,
)
from kinopt_ros.problems.builder import ik_problem, resolve_chain
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf


def test_one_pose_becomes_a_batch_of_one() -> None:
    problem = ik_problem(seven_revolute(), np.eye(4), tip_link="l7")
    assert problem.batch_size == 1
    assert problem.base_link == "l0"
    assert problem.joints == tuple(f"j{i + 1}" for i in range(7))
    assert problem.seeds.shape == (1, 0, 7)


def test_chain_without_group_moves_the_joints_between() -> None:
    problem = ik_problem(seven_revolute(), np.eye(4), base_link="l2", tip_link="l5")
    assert problem.joints == ("j3", "j4", "j5")
    np.testing.assert_array_equal(problem.variables, [2, 3, 4])


def test_mimic_joints_are_not_solved_for_but_their_driver_is() -> None:
    problem = ik_problem(with_mimic(), np.eye(4), base_link="l3", tip_link="l4")
    assert problem.joints == ("j3",)


def test_group_gives_base_tip_and_joints() -> None:
    base, tip, joints = resolve_chain(load_robot("panda"), "panda_arm", None, None)
    assert (base, tip) == ("panda_link0", "panda_link8")
    assert joints == tuple(f"panda_joint{i + 1}" for i in range(7))


def test_group_can_be_used_with_another_tip() -> None:
    _, tip, joints = resolve_chain(load_robot("panda"), "panda_arm", None, "panda_hand_tcp")
    assert tip == "panda_hand_tcp"
    assert len(joints) == 7


def test_group_that_does_not_move_the_tip_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="moves"):
        resolve_chain(load_robot("panda"), "hand", None, "panda_link4")


@pytest.mark.parametrize(
    ("shape", "expanded"), [((7,), (2, 1, 7)), ((3, 7), (2, 3, 7)), ((2, 3, 7), (2, 3, 7))]
)
def test_seeds_are_expanded(shape: tuple[int, ...], expanded: tuple[int, ...]) -> None:
    T = np.stack([np.eye(4)] * 2)
    seeds = np.arange(np.prod(shape), dtype=float).reshape(shape)
    problem = ik_problem(seven_revolute(), T, tip_link="l7", seeds=seeds)
    assert problem.seeds.shape == expanded
    np.testing.assert_array_equal(problem.seeds[1], np.broadcast_to(seeds, expanded)[1])


@pytest.mark.parametrize("shape", [(6,), (3, 6), (3, 1, 7), (1, 1, 1, 7)])
def test_seeds_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidStateError, match="seeds has shape"):
        ik_problem(seven_revolute(), np.stack([np.eye(4)] * 2), tip_link="l7", seeds=np.zeros(shape))


def test_unknown_names_come_with_the_known_ones() -> None:
    robot = load_robot("panda")
    with pytest.raises(UnknownLinkError, match="panda_link8"):
        ik_problem(robot, np.eye(4), tip_link="panda_link99")
    with pytest.raises(UnknownGroupError, match="panda_arm"):
        ik_problem(robot, np.eye(4), group="panda_amr")


@pytest.mark.parametrize("shape", [(3, 3), (4,), (2, 3, 4), (1, 1, 4, 4)])
def test_pose_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidGoalError, match="allowed is"):
        ik_problem(seven_revolute(), np.zeros(shape), tip_link="l7")


def test_the_problem_is_frozen_and_does_not_share_the_callers_arrays() -> None:
    T = np.eye(4)[None]
    problem = ik_problem(seven_revolute(), T, tip_link="l7")
    T[0, 0, 3] = 5.0
    assert problem.targets[0].T_base_target[0, 0, 3] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        problem.targets[0].T_base_target[0, 0, 3] = 1.0


@pytest.mark.parametrize("T", [[["a"] * 4] * 4, [[1.0, 2.0], [3.0]], np.eye(4) + 1j, None])
def test_what_is_no_array_of_numbers_is_refused(T: object) -> None:
    with pytest.raises(InvalidGoalError, match="real numbers"):
        ik_problem(seven_revolute(), T, tip_link="l7")  # type: ignore[arg-type]
    with pytest.raises(InvalidStateError, match="real numbers"):
        ik_problem(seven_revolute(), np.eye(4), tip_link="l7", state="abc")


def test_the_default_group_is_one_that_can_be_used() -> None:
    urdf = (
        "<robot name='r'><link name='a'/><link name='b'/><link name='tool'/>"
        "<joint name='j' type='continuous'><parent link='a'/><child link='b'/><axis xyz='0 0 1'/></joint>"
        "<joint name='f' type='fixed'><parent link='b'/><child link='tool'/></joint></robot>"
    )
    srdf = (
        "<robot name='r'><group name='gripper'><chain base_link='b' tip_link='tool'/></group>"
        "<group name='arm'><chain base_link='a' tip_link='tool'/></group></robot>"
    )
    assert ik_problem(robot_from_urdf(urdf, srdf), np.eye(4)).joints == ("j",)
