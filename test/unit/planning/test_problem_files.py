"""Trajectory problems as files."""

from pathlib import Path

import numpy as np
import pytest
from support.moving_base import base_urdf

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.problem_files import load_problem
from kinopt_ros.problems.constraints.pose_along import PoseAlong
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.trajectory import JointGoal, PoseGoal
from kinopt_ros.scene.scene import EMPTY_SCENE

EXAMPLES = Path(__file__).parents[3] / "examples" / "plan"


@pytest.mark.parametrize("name", ["wall", "table", "shelf", "cup", "two_arms"])
def test_the_examples_are_problems(name: str) -> None:
    asked = load_problem(EXAMPLES / f"{name}.yaml", deadline=5.0)
    assert asked.problem.deadline == 5.0
    assert asked.problem.scene is not None
    assert len(asked.problem.joints) == (14 if name == "two_arms" else 7)


def written(folder: Path, text: str) -> Path:
    file = folder / "problem.yaml"
    file.write_text(text)
    return file


def test_everything_that_can_be_said(tmp_path: Path) -> None:
    asked = load_problem(
        written(
            tmp_path,
            """
            group: panda_arm
            scene: empty
            start: ready
            goals:
              - state: panda_arm/home
              - joints: {panda_joint1: 0.5}
              - link: panda_hand
                pose: {xyz: [0.5, 0, 0.4], rpy: [3.14, 0, 0]}
                position_tolerance: 0.002
                free_axes: [rz]
            waypoints: [{joints: {panda_joint2: -0.5}}]
            along:
              - {upright: panda_hand, tilt: 0.2}
              - {straight: panda_hand, tolerance: 0.005}
            clearance: 0.01
            velocity_scaling: 0.5
            duration: 4
            num_points: 32
            random_seed: 5
            """,
        )
    )
    problem = asked.problem
    state, joints, pose = problem.goals
    assert isinstance(state, JointGoal)
    assert isinstance(joints, JointGoal)
    assert isinstance(pose, PoseGoal)
    np.testing.assert_array_equal(state.q, problem.start[:7])
    assert joints.q[0] == 0.5
    np.testing.assert_array_equal(joints.q[1:], problem.start[1:7])
    assert pose.targets[0].link == "panda_hand"
    assert pose.targets[0].free_orientation == (False, False, True)
    assert len(problem.waypoints) == 1
    assert [type(item) for item in problem.along] == [PoseAlong, StraightLine]
    assert problem.scene is EMPTY_SCENE
    assert (problem.clearance, problem.velocity_scaling, problem.duration) == (0.01, 0.5, 4.0)
    assert (problem.num_points, problem.random_seed) == (32, 5)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("goals: []", "0 goals"),
        ("start: ready", "no goals"),
        ("goals: [{state: nowhere}]", r"goals\[0\].*nowhere"),
        ("goals: [{state: hand/open}]", "says nothing about the joints that move"),
        ("goals: [{joints: {elbow: 1}}]", "elbow"),
        ("goals: [{joints: {panda_finger_joint1: 0.02}}]", "does not move"),
        ("goals: [{joints: {panda_joint1: far}}]", "allowed is a number"),
        ("goals: [{pose: {xyz: [1, 2]}}]", "3 numbers"),
        ("goals: [{state: ready, tolerance: 1}]", "tolerance"),
        ("{goals: [{state: ready}], scene: missing.yaml}", "missing.yaml"),
        ("{goals: [{state: ready}], speed: 1}", "speed"),
        ("{goals: [{state: ready}], along: [{upright: panda_hand}]}", "tilt"),
        ("{goals: [{state: ready}], along: [{upright: panda_hand, tilt: 9}]}", "tilt is 9"),
        ("{goals: [{state: ready}], along: [{straight: foot, tolerance: 0.1}]}", "foot"),
        ("{goals: [{state: ready}], robot: 3}", "robot is 3"),
        ("{goals: [{state: ready}], num_points: few}", "whole number"),
        ("goals: [", "YAML"),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(KinoptError, match=said):
        load_problem(written(tmp_path, text))


@pytest.mark.parametrize("what", ["goals", "waypoints", "along"])
def test_too_many_are_refused_before_any_is_built(tmp_path: Path, what: str) -> None:
    """A file of 2 MB took minutes: the first of them is no goal at all, so none was looked at."""
    several = ", ".join(["{nothing: of the kind}"] * 65)
    goals = "" if what == "goals" else "goals: [{state: ready}]\n"
    with pytest.raises(KinoptError, match=f"65 {what} are given; allowed are up to 64"):
        load_problem(written(tmp_path, f"{goals}{what}: [{several}]"))


def test_a_missing_file() -> None:
    with pytest.raises(KinoptError, match="cannot be read"):
        load_problem("nowhere.yaml")


@pytest.mark.parametrize(
    ("joints", "goal", "said"),
    [
        ("[drive/theta, elbow]", "{drive/theta: 2.0}", ""),
        (
            "[drive/theta, elbow]",
            "{drive/x: 2.0}",
            "'drive/x' does not move; the joints that do are drive/theta, elbow",
        ),
        ("[drive/theta, elbow]", "{drive: 2.0}", "'drive' does not move"),
        ("[drive, elbow]", "{drive: 2.0}", "no single value"),
        ("[drive/z, elbow]", "{elbow: 2.0}", "drive/z"),
        ("drive", "{elbow: 2.0}", "joints"),
        ("[]", "{drive/x: 2.0, elbow: 0.1}", ""),
    ],
)
def test_axes_of_a_base_are_held_unless_they_are_named(
    tmp_path: Path, joints: str, goal: str, said: str
) -> None:
    (tmp_path / "rover.urdf").write_text(base_urdf("planar"))
    file = written(
        tmp_path,
        f"{{robot: rover.urdf, joints: {joints}, start: {{drive/y: 0.5}}, goals: [{{joints: {goal}}}]}}",
    )
    if said:
        with pytest.raises(KinoptError, match=said):
            load_problem(file)
        return
    problem = load_problem(file).problem
    named = joints.strip("[]").split(", ") if joints != "[]" else ["drive/x", "drive/y", "drive/theta"]
    assert problem.joints[: len(named)] == tuple(named)
    assert problem.start[1] == 0.5
