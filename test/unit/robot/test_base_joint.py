"""A planar or floating joint below a new root link."""

import re

import numpy as np
import pytest

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import matrix_to_quaternion, pose, se3_exp, so3_exp
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.chains import default_group
from kinopt_ros.robot.base_joint import with_base
from kinopt_ros.robot.limits import DEFAULT_VELOCITY, apply_joint_limits
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

PANDA = load_robot("panda")


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_everything_hangs_on_the_base(kind):
    robot = with_base(PANDA, kind)
    count = JointType(kind).num_variables
    assert robot.root_link == "base_origin"
    assert (robot.joints[0].name, robot.joints[0].type) == ("base", JointType(kind))
    assert robot.joints[0].child_link == PANDA.root_link
    assert robot.variable_names[count:] == PANDA.variable_names
    for field in ("lower", "upper", "velocity", "acceleration", "jerk"):
        np.testing.assert_array_equal(getattr(robot.limits, field)[count:], getattr(PANDA.limits, field))
    assert np.isinf(robot.limits.upper[:2]).all()
    assert (robot.limits.velocity[:count] == DEFAULT_VELOCITY).all()
    at_rest = forward_kinematics(robot, robot.default_q, PANDA.link_names)
    np.testing.assert_array_equal(at_rest, forward_kinematics(PANDA, PANDA.default_q))
    T = pose(so3_exp([0, 0, 0.7]), [1.0, -2.0, 0.0])
    own = [1.0, -2.0, 0.7]
    if kind == "floating":
        T = se3_exp([0.3, -0.1, 0.2, 0.5, 0.4, -0.3])
        own = [*T[:3, 3], *matrix_to_quaternion(T[:3, :3])]
    q = random_configurations(PANDA, 1, 0)[0]
    moved = forward_kinematics(robot, [*own, *q], PANDA.link_names)
    np.testing.assert_allclose(moved, T @ forward_kinematics(PANDA, q), atol=1e-12)
    assert PANDA.root_link == "panda_link0"
    assert robot.inertials.keys() == PANDA.inertials.keys()


def test_it_is_the_same_as_a_planar_joint_of_a_urdf():
    text = find_robot("panda")[0].read_text()
    ends = '<parent link="base_origin"/><child link="panda_link0"/>'
    joint = f'<link name="base_origin"/><joint name="base" type="planar">{ends}<axis xyz="0 0 1"/></joint>'
    text = re.sub("(<robot[^>]*>)", rf"\1{joint}", text, count=1)
    theirs, ours = robot_from_urdf(text), with_base(robot_from_urdf(find_robot("panda")[0].read_text()))
    assert theirs.variable_names == ours.variable_names
    np.testing.assert_array_equal(theirs.limits.velocity, ours.limits.velocity)
    q = random_configurations(ours, 20, 0)
    np.testing.assert_allclose(
        forward_kinematics(ours, q), forward_kinematics(theirs, q, ours.link_names), atol=1e-12
    )


def test_groups_stay_and_stand_on_the_base():
    robot = with_base(PANDA, name="platform")
    assert {name: robot.groups[name] for name in PANDA.groups} == dict(PANDA.groups)
    assert robot.groups.keys() == {
        *PANDA.groups,
        "platform",
        *(f"{name}_on_platform" for name in PANDA.groups),
    }
    alone, on_it = robot.group("platform"), robot.group("panda_arm_on_platform")
    assert alone.joints == ("platform",)
    assert (alone.base_link, alone.tip_link) == ("platform_origin", "panda_link0")
    assert on_it.joints == ("platform", *PANDA.group("panda_arm").joints)
    assert (on_it.base_link, on_it.tip_link) == ("platform_origin", PANDA.group("panda_arm").tip_link)
    assert default_group(robot) == default_group(PANDA)


@pytest.mark.parametrize(
    "how",
    [
        {"group": "panda_arm_on_base"},
        {"tip_link": "panda_link8"},
        {"group": "panda_arm", "unlocked_groups": ["base"], "base_link": "base_origin"},
    ],
)
def test_requests_move_base_and_arm_at_once(how):
    robot = with_base(PANDA)
    problem = ik_problem(robot, np.eye(4), **how)
    assert problem.base_link == "base_origin"
    assert problem.joints[0] == "base"
    np.testing.assert_array_equal(problem.variables, range(10))
    held = ik_problem(robot, np.eye(4), group="panda_arm")
    assert held.base_link == "panda_link0"
    np.testing.assert_array_equal(held.variables, range(3, 10))


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_answers_keep_the_bounds(kind):
    pytest.importorskip("numba")
    from kinopt_ros.solvers.registry import create_solver

    last = {"theta": (-0.3, 0.3)} if kind == "planar" else {"z": (0.0, 0.0)}
    robot = with_base(PANDA, kind, bounds={"x": (0.2, 0.5), "y": (-np.inf, 0.0), **last})
    np.testing.assert_array_equal(robot.default_q[:3], [0.2, 0.0, 0.0])
    q = random_configurations(robot, 40, 3)
    assert ((q >= robot.limits.lower) & (q <= robot.limits.upper)).all()
    T = forward_kinematics(robot, q, ["panda_link8"])[:, 0]
    result = create_solver("cpu", robot).solve_ik(ik_problem(robot, T, group="panda_arm_on_base"))
    assert result.success.all()
    base = result.q[:, 0, :3]
    assert (base >= robot.limits.lower[:3]).all()
    assert (base <= robot.limits.upper[:3]).all()
    T[:, 0, 3] += 3.0  # out of reach within the bounds
    assert (
        not create_solver("cpu", robot).solve_ik(ik_problem(robot, T, tip_link="panda_link8")).success.any()
    )


def test_joint_limits_know_the_variables():
    robot = apply_joint_limits(
        with_base(PANDA, bounds={"x": (-1, 1)}), {"base/y": {"min_position": -2.0, "max_position": 3.0}}
    )
    np.testing.assert_array_equal(robot.limits.lower[:3], [-1, -2, -np.inf])
    np.testing.assert_array_equal(robot.limits.upper[:3], [1, 3, np.inf])


def test_the_virtual_joint_of_the_srdf_attaches_the_new_root():
    virtual = '<virtual_joint name="v" type="planar" parent_frame="odom" child_link="a"/>'
    robot = robot_from_urdf('<robot name="r"><link name="a"/></robot>', f'<robot name="r">{virtual}</robot>')
    assert with_base(robot).virtual_joint.child_link == "base_origin"
    with pytest.raises(InvalidRequestError, match="the virtual_joint v already"):
        with_base(robot, name="v")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kind": "fixed"}, "kind is 'fixed'; allowed are 'planar' and 'floating'"),
        ({"kind": []}, "allowed are 'planar' and 'floating'"),
        ({"name": ""}, "allowed is a text"),
        ({"name": 3}, "name is 3"),
        ({"name": "a" * 195}, "too long for a name; allowed are at most 200 characters"),
        ({"name": "a" * 190}, "_on_aa.* is too long for a name"),
        ({"name": "a" * 10**6}, "is too long for a name"),
        ({"name": "panda_joint1"}, "has panda_joint1 already"),
        ({"name": "panda_arm"}, "has panda_arm already"),
        ({"bounds": [1]}, "allowed is a mapping"),
        ({"bounds": {"z": (0, 1)}}, "'z'; a planar base can have bounds of x, y, theta"),
        ({"kind": "floating", "bounds": {"theta": (0, 1)}}, "a floating base can have bounds of x, y, z"),
        ({"bounds": {"x": (1, 0)}}, "the lower one first"),
        ({"bounds": {"x": (0, np.nan)}}, "bounds of x are"),
        ({"bounds": {"x": (np.inf, np.inf)}}, "bounds of x are"),
        ({"bounds": {"x": (0, 1e13)}}, "of at most 1e\\+12"),
        ({"bounds": {"x": (0, 1, 2)}}, "allowed are two numbers"),
        ({"bounds": {"x": "ab"}}, "allowed are two numbers"),
        ({"bounds": {"x": 1}}, "allowed are two numbers"),
    ],
)
def test_refused(arguments, words):
    with pytest.raises(InvalidRequestError, match=words):
        with_base(PANDA, **arguments)


def test_a_second_base_needs_another_name():
    robot = with_base(with_base(PANDA), "floating", name="ship")
    assert robot.joints[0].name == "ship"
    assert robot.joints[1].name == "base"
    with pytest.raises(InvalidRequestError, match="give another name"):
        with_base(robot)
