"""The check of whole motions against what was asked: each part is broken once."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.constraints.pose_along import PoseAlong
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.trajectory import JointGoal, PoseGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.path_timing import time_path
from kinopt_ros.trajectory.timing import point_to_point
from kinopt_ros.verification.motion import (
    ALONG,
    GOAL,
    WAYPOINTS,
    motion_limits,
    velocity_at_start,
    verify_motion,
)
from kinopt_ros.verification.verify import ON_THE_WAY

GOAL_Q = np.array([0.6, -0.4, 0.3, -1.8, 0.2, 1.9, 0.5])


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return load_robot("panda")


def line(robot: RobotModel, problem: TrajectoryProblem, goal: Float64 = GOAL_Q) -> JointTrajectory:
    """The straight motion to a configuration."""
    limits = motion_limits(robot, problem)
    start = problem.start[problem.variables]
    return point_to_point(problem.joints, start, goal, limits.velocity, limits.acceleration, limits.jerk)


def whole(robot: RobotModel, q: Float64) -> Float64:
    full = robot.default_q.copy()
    full[:7] = q
    return full


def pose(robot: RobotModel, q: Float64, link: str = "panda_link8") -> Float64:
    return forward_kinematics(robot, whole(robot, q), [link])[0]


def asked(robot: RobotModel, goal: Any = GOAL_Q, **options: Any) -> TrajectoryProblem:
    return trajectory_problem(robot, goal, **options)


def test_a_motion_that_does_all_that_was_asked_passes(robot: RobotModel) -> None:
    problem = asked(robot, [GOAL_Q, pose(robot, GOAL_Q)], scene=EMPTY_SCENE)
    for goal in range(2):
        found = verify_motion(robot, problem, line(robot, problem), goal)
        assert found.report.ok, found.report.violations
        assert {GOAL, ON_THE_WAY, "position limits", "jerk limits"} <= set(found.report.checks)


def test_without_a_scene_collisions_are_named_as_not_checked(robot: RobotModel) -> None:
    report = verify_motion(robot, problem := asked(robot), line(robot, problem), 0).report
    assert report.ok
    assert ON_THE_WAY in report.not_checked


@pytest.mark.parametrize("as_pose", [False, True])
def test_a_missed_goal_is_found(robot: RobotModel, as_pose: bool) -> None:
    problem = asked(robot, pose(robot, GOAL_Q) if as_pose else GOAL_Q)
    off = GOAL_Q + 2e-3 * np.eye(7)[3]
    (violation,) = verify_motion(robot, problem, line(robot, problem, off), 0).report.violations
    assert violation.check == GOAL
    assert "panda_" in violation.message


def test_faster_than_asked_is_found(robot: RobotModel) -> None:
    slow, fast = asked(robot), asked(robot, velocity_scaling=0.5, acceleration_scaling=0.5)
    found = verify_motion(robot, slow, line(robot, fast), 0).report
    assert {violation.check for violation in found.violations} == {"velocity limits", "acceleration limits"}
    assert {GOAL, ON_THE_WAY} <= set(found.not_checked)


def test_another_start_is_found(robot: RobotModel) -> None:
    problem = asked(robot)
    elsewhere = asked(robot, start=whole(robot, robot.default_q[:7] + 0.01))
    report = verify_motion(robot, elsewhere, line(robot, problem), 0).report
    assert {violation.check for violation in report.violations} == {"start position"}


def test_a_motion_through_something_is_found(robot: RobotModel) -> None:
    problem = asked(robot)
    middle = pose(robot, 0.5 * (robot.default_q[:7] + GOAL_Q))
    sheet = SceneObject("sheet", (PlacedShape(Box(1e-4, 0.3, 0.3), np.eye(4)),), middle)
    problem = asked(robot, scene=Scene(objects={"sheet": sheet}))
    found = verify_motion(robot, problem, line(robot, problem), 0)
    (violation,) = found.report.violations
    assert violation.check == ON_THE_WAY
    assert "'sheet'" in violation.message
    assert found.contact is not None


def test_waypoints_are_passed_in_their_order(robot: RobotModel) -> None:
    start = robot.default_q[:7]
    first, second = start + 0.3 * (GOAL_Q - start), start + 0.7 * (GOAL_Q - start)
    as_pose = PoseGoal((PoseTarget("panda_link8", pose(robot, second)[None], 2e-3, 1e-2),))
    for waypoints in ([first, second], [first, as_pose]):
        problem = asked(robot, waypoints=waypoints)
        report = verify_motion(robot, problem, line(robot, problem), 0).report
        assert report.ok, report.violations
        assert any(check.startswith(WAYPOINTS) for check in report.checks)
    for waypoints in ([second, first], [as_pose, first], [first + 0.01]):
        problem = asked(robot, waypoints=waypoints)
        (violation,) = verify_motion(robot, problem, line(robot, problem), 0).report.violations
        assert violation.check == WAYPOINTS


def test_a_waypoint_is_not_passed_farther_off_as_the_motion_is_quick_elsewhere(robot: RobotModel) -> None:
    problem = asked(robot, velocity_scaling=1.0, acceleration_scaling=1.0)
    motion = line(robot, problem)
    way = motion.position[-1] - motion.position[0]
    fastest = np.abs(np.diff(evaluate(motion, np.arange(0.0, motion.duration, 1e-3))[0], axis=0)).max()
    assert fastest > 1.6e-3
    i = int(np.argmax(np.abs(way)))
    for beyond, fine in ((0.9e-3, True), (1.7e-3, False)):  # where the motion is at rest
        waypoint = motion.position[-1].copy()
        waypoint[i] += beyond * np.sign(way[i])
        again = asked(robot, waypoints=[waypoint], velocity_scaling=1.0, acceleration_scaling=1.0)
        report = verify_motion(robot, again, motion, 0).report
        assert report.ok is fine, (beyond, fastest, report.violations)


def test_a_pose_that_is_passed_quickly_is_seen_between_two_instants(robot: RobotModel) -> None:
    start = robot.default_q[:7]
    for share in (0.41, 0.5, 0.6):
        passed = pose(robot, start + share * (GOAL_Q - start))
        beside = passed.copy()
        beside[:3, 3] += 2e-4
        for T, fine in ((passed, True), (beside, False)):
            # A millisecond is more than a millimetre at this speed; the tolerance is a hundredth of that.
            waypoint = PoseGoal((PoseTarget("panda_link8", T[None], 1e-5, 1e-4),))
            scaling = {"velocity_scaling": 1.0, "acceleration_scaling": 1.0}
            problem = asked(robot, waypoints=[waypoint], **scaling)
            report = verify_motion(robot, problem, line(robot, problem), 0).report
            assert report.ok is fine, report.violations
            if not fine:
                assert report.violations[0].check == WAYPOINTS


def test_what_holds_all_the_way_is_looked_at_all_the_way(robot: RobotModel) -> None:
    turned = robot.default_q[:7].copy()
    turned[0] += 1.0  # about the vertical axis: the hand keeps its tilt and its height
    held = pose(robot, robot.default_q[:7])
    upright = held.copy()
    upright[:3, :3] = np.eye(3)  # a tool frame that stands upright in the hand, as it is held
    tool = np.linalg.inv(held) @ upright
    tilt = PoseTarget("panda_link8", upright[None], math.inf, (1e-3, 1e-3, math.inf), tool)
    kept = asked(robot, turned, along=[PoseAlong(tilt)])
    assert verify_motion(robot, kept, line(robot, kept, turned), 0).report.ok
    bent = turned + 0.1 * np.eye(7)[5]
    problem = asked(robot, bent, along=[PoseAlong(tilt)])
    (violation,) = verify_motion(robot, problem, line(robot, problem, bent), 0).report.violations
    assert violation.check == ALONG
    assert violation.time is not None


def test_a_moment_of_a_motion_of_an_hour_is_looked_at(robot: RobotModel) -> None:
    """A robot that moves brakes and comes back in 0.1 s; it was looked at every 0.18 s."""
    joints = [f"panda_joint{i}" for i in range(1, 8)]
    most = {"max_velocity": 10.0, "max_acceleration": 100.0, "max_jerk": 1e5}
    quick = apply_joint_limits(robot, dict.fromkeys(joints, most))
    velocity = np.zeros(robot.nq)
    velocity[0] = 2.0
    goal = robot.default_q[:7] + 1e-3
    free = asked(quick, goal, start_velocity=velocity, velocity_scaling=1.0, acceleration_scaling=1.0)
    limits = motion_limits(quick, free)
    path = np.stack([robot.default_q[:7], goal])
    motion = time_path(
        free.joints, path, limits.velocity, limits.acceleration, limits.jerk, velocity[:7], duration=None
    )
    held = pose(robot, robot.default_q[:7])
    dense = evaluate(motion, np.linspace(0.0, motion.duration, 1000))[0]
    poses = forward_kinematics(robot, free.whole(dense), ["panda_link8"])[:, 0]
    away = float(np.linalg.norm(poses[:, :3, 3] - held[:3, 3], axis=1).max())
    rest = np.zeros((1, 7))
    trajectory = JointTrajectory(
        motion.joint_names,
        np.append(motion.time, 3600.0),
        np.concatenate([motion.position, motion.position[-1:]]),
        np.concatenate([motion.velocity, rest]),
        np.concatenate([motion.acceleration, rest]),
    )
    for tolerance, fine in ((1.01 * away, True), (0.9 * away, False)):
        along = PoseAlong(PoseTarget("panda_link8", held[None], tolerance, 1.0))
        report = verify_motion(quick, replace(free, along=(along,)), trajectory, 0).report
        assert report.ok is fine, report.violations
        if not fine:
            assert report.violations[0].check == ALONG


def test_distance_from_a_straight_line(robot: RobotModel) -> None:
    turned = robot.default_q[:7].copy()
    turned[0] += 1.0
    T = pose(robot, turned)
    radius = math.hypot(T[0, 3], T[1, 3])
    sagitta = radius * (1.0 - math.cos(0.5))  # of the arc that the hand moves on
    for tolerance, fine in ((sagitta * 1.001, True), (sagitta * 0.999, False)):
        problem = asked(robot, turned, along=[StraightLine("panda_link8", tolerance)])
        report = verify_motion(robot, problem, line(robot, problem, turned), 0).report
        assert report.ok is fine
        if not fine:
            assert report.violations[0].value == pytest.approx(sagitta, rel=1e-4)


def test_continuous_joints_may_reach_goals_by_whole_turns(urdf: Any) -> None:
    from kinopt_ros.robot.urdf import robot_from_urdf

    robot = robot_from_urdf(urdf('spin continuous base arm <limit effort="1" velocity="2"/>'))
    goal = JointGoal(np.array([1.0]))
    problem = trajectory_problem(robot, goal, joints=["spin"])
    limits = motion_limits(robot, problem)
    motion = point_to_point(
        ("spin",),
        np.zeros(1),
        np.array([1.0 - 2.0 * np.pi]),
        limits.velocity,
        limits.acceleration,
        limits.jerk,
    )
    assert verify_motion(robot, problem, motion, 0).report.ok


def test_sensors_never_read_zero(robot: RobotModel) -> None:
    limit = motion_limits(robot, asked(robot)).velocity
    noise, moving = np.zeros(robot.nq), np.zeros(robot.nq)
    noise[:7], moving[:7] = 0.005 * limit, 0.5 * limit
    assert not velocity_at_start(robot, asked(robot, start_velocity=noise)).any()
    np.testing.assert_array_equal(velocity_at_start(robot, asked(robot, start_velocity=moving)), 0.5 * limit)
