"""Inverse kinematics with a floating joint, or a planar base, to solve for."""

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.errors import InvalidRequestError, UnknownGroupError
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose, rotation_angle, so3_exp
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.changes import add
from kinopt_ros.scene.scene import EMPTY_SCENE, SceneObject
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.status import Status

TIP = "panda_leftfinger"
TOOL = pose(so3_exp(np.array([0.2, 0.4, -0.3])), np.array([0.0, 0.1, 0.2]))
COUNT = 30


def made(kind):
    return robot_from_urdf(
        find_robot("panda")[0].read_text(),
        f'<robot name="panda"><virtual_joint name="base" type="{kind}" parent_frame="odom" child_link="panda_link0"/>'
        '<group name="arm"><chain base_link="panda_link0" tip_link="panda_link8"/></group>'
        '<group name="free"><joint name="base"/></group></robot>',
        virtual_joint=True,
    )


@pytest.fixture(scope="module")
def robot():
    return made("floating")


@pytest.fixture(scope="module")
def solver(robot):
    solver = CpuSolver()
    solver.configure(robot)
    return solver


@pytest.fixture(scope="module")
def states(robot):
    """States of the whole robot, with other arms and grippers for every request."""
    return random_configurations(robot, COUNT, 1)


@pytest.fixture(scope="module")
def T(robot):
    far = random_configurations(robot, COUNT, 2)
    far[:, :3] *= 10.0
    return forward_kinematics(robot, far, links=(TIP,))[:, 0] @ TOOL


def placed(robot, problem, result):
    """Poses of the tool in the base link's frame, by forward kinematics of the whole robot."""
    q = problem.state.copy()
    q[:, problem.variables] = result.q[:, 0]
    base, tip = (forward_kinematics(robot, q, links=(link,))[:, 0] for link in (problem.base_link, TIP))
    return np.linalg.inv(base) @ tip @ TOOL


def test_a_free_flyer_is_exact_in_no_steps_in_the_state_of_the_request(robot, solver, states, T):
    problem = ik_problem(robot, T, group="free", tip_link=TIP, T_link_tool=TOOL, state=states)
    assert problem.joints == ("base",)
    result = solver.solve_ik(problem)
    assert result.success.all()
    assert (result.iterations == 0).all()
    assert np.abs(placed(robot, problem, result) - T).max() <= 1e-12
    assert (result.position_error <= 1e-12).all()
    np.testing.assert_allclose(np.linalg.norm(result.q[:, 0, 3:7], axis=1), 1.0, atol=1e-12)


def test_the_way_may_lead_upwards_through_the_joint(robot, solver, states, T):
    # Where the world is, seen from the gripper.
    problem = ik_problem(robot, np.linalg.inv(T), group="free", base_link=TIP, tip_link="odom", state=states)
    result = solver.solve_ik(problem)
    assert result.success.all()
    q = states.copy()
    q[:, problem.variables] = result.q[:, 0]
    seen = np.linalg.inv(forward_kinematics(robot, q, links=(TIP,))[:, 0])
    np.testing.assert_allclose(seen, np.linalg.inv(T), atol=1e-12)


def test_the_base_locked_fails_and_an_unknown_group_is_refused(robot, solver, states, T):
    with pytest.raises(InvalidRequestError, match="not locked"):
        ik_problem(robot, T, group="free", tip_link=TIP, locked_joints=["base"])
    locked = ik_problem(
        robot, T, base_link="odom", tip_link=TIP, T_link_tool=TOOL, locked_joints=["base"], state=states
    )
    assert not solver.solve_ik(locked).success.any()  # the arm alone does not reach so far
    with pytest.raises(UnknownGroupError, match="flyer"):
        ik_problem(robot, T, group="flyer")


def test_the_rest_of_the_robot_stays_as_it_is(robot, solver, states, T):
    problem = ik_problem(robot, T, base_link="odom", tip_link=TIP, T_link_tool=TOOL, state=states)
    assert len(problem.joints) == 9
    result = solver.solve_ik(problem)
    assert result.success.all()
    assert np.abs(placed(robot, problem, result) - T).max() <= 1e-12
    np.testing.assert_array_equal(result.q[:, 0, 7:], states[:, 7:])


def test_several_solutions_have_other_arms(robot, solver, states, T):
    seeds = random_configurations(robot, 2, 5)[:, 7:]
    problem = ik_problem(robot, T[:3], base_link="odom", tip_link=TIP, T_link_tool=TOOL, num_solutions=6)
    seeded = np.zeros((2, len(problem.variables)))
    seeded[:, 3], seeded[:, 7:] = 1.0, seeds
    problem = ik_problem(
        robot, T[:3], base_link="odom", tip_link=TIP, T_link_tool=TOOL, num_solutions=6, seeds=seeded
    )
    result = solver.solve_ik(problem)
    assert (result.num_found == 6).all()
    assert (result.position_error <= 1e-12).all()
    for b in range(3):
        for seed in seeds:
            assert (np.abs(result.q[b, :, 7:] - seed).max(axis=1) == 0.0).any()
    alone = ik_problem(robot, T[:3], group="free", tip_link=TIP, num_solutions=6)
    assert (solver.solve_ik(alone).num_found == 1).all()


def test_limits_of_the_base_hold(robot, T):
    limits = {"has_position_limits": True, "min_position": -1.0, "max_position": 1.0}
    narrow = apply_joint_limits(robot, {"base/trans_x": limits})
    own = CpuSolver()
    own.configure(narrow)
    problem = ik_problem(narrow, T, group="free", tip_link=TIP, T_link_tool=TOOL)
    result = own.solve_ik(problem)
    free = CpuSolver()
    free.configure(robot)
    x = free.solve_ik(ik_problem(robot, T, group="free", tip_link=TIP, T_link_tool=TOOL)).q[:, 0, 0]
    np.testing.assert_array_equal(result.success, np.abs(x) <= 1.0)
    assert 0 < result.success.sum() < COUNT
    failed = int(np.flatnonzero(~result.success)[0])
    assert result.status[failed] == Status.NO_IK_SOLUTION
    assert "base/trans_x at the" in result.messages[failed]


BOXES = {
    "a box": {"base/trans_x": (0.2, 0.5), "base/trans_y": (-0.4, 0.0), "base/trans_z": (0.0, 0.1)},
    "a plane": {"base/trans_z": (0.05, 0.05)},
    "a point": {f"base/trans_{axis}": (0.1, 0.1) for axis in "xyz"},
    "far ends": {"base/trans_x": (-50.0, 0.0)},
    "one end": {"base/trans_x": (-math.inf, 0.0)},
}


@pytest.mark.parametrize("upwards", [False, True])
@pytest.mark.parametrize("box", list(BOXES))
def test_other_joints_bring_the_base_inside_its_limits(robot, box, upwards):
    lower, upper = robot.limits.lower.copy(), robot.limits.upper.copy()
    for name, (low, high) in BOXES[box].items():
        i = robot.variable_index[name]
        lower[i], upper[i] = low, high
    narrow = replace(robot, limits=replace(robot.limits, lower=lower, upper=upper))
    reached = random_configurations(narrow, COUNT, 4)
    T = forward_kinematics(narrow, reached, links=(TIP,))[:, 0] @ TOOL
    state = narrow.default_q.copy()
    state[:3] = np.clip(0.0, lower[:3], upper[:3])
    own = CpuSolver()
    own.configure(narrow)
    ends = {"base_link": "odom", "tip_link": TIP, "T_link_tool": TOOL}
    if upwards:  # where the world is, seen from the finger
        T, ends = np.linalg.inv(T @ np.linalg.inv(TOOL)), {"base_link": TIP, "tip_link": "odom"}
    problem = ik_problem(narrow, T, state=state, num_solutions=2, **ends)
    result = own.solve_ik(problem)
    assert result.success.all()
    base = result.q[..., :3][np.isfinite(result.q[..., 0])]
    assert ((base >= lower[:3]) & (base <= upper[:3])).all()
    assert np.nanmax(result.position_error) < 2e-6
    again = ik_problem(narrow, T[:2], state=state, num_solutions=2, **ends)
    np.testing.assert_array_equal(own.solve_ik(again).q, result.q[:2])  # nor does the batch matter


def test_a_base_that_cannot_get_there_says_so(robot):
    narrow = apply_joint_limits(
        robot, {"base/trans_x": {"has_position_limits": True, "min_position": -1.0, "max_position": 1.0}}
    )
    T = pose(np.eye(3), np.array([[4.0, 0.0, 0.5]]))
    own = CpuSolver()
    own.configure(narrow)
    result = own.solve_ik(ik_problem(narrow, T, base_link="odom", tip_link=TIP))
    assert result.status[0] == Status.NO_IK_SOLUTION
    assert "base/trans_x" in result.messages[0]
    # Two metres are missing beyond what the arm reaches, which it does.
    assert 1.5 < result.attempt_position_error[0] < 2.6


def there(robot, problem, result, links):
    """Poses of links by forward kinematics of the whole robot."""
    q = problem.state.copy()
    q[:, problem.variables] = result.q[:, 0]
    return forward_kinematics(robot, q, links=links)


def check_reached(robot, problem, result):
    """Every target, by poses of the robot itself; quaternions have length 1."""
    assert result.success.all(), [message for message in result.messages if message]
    found = there(robot, problem, result, tuple(target.link for target in problem.targets))
    for k, target in enumerate(problem.targets):
        tool = np.eye(4) if target.T_link_tool is None else target.T_link_tool
        off = np.linalg.inv(target.T_base_target) @ found[:, k] @ tool
        assert np.linalg.norm(off[:, :3, 3], axis=1).max() <= 1e-4 + 1e-12
        assert rotation_angle(off[:, :3, :3]).max() <= 1e-3 + 1e-9
    q = problem.state.copy()
    q[:, problem.variables] = result.q[:, 0]
    np.testing.assert_allclose(np.linalg.norm(q[:, 3:7], axis=1), 1.0, atol=1e-9)


def test_several_links_are_placed_with_the_base(robot, solver, states):
    """What there is no closed form for: a hand and an elbow, of which one pose would do for the base alone."""
    far = random_configurations(robot, COUNT, 2)
    far[:, :3] *= 10.0
    links = ("panda_link8", "panda_link4")
    T = forward_kinematics(robot, far, links=links)
    problem = ik_problem(robot, T, base_link="odom", tip_link=links, state=states)
    check_reached(robot, problem, solver.solve_ik(problem))
    several = ik_problem(robot, T[:5], base_link="odom", tip_link=links, num_solutions=4)
    found = solver.solve_ik(several)
    assert found.success.all()
    assert (found.num_found >= 2).all()


def test_a_posture_of_further_joints_is_kept_near_to(robot, solver, states, T):
    anyhow = ik_problem(robot, T, base_link="odom", tip_link=TIP, T_link_tool=TOOL, state=states)
    middle = ik_problem(
        robot, T, base_link="odom", tip_link=TIP, T_link_tool=TOOL, state=states, prefer="mid_range"
    )
    found = solver.solve_ik(middle)
    check_reached(robot, middle, found)
    posture = middle.posture
    assert posture is not None
    assert (posture.distance(found.q[:, :1])[:, 0] <= posture.distance(solver.solve_ik(anyhow).q)[:, 0]).all()
    assert (
        found.distance[:, 0].max() <= 1.01 * found.distance[:, 0].min()
    )  # the arm is free: only the base has to go
    near = ik_problem(
        robot, T, base_link="odom", tip_link=TIP, T_link_tool=TOOL, state=states, prefer="closest"
    )
    close = solver.solve_ik(near)
    check_reached(robot, near, close)
    posture = near.posture
    assert posture is not None
    assert (
        posture.distance(close.q[:, :1])[:, 0] <= posture.distance(solver.solve_ik(anyhow).q)[:, 0] + 1e-9
    ).all()


ORIENTATION = tuple(f"base/rot_{part}" for part in "wxyz")


@pytest.mark.parametrize(
    "locked",
    [("base/trans_z",), ("base/trans_x", "base/trans_y"), ORIENTATION, ("base/trans_z", *ORIENTATION)],
)
def test_single_axes_of_a_floating_base_are_locked_to_the_last_bit(robot, solver, states, locked):
    index = [robot.variable_index[name] for name in locked]
    reached = random_configurations(robot, COUNT, 2)
    reached[:, index] = states[:, index]
    T = forward_kinematics(robot, reached, links=("panda_link8",))[:, 0]
    problem = ik_problem(
        robot, T, base_link="odom", tip_link="panda_link8", state=states, locked_joints=locked
    )
    assert not set(problem.variables) & set(index)
    result = solver.solve_ik(problem)
    check_reached(robot, problem, result)
    assert result.joint_names == tuple(robot.variable_names[i] for i in problem.variables)


def test_part_of_a_quaternion_is_not_locked(robot, T):
    with pytest.raises(InvalidRequestError, match="some of the quaternion of joint 'base'"):
        ik_problem(robot, T, base_link="odom", tip_link=TIP, locked_joints=["base/rot_x"])


def test_a_base_at_its_limits_leaves_the_rest_to_the_arm(robot, states):
    """The closed form asks for a base that cannot be there; with another arm it can."""
    limits = {"has_position_limits": True, "min_position": 0.0, "max_position": 0.0}
    low = apply_joint_limits(robot, {"base/trans_z": limits})
    solver = CpuSolver()
    solver.configure(low)
    reached = random_configurations(low, COUNT, 2)
    state = random_configurations(low, COUNT, 7)
    T = forward_kinematics(low, reached, links=("panda_link8",))[:, 0]
    problem = ik_problem(low, T, base_link="odom", tip_link="panda_link8", state=state)
    result = solver.solve_ik(problem)
    check_reached(low, problem, result)
    assert (result.q[:, 0, 2] == 0.0).all()


def test_what_is_not_defined_with_a_floating_joint_is_refused_by_name(robot, solver, T):
    problem = ik_problem(robot, T, group="free", tip_link=TIP, prefer="closest")
    assert solver.solve_ik(problem).success.all()
    with pytest.raises(InvalidRequestError, match="floating joint 'base'"):
        solver.solve_ik(ik_problem(robot, T, base_link="odom", tip_link=TIP, prefer="manipulability"))


def test_clear_of_collisions(robot, solver):
    pytest.importorskip("coal")
    where = np.array([5.0, 0.0, 0.5])
    box = PlacedShape(Box(0.2, 0.2, 0.2), np.eye(4))
    wall = SceneObject("wall", (box,), pose(np.eye(3), where))
    scene = add(EMPTY_SCENE, robot, wall)
    q = robot.default_q
    reach = forward_kinematics(robot, q, links=("panda_link8", "panda_link4"))
    # With the arm as it is the elbow would stand in the box: another arm is taken, or with the arm locked none.
    T = reach[0].copy()
    T[:3, 3] += where - reach[1][:3, 3]
    alone = ik_problem(robot, T, group="free", tip_link="panda_link8", scene=scene)
    assert solver.solve_ik(alone).status[0] == Status.GOAL_IN_COLLISION
    whole = ik_problem(robot, T, base_link="odom", tip_link="panda_link8", scene=scene)
    assert solver.solve_ik(whole).success.all()


def test_a_planar_base_carries_the_arm():
    planar = made("planar")
    q = random_configurations(planar, 20, 3)
    q[:, :2] *= 5.0
    T = forward_kinematics(planar, q, links=("panda_link8",))[:, 0]
    own = CpuSolver()
    own.configure(planar)
    problem = ik_problem(planar, T, base_link="odom", tip_link="panda_link8")
    assert len(problem.variables) == 10
    assert own.solve_ik(problem).success.all()
    held = ik_problem(planar, T, group="free", tip_link="panda_link8", state=q)
    result = own.solve_ik(held)
    assert result.success.all()  # in the arm's state of each request
    np.testing.assert_allclose(result.q[:, 0, :2], q[:, :2], atol=1e-3)


@pytest.mark.parametrize("length", [0.0, 0.3, 1.0, 7.0])
def test_a_second_floating_joint_gets_a_unit_quaternion_from_any_seed(length):
    """Pinocchio reads another pose in one of length 1.09: 5 cm from the target."""
    robot = robot_from_urdf(
        '<robot name="two"><link name="a"/><link name="b"/><link name="c"/>'
        '<joint name="one" type="floating"><parent link="a"/><child link="b"/></joint>'
        '<joint name="two" type="floating"><parent link="b"/><child link="c"/>'
        '<origin xyz="0.1 0.2 0.3"/></joint></robot>'
    )
    solver = CpuSolver()
    solver.configure(robot)
    T = forward_kinematics(robot, random_configurations(robot, 3, 1), links=("c",))[:, 0]
    seeds = random_configurations(robot, 4, 2)
    seeds[:, 3:7] *= length
    seeds[:, 10:14] *= length
    result = solver.solve_ik(ik_problem(robot, T, tip_link="c", seeds=seeds, num_solutions=5))
    assert result.success.all()
    found = result.q[~np.isnan(result.q).any(axis=2)]
    assert len(found) >= 6
    np.testing.assert_allclose(np.linalg.norm(found[:, 3:7], axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found[:, 10:14], axis=1), 1.0, atol=1e-6)
