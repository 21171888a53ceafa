"""What the page is about: poses in, verified answers and motions out, without a page."""

import json
import shlex

import numpy as np
import pytest

import kinopt_ros as ko
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, InvalidStateError, UnknownNameError
from kinopt_ros.kinematics.se3 import pose_error
from kinopt_ros.status import Status
from kinopt_ros.viewer.request_text import as_python, as_service_call
from kinopt_ros.viewer.session import Session
from kinopt_ros.viewer.solution import Solution

TIP = "panda_link8"


def shifted(session: Session, by: tuple[float, float, float]) -> np.ndarray:
    T = session.targets[TIP].copy()
    T[:3, 3] += by
    return T


def test_a_dragged_gizmo_moves_the_robot_there(session: Session) -> None:
    T = shifted(session, (0.05, 0.1, -0.05))
    session.set_target(TIP, T)
    solution = session.solve()
    assert solution.status is Status.SUCCESS
    assert solution.position_error <= session.settings["position_tolerance"]
    reached = ko.forward_kinematics(session.robot, session.q, links=[TIP])[0]
    position, orientation = pose_error(reached, T)
    assert position <= 1e-4
    assert orientation <= 1e-3


def test_a_goal_leaves_the_robot_where_it_is(session: Session) -> None:
    before = session.q
    session.moves_robot = False
    session.set_target(TIP, shifted(session, (0.05, 0.0, 0.0)))
    assert session.solve().found
    assert (session.q == before).all()


def test_what_cannot_be_reached_has_a_sentence_and_an_attempt(session: Session) -> None:
    before = session.q
    session.set_target(TIP, shifted(session, (2.0, 0.0, 0.0)))
    solution = session.solve()
    assert not solution.found
    assert "out of reach" in solution.sentence
    assert solution.attempt is not None
    assert np.isfinite(solution.attempt).all()
    assert (session.q == before).all()


def test_a_weight_changes_what_is_as_near_as_possible(session: Session) -> None:
    T = shifted(session, (0.5, 0.0, 0.4))
    session.nearest = True
    found = []
    for weight in (0.1, 50.0):
        session.go_to_state("panda_arm/ready")
        session.set_target(TIP, T)
        session.settings.set("orientation_weight", weight)
        solution = session.solve()
        assert solution.status is Status.NEAREST
        found.append(solution)
    assert found[1].orientation_error < 0.1 * found[0].orientation_error
    assert found[1].position_error > found[0].position_error


def test_what_is_as_near_as_possible_is_planned_to(session: Session) -> None:
    """Arms of five joints reach hardly any pose; the motion ends where the ghost is."""
    session.nearest, session.moves_robot = True, False
    session.set_target(TIP, shifted(session, (0.6, 0.1, 0.0)))
    solution = session.solve()
    assert solution.status is Status.NEAREST
    result = session.plan()
    assert result.success, result.message
    assert session.motion is not None
    assert solution.q is not None
    np.testing.assert_allclose(session.motion.at(session.motion.duration), solution.q, atol=1e-6)
    session.nearest = False
    assert not session.plan().success


def test_all_solutions_are_distinct_and_reach_the_pose(session: Session) -> None:
    T = session.targets[TIP]
    found = session.solve(8).all_q
    assert len(found) > 1
    for q in found:
        assert pose_error(ko.forward_kinematics(session.robot, q, links=[TIP])[0], T)[0] <= 1e-4
    assert all(np.abs(a - b).max() > 0.5 for i, a in enumerate(found) for b in found[:i])


def test_an_obstacle_in_the_way_changes_the_plan(session: Session) -> None:
    session.moves_robot = False
    session.settings.set("velocity_scaling", 0.5)
    start = session.q
    session.set_variable("panda_joint1", 1.2)
    goal = session.targets[TIP]
    session.set_q(start)
    session.set_target(TIP, goal)
    assert session.plan().success
    free = session.motion
    assert free is not None
    middle = ko.forward_kinematics(session.robot, free.at(free.duration / 2), links=[TIP])[0, :3, 3]
    x, y, z = middle.tolist()
    session.obstacles.add("sphere", (0.12, 0.12, 0.12), (x, y, z))
    result = session.plan()
    assert result.success, result.message
    around = session.motion
    assert around is not None
    assert result.clearance > 0.0
    assert around.result.length > 1.01 * free.result.length
    times = np.linspace(0.0, around.duration, 50)
    assert ko.check_collisions(
        session.robot, session.obstacles.scene, np.array([around.at(t) for t in times])
    ).free.all()
    session.avoid_collisions = False
    again = session.plan()
    assert again.length == pytest.approx(free.result.length, rel=1e-6)
    assert not np.isfinite(again.clearance)


def test_a_motion_is_played_from_start_to_goal_inside_its_limits(session: Session) -> None:
    session.moves_robot = False
    T = shifted(session, (0.0, 0.2, -0.1))
    session.set_target(TIP, T)
    assert session.plan().success
    motion = session.motion
    assert motion is not None
    assert np.allclose(motion.at(0.0), session.q)
    assert np.array_equal(motion.at(-1.0), motion.at(0.0))
    assert np.array_equal(motion.at(motion.duration + 5.0), motion.at(motion.duration))
    end = ko.forward_kinematics(session.robot, motion.at(motion.duration), links=[TIP])[0]
    assert pose_error(end, T)[0] <= 1e-4
    curves = motion.curves
    for values in (curves.position, curves.velocity, curves.acceleration):
        assert np.abs(values).max() <= 1.0 + 1e-6
    assert max(np.abs(curves.velocity).max(), np.abs(curves.acceleration).max()) > 0.9


def test_a_plan_that_is_cancelled_leaves_no_motion(session: Session) -> None:
    session.set_target(TIP, shifted(session, (0.0, 0.2, 0.0)))
    result = session.plan(lambda *_: False)
    assert not result.success
    assert session.motion is None


def test_random_poses_are_reachable(session: Session) -> None:
    for _ in range(5):
        session.random_targets()
        session.settings.set("timeout", 2.0)
        assert session.solve().status is Status.SUCCESS


def test_a_scene_in_which_nothing_is_free_says_so(session: Session) -> None:
    session.obstacles.add("box", (4.0, 4.0, 4.0), (0.0, 0.0, 0.0))
    with pytest.raises(InvalidRequestError, match="none of 200"):
        session.random_targets()


def test_joints_keep_their_limits(session: Session) -> None:
    session.set_variable("panda_joint1", 0.3)
    assert session.q[0] == 0.3
    assert session.targets[TIP][1, 3] > 0.05  # the gizmo goes with the tip
    with pytest.raises(InvalidStateError, match=r"allowed is -2.8973 to 2.8973"):
        session.set_variable("panda_joint1", 3.0)
    with pytest.raises(InvalidStateError, match="no variable"):
        session.set_variable("elbow", 0.0)
    with pytest.raises(InvalidStateError, match="finite"):
        session.set_q(np.full(session.robot.nq, np.nan))


@pytest.mark.parametrize(
    "T", [np.full((4, 4), np.nan), np.zeros((4, 4)), np.eye(3), 2.0 * np.eye(4), np.full((4, 4), 1e308)]
)
def test_what_is_no_pose_is_refused_and_changes_nothing(session: Session, T: np.ndarray) -> None:
    before = session.targets[TIP]
    with pytest.raises(InvalidGoalError):
        session.set_target(TIP, T)
    assert (session.targets[TIP] == before).all()


def test_unknown_names_are_refused_by_name(session: Session) -> None:
    with pytest.raises(InvalidGoalError, match="no gizmo for 'hand'"):
        session.set_target("hand", np.eye(4))
    with pytest.raises(UnknownNameError, match="wheel"):
        session.choose_group("wheel")
    with pytest.raises(UnknownNameError, match="magic"):
        Session(session.robot, solver="magic")
    with pytest.raises(UnknownNameError):
        session.choose_solver("magic")
    assert session.solve().found


@pytest.mark.parametrize("name", ["jax_lm", "hjcd"])
def test_a_solver_that_knows_no_posture_begins_where_the_robot_is(session: Session, name: str) -> None:
    if name not in session.solver_choices():
        pytest.skip(f"{name} cannot run here")
    assert session.prefers_closest
    other = Session(session.robot, solver=name)
    assert not other.prefers_closest
    problem = other.ik_problem()
    assert problem.preference is None
    np.testing.assert_array_equal(problem.seeds[0], other.q[other.variables][None])
    assert "seeds=" in as_python(other, "panda")
    request = json.loads(shlex.split(as_service_call(other))[5])
    np.testing.assert_allclose(request["seeds"], other.q[other.variables], atol=1e-9)
    assert "prefer" not in request


def test_a_solver_is_closed_once_nobody_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Pretended:
        """A solver that another one takes the place of while it answers."""

        def __init__(self, name: str, robot: ko.RobotModel) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

        def warm_up(self) -> None:
            """It is ready."""

    monkeypatch.setattr("kinopt_ros.viewer.session.create_solver", Pretended)
    session = Session(ko.load_robot("panda"))
    session.choose_solver("a")
    with session._solvers.for_poses(), session._solvers.for_plans():
        session.choose_solver("b")
        with session._solvers.for_poses() as other:
            assert getattr(other, "name", "") == "b"
        assert not closed
    assert closed == ["a", "a"]
    session.choose_solver("c")
    assert closed == ["a", "a", "b", "b"]
    session.close()
    assert closed[4:] == ["c", "c"]
    assert not session.solve().found


def test_nothing_is_answered_before_it_is_prepared() -> None:
    fresh = Session(ko.load_robot("panda"))
    assert not fresh.ready
    solution = fresh.solve()
    assert not solution.found
    assert "prepared" in solution.sentence
    assert fresh.nearest_bodies(fresh.q) is None
    with pytest.raises(InvalidRequestError, match="prepared"):
        fresh.plan()


def test_several_tips_are_reached_at_once(session: Session) -> None:
    both = Session(session.robot, tips=("panda_link4", TIP))
    both.prepare()
    assert both.tips == ("panda_link4", TIP)
    T = {tip: both.targets[tip].copy() for tip in both.tips}
    both.set_variable("panda_joint1", 0.3)
    for tip in both.tips:
        both.set_target(tip, T[tip])
    assert both.solve().status is Status.SUCCESS
    reached = ko.forward_kinematics(both.robot, both.q, links=both.tips)
    assert all(pose_error(pose, T[tip])[0] <= 1e-4 for pose, tip in zip(reached, both.tips, strict=True))
    both.close()


def test_the_cloud_of_a_tip_holds_what_it_can_reach(session: Session) -> None:
    points = session.reachable_points(TIP)
    assert points.shape[1] == 3
    assert len(points) >= 1000
    assert np.linalg.norm(points - [0.0, 0.0, 0.333], axis=1).max() < 0.95
    assert np.array_equal(points, session.reachable_points(TIP))


def test_an_answer_that_comes_late_does_not_undo_what_was_put_by_hand(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.set_target(TIP, shifted(session, (0.05, 0.0, 0.0)))
    answer = session._answer

    def late(num_solutions: int) -> Solution:
        solution = answer(num_solutions)
        session.set_variable("panda_joint1", 0.7)
        return solution

    monkeypatch.setattr(session, "_answer", late)
    assert session.solve().found
    assert session.q[0] == 0.7


def test_a_time_that_is_no_number_is_refused(session: Session) -> None:
    session.set_target(TIP, shifted(session, (0.0, 0.1, 0.0)))
    assert session.plan().success
    assert session.motion is not None
    with pytest.raises(InvalidRequestError, match="the time is nan"):
        session.motion.at(float("nan"))
