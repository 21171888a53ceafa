"""Paths by OMPL: through gaps, in time, the same for the same seed."""

import gc
import time
import weakref
from itertools import pairwise

import numpy as np
import pytest

from kinopt_ros.errors import InvalidRequestError, MissingPackageError
from kinopt_ros.planning import sampling
from kinopt_ros.planning.sampling import sampled_path
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

SOON = 20.0


@pytest.fixture(scope="module")
def robot():
    return load_robot("panda")


@pytest.fixture
def problem(robot):
    goal = robot.default_q[:7].copy()
    goal[0] = 1.5
    start = robot.default_q.copy()
    start[0] = -1.5
    return trajectory_problem(robot, goal, start=start, joints=tuple(f"panda_joint{k}" for k in range(1, 8)))


def goals_of(problem):
    return np.array([goal.q for goal in problem.goals])


def wall(a, b):
    """Joint 1 passes 0 only where joint 2 is far forwards."""
    rows = a + np.linspace(0.0, 1.0, 1 + int(np.abs(b - a).max() / 0.01))[:, None] * (b - a)
    return not ((np.abs(rows[:, 0]) < 0.2) & (rows[:, 1] < 1.0)).any()


def test_a_path_goes_through_the_gap(robot, problem):
    pytest.importorskip("ompl")
    goals = goals_of(problem)
    start = problem.start[problem.variables]
    assert not wall(start, goals[0])
    path = sampled_path(robot, problem, goals, wall, time.monotonic() + SOON, 1)
    assert path is not None
    np.testing.assert_array_equal(path[0], start)
    np.testing.assert_array_equal(path[-1], goals[0])
    assert all(wall(a, b) for a, b in pairwise(path))
    lower, upper = robot.limits.lower[problem.variables], robot.limits.upper[problem.variables]
    assert (path >= lower).all()
    assert (path <= upper).all()


def test_shortening_shortens_and_the_seed_decides(robot, problem):
    pytest.importorskip("ompl")

    def path(seed, shortening):
        return sampled_path(
            robot, problem, goals_of(problem), wall, time.monotonic() + SOON, seed, shortening=shortening
        )

    def length(corners):
        return np.linalg.norm(np.diff(corners, axis=0), axis=1).sum()

    raw, again, other = path(7, 0.0), path(7, 0.0), path(8, 0.0)
    np.testing.assert_array_equal(raw, again)
    assert raw.shape != other.shape or not np.allclose(raw, other)
    assert length(path(7, 2.0)) < length(raw)


def test_goals_that_are_not_free_are_left_out(robot, problem):
    pytest.importorskip("ompl")
    goals = np.repeat(goals_of(problem), 2, axis=0)
    goals[0, 0], goals[0, 1] = 0.0, 0.0  # in the wall
    path = sampled_path(robot, problem, goals, wall, time.monotonic() + SOON, 1)
    np.testing.assert_array_equal(path[-1], goals[1])
    assert sampled_path(robot, problem, goals[:1], wall, time.monotonic() + SOON, 1) is None


def test_a_check_may_answer_with_a_truth_value_of_numpy(robot, problem):
    """OMPL raised "bad_cast" then."""
    pytest.importorskip("ompl")
    goals = goals_of(problem)
    assert (
        sampled_path(robot, problem, goals, lambda a, b: np.bool_(wall(a, b)), time.monotonic() + SOON, 1)
        is not None
    )


def test_deadline_and_stop_end_the_search(robot, problem):
    pytest.importorskip("ompl")

    def never(a, b):
        return bool((a == b).all())

    begin = time.monotonic()
    assert sampled_path(robot, problem, goals_of(problem), never, begin + 0.2, 1) is None
    assert time.monotonic() - begin >= 0.2
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 20

    assert sampled_path(robot, problem, goals_of(problem), never, time.monotonic() + 1e6, 1, stop) is None
    with sampling._one_at_a_time:  # another search is under way
        assert sampled_path(robot, problem, goals_of(problem), wall, time.monotonic() + 0.1, 1) is None


def test_what_the_check_raises_is_raised(robot, problem):
    pytest.importorskip("ompl")

    def broken(a, b):
        if (a != b).any():
            raise ArithmeticError("no such number")
        return True

    with pytest.raises(ArithmeticError, match="no such number"):
        sampled_path(robot, problem, goals_of(problem), broken, time.monotonic() + SOON, 1)
    assert not sampling._one_at_a_time.locked()


def test_a_search_that_ends_by_an_exception_is_freed(robot, problem):
    """A deadline that comes in the middle of a look raises: each such search left its trees in the memory."""
    pytest.importorskip("ompl")

    class Lines:
        """Free until the search is under way."""

        def free(self, a, b):
            if (a != b).any():
                raise ArithmeticError("no such number")
            return True

    lines = Lines()
    alive = weakref.ref(lines)
    with pytest.raises(ArithmeticError):
        sampled_path(robot, problem, goals_of(problem), lines.free, time.monotonic() + SOON, 1)
    del lines
    gc.collect()
    assert alive() is None


def test_bad_input_and_a_missing_library_are_refused(robot, problem, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sampling, "find_spec", lambda name: None)
        with pytest.raises(MissingPackageError, match="pip install ompl"):
            sampled_path(robot, problem, goals_of(problem), wall, time.monotonic() + 1.0, 1)
    pytest.importorskip("ompl")
    with pytest.raises(InvalidRequestError, match="7 finite numbers"):
        sampled_path(robot, problem, np.zeros((1, 6)), wall, time.monotonic() + 1.0, 1)
    with pytest.raises(InvalidRequestError, match="seed is 0"):
        sampled_path(robot, problem, goals_of(problem), wall, time.monotonic() + 1.0, 0)


BASE = """<robot name="base"><link name="floor"/><link name="x"/><link name="y"/><link name="arm"/>
  <joint name="slide_x" type="prismatic"><parent link="floor"/><child link="x"/><axis xyz="1 0 0"/>
    <limit lower="-999999" upper="999999" effort="1" velocity="1"/></joint>
  <joint name="slide_y" type="prismatic"><parent link="x"/><child link="y"/><axis xyz="0 1 0"/>
    <limit lower="-999999" upper="999999" effort="1" velocity="1"/></joint>
  <joint name="turn" type="continuous"><parent link="y"/><child link="arm"/><axis xyz="0 0 1"/></joint>
</robot>"""


def test_a_base_without_real_limits_stays_near():
    """In a range of two million metres lines of 10^5 m were looked at, and paths went kilometres around a wall."""
    pytest.importorskip("ompl")
    robot = robot_from_urdf(BASE)
    joints = ("slide_x", "slide_y", "turn")
    start = np.array([400.0, -300.0, 0.0])
    goal = np.array([402.0, -300.0, 0.5])
    problem = trajectory_problem(robot, goal, start=start, joints=joints)
    lines = []

    def around_the_wall(a, b):
        lines.append(float(np.abs(b - a).max()))
        rows = a + np.linspace(0.0, 1.0, 200)[:, None] * (b - a)
        return not ((np.abs(rows[:, 0] - 401.0) < 0.1) & (np.abs(rows[:, 1] + 300.0) < 2.0)).any()

    path = sampled_path(robot, problem, goals_of(problem), around_the_wall, time.monotonic() + SOON, 1)
    assert path is not None
    assert max(lines) < 30.0
    assert np.abs(path[:, :2] - start[:2]).max() < 10.0
