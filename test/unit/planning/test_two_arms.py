"""Robots without an SRDF: what may touch is not guessed, and what is guessed is said."""

import time

import numpy as np
import pytest

from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import check_collisions

LINE = '<disable_collisions link1="left" link2="right" reason="Default"/>'


def ball(name: str, radius: float, y: float = 0.0) -> str:
    shape = f'<collision><origin xyz="0 {y} 0"/><geometry><sphere radius="{radius}"/></geometry></collision>'
    return f'<link name="{name}">{shape}</link>'


def joint(parent: str, child: str, y: float, upper: float = 1.0) -> str:
    return (
        f'<joint name="{child}_joint" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 {y} 0"/><axis xyz="0 0 1"/><limit lower="-1" upper="{upper}" velocity="1" effort="1"/></joint>'
    )


def robot_of(*parts: str, srdf: str | None = None) -> RobotModel:
    return robot_from_urdf(f'<robot name="r">{"".join(parts)}</robot>', srdf)


def two_arms(srdf: str | None = None) -> RobotModel:
    """Two arms: at mid-limits, the default configuration, and in a fifth of all states one is in the other."""
    parts = (ball("base", 0.05), ball("left", 0.1, 0.5), ball("right", 0.1, -0.5))
    return robot_of(*parts, joint("base", "left", -0.5), joint("base", "right", 0.5), srdf=srdf)


def lump() -> RobotModel:
    """Robot whose first and last link touch whatever the joints do."""
    parts = (ball("a", 0.2), ball("b", 0.2), ball("c", 0.2))
    return robot_of(*parts, joint("a", "b", 0.0), joint("b", "c", 0.0))


def test_a_motion_of_one_arm_through_the_other_is_never_a_success() -> None:
    robot = two_arms()
    prepare_collisions(robot)
    [contacts] = check_collisions(robot, EMPTY_SCENE, np.array([[-0.05, 0.0]])).contacts
    assert [{contact.a, contact.b} for contact in contacts] == [{"left", "right"}]
    problem = trajectory_problem(
        robot,
        [1.0],
        joints=["left_joint"],
        start=[-1.0, 0.0],
        scene=EMPTY_SCENE,
        deadline=time.monotonic() + 1.0,  # there is no way, however long it takes
    )
    result = plan_trajectory(create_solver("cpu", robot), problem)
    assert result.status in (Status.PLANNING_FAILED, Status.TIMED_OUT)
    assert result.trajectory is None


def test_a_robot_that_starts_in_collision_is_told_what_its_srdf_lacks() -> None:
    robot = two_arms()
    problem = trajectory_problem(robot, [1.0, 0.0], joints=robot.active_joints, scene=EMPTY_SCENE)
    result = plan_trajectory(create_solver("cpu", robot), problem)
    assert result.status is Status.START_STATE_IN_COLLISION
    assert "'left' and 'right'" in result.message
    assert LINE in result.message
    assert "kinopt doctor --collision" in result.message
    heeded = two_arms(f'<robot name="r">{LINE}</robot>')
    problem = trajectory_problem(heeded, [1.0, 0.0], joints=heeded.active_joints, scene=EMPTY_SCENE)
    assert plan_trajectory(create_solver("cpu", heeded), problem).success


def test_solutions_in_collision_come_with_the_same_remedy() -> None:
    robot = two_arms()
    T = chain_pose(chain_between(robot, "base", "left"), np.zeros((1, 1)))[0]
    result = create_solver("cpu", robot).solve_ik(ik_problem(robot, T, tip_link="left", scene=EMPTY_SCENE))
    assert result.status.tolist() == [Status.GOAL_IN_COLLISION]
    assert LINE in result.messages[0]


@pytest.mark.parametrize("scene", [EMPTY_SCENE, None])
def test_what_is_left_out_by_guess_is_said_with_every_success(scene: object) -> None:
    robot = lump()
    said = "collisions of a and c are not looked at" if scene else ""
    problem = trajectory_problem(robot, [0.5, 0.5], joints=robot.active_joints, scene=scene)
    moved = plan_trajectory(create_solver("cpu", robot), problem)
    T = chain_pose(chain_between(robot, "a", "c"), np.array([[0.3, 0.2]]))[0]
    solved = create_solver("cpu", robot).solve_ik(ik_problem(robot, T, tip_link="c", scene=scene))
    for notes, success in ((moved.notes, moved.success), (solved.notes, bool(solved.success.all()))):
        assert success
        assert [note.startswith(said) for note in notes] == ([True] if scene else [])


def test_an_srdf_that_forgets_neighbours_is_told_so() -> None:
    """Links with several joints between them are checked, also where only links without shapes are between."""
    line = '<disable_collisions link1="body" link2="arm" reason="Default"/>'

    def shoulder(*lines: str) -> RobotModel:
        disabled = "".join(('<disable_collisions link1="body" link2="hand" reason="Never"/>', *lines))
        return robot_of(
            *(ball("body", 0.2), '<link name="hub"/>', ball("arm", 0.1, 0.25), ball("hand", 0.05, 0.5)),
            *(joint("body", "hub", 0.0), joint("hub", "arm", 0.0), joint("arm", "hand", 0.5)),
            srdf=f'<robot name="r">{disabled}</robot>',
        )

    for robot, said in ((shoulder(), f"the SRDF lacks {line}"), (shoulder(line), "")):
        problem = trajectory_problem(robot, [0.5, 0.5], joints=["hub_joint", "arm_joint"], scene=EMPTY_SCENE)
        result = plan_trajectory(create_solver("cpu", robot), problem)
        assert result.success is not bool(said), result.message
        assert said in result.message
