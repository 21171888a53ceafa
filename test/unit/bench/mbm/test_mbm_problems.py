"""MotionBenchMaker's folders: what is read of them, and what is refused by name."""

import numpy as np
import pytest
from support.mbm_folder import REQUEST, SCENE, write_folder

from kinopt_ros.bench.mbm.moveit_text import load_moveit_scene, load_request
from kinopt_ros.bench.mbm.problems import families_of, load_mbm_problem
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, KinoptError, UnknownJointError
from kinopt_ros.geometry.shapes import Box, Cylinder, Sphere
from kinopt_ros.problems.trajectory import JointGoal


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path)


def test_a_folder_has_families_of_problems(folder):
    (folder / "notes").mkdir()  # without problems it is no family
    [family] = families_of(folder)
    assert (family.name, family.robot.name, family.robot.model_name) == ("post_arm", "arm", "little_arm")
    assert [(one.name, one.request.name) for one in family.problems] == [
        ("post_arm 2", "request0002.yaml"),
        ("post_arm 4", "request0004.yaml"),
        ("post_arm 10", "request0010.yaml"),
    ]


def test_scenes_and_requests_become_problems(folder):
    [family] = families_of(folder)
    robot = family.robot.robot
    problem = load_mbm_problem(family.problems[0], robot, 0.5)
    assert problem.joints == ("turn", "lift")
    [goal] = problem.goals
    assert isinstance(goal, JointGoal)
    np.testing.assert_array_equal(goal.q, [1.2, 0.3])
    np.testing.assert_array_equal(problem.start, [-1.2, 0.3])
    assert problem.velocity_scaling == problem.acceleration_scaling == 0.5
    post, ball = problem.scene.objects["post"], problem.scene.objects["ball"]
    assert [placed.shape for placed in post.shapes] == [Box(0.05, 0.05, 0.4), Cylinder(0.02, 0.6)]
    assert [placed.shape for placed in ball.shapes] == [Sphere(0.03)]
    np.testing.assert_allclose(post.T_root_object[:3, 3], [0.4, 0.0, 0.2])
    np.testing.assert_allclose(post.shapes[1].T_frame_shape[:3, 3], [0.0, 0.0, 0.1])
    # A quarter turn about z, x last but one in xyzw; rounded ones are normalized.
    np.testing.assert_allclose(ball.shapes[0].T_frame_shape[:2, :2], [[0, -1], [1, 0]], atol=1e-12)


def test_values_a_little_outside_are_moved_to_the_limits(folder):
    [family] = families_of(folder)
    request = family.problems[0].request
    request.write_text(request.read_text().replace("position: 1.2}", "position: 2.0000005}"))
    problem = load_mbm_problem(family.problems[0], family.robot.robot, 1.0)
    assert problem.goals[0].q[0] == 2.0
    assert problem.notes
    request.write_text(request.read_text().replace("position: 2.0000005}", "position: 2.1}"))
    with pytest.raises(KinoptError, match="turn"):
        load_mbm_problem(family.problems[0], family.robot.robot, 1.0)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("type: sphere", "type: cone", "type is 'cone'; allowed are box, sphere, cylinder"),
        ("dimensions: [0.03]", "dimensions: [0.03, 1]", "allowed are 1 numbers"),
        ("id: ball", "id: post", "post"),
        ("id: ball", "id: ball\n      meshes: [{}]", "has meshes, which is not read"),
        ("id: ball", "id: ball\n      header: {frame_id: table}", "allowed is the robot's root link, base"),
        ("orientation: [0, 0, 0.7071, 0.7071]", "orientation: [0, 0, 0, 0]", "length 0; allowed is 1"),
        ("orientation: [0, 0, 0.7071, 0.7071]", "orientation: [0, 0, .nan, 1]", "length nan; allowed is 1"),
        ("world:", "link_padding: [{link_name: hand, padding: 0.1}]\nworld:", "the scene has link_padding"),
        ("world:", "robot_state: {attached_collision_objects: [{}]}\nworld:", "attached_collision_objects"),
        ("world:", "wrld: 1\nworld:", "has 'wrld'"),
        ("translation: [0, 0, 0]", "translation: [0, 0, 1]", "a fixed frame is not at the origin"),
        (
            "primitives: [{type: sphere, dimensions: [0.03]}]",
            "primitives: []",
            "0 primitives and 1 primitive_poses",
        ),
    ],
)
def test_scenes_that_would_be_others_are_refused(folder, old, new, said):
    [family] = families_of(folder)
    path = family.problems[0].scene
    assert old in SCENE
    path.write_text(SCENE.replace(old, new))
    with pytest.raises(InvalidRequestError, match=said) as error:
        load_moveit_scene(path, family.robot.robot)
    assert "scene0002.yaml" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("goal_constraints:", "path_constraints: {name: x}\ngoal_constraints:", "has path_constraints"),
        ("- joint_constraints:", "- {}\n  - joint_constraints:", "2 goal_constraints; allowed is one"),
        (
            "- joint_constraints:",
            "- position_constraints: [1]\n    joint_constraints:",
            "position_constraints",
        ),
        ("joint_name: lift", "joint_name: turn", "joint 'turn' is given twice"),
        ("position: [-1.2, 0.3, 0.01]", "position: [-1.2, 0.3]", "allowed are 3 numbers"),
        ("translation: [0, 0, 0]", "translation: [1, 0, 0]", "is not at the origin"),
        ("group_name: arm", "group_nam: arm", "allowed are"),
    ],
)
def test_requests_that_ask_for_something_else_are_refused(folder, old, new, said):
    [family] = families_of(folder)
    path = family.problems[0].request
    assert old in REQUEST
    path.write_text(REQUEST.replace(old, new))
    with pytest.raises(InvalidRequestError, match=said):
        load_request(path)


def test_joints_that_do_not_fit_are_refused(folder):
    [family] = families_of(folder)
    robot, one = family.robot.robot, family.problems[0]
    one.request.write_text(REQUEST.replace("name: [turn, lift, grip]", "name: [turn, lft, grip]"))
    with pytest.raises(UnknownJointError, match="lft"):
        load_mbm_problem(one, robot, 1.0)
    one.request.write_text(REQUEST.replace("joint_name: lift", "joint_name: grip"))
    with pytest.raises(InvalidRequestError, match="moves turn, lift"):
        load_mbm_problem(one, robot, 1.0)
    one.request.write_text(REQUEST.replace("position: 1.2}", "position: .inf}"))
    with pytest.raises((InvalidRequestError, InvalidStateError, KinoptError)):
        load_mbm_problem(one, robot, 1.0)


def test_folders_without_problems_are_refused(folder, tmp_path):
    with pytest.raises(InvalidRequestError, match="is no folder"):
        families_of(tmp_path / "nowhere")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InvalidRequestError, match="has no problems"):
        families_of(empty)
    (folder / "post_arm" / "request0004.yaml").unlink()
    with pytest.raises(InvalidRequestError, match=r"no request0004\.yaml beside it"):
        families_of(folder)
    (folder / "arm.srdf").write_text('<robot name="another"/>')
    (folder / "post_arm" / "scene0004.yaml").unlink()
    with pytest.raises(
        InvalidRequestError, match=r"for the robot 'little_arm'; those in the folder are another"
    ):
        families_of(folder)
