"""Long work is given up when nobody wants it any more."""

import threading

import numpy as np
import pytest

from kinopt_ros.geometry.fit import fit_spheres
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers import readiness
from kinopt_ros.wanted import AbandonedError, as_long_as, check_wanted

BOX = "<collision><geometry><box size='0.2 0.1 0.1'/></geometry></collision>"


def boxes(count: int) -> str:
    """A robot of so many boxes in a row, each on a joint."""
    text = f"<link name='l0'>{BOX}</link>"
    for k in range(1, count):
        text += f"<link name='l{k}'>{BOX}</link><joint name='j{k}' type='revolute'><parent link='l{k - 1}'/>"
        text += f"<child link='l{k}'/><origin xyz='0.2 0 0'/><axis xyz='0 0 1'/>"
        text += "<limit lower='-1' upper='1' velocity='1' effort='1'/></joint>"
    return f"<robot name='boxes'>{text}</robot>"


class Countdown:
    """Wanted so many times; how often it was asked."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.asked = 0

    def __call__(self) -> bool:
        self.asked += 1
        self.left -= 1
        return self.left >= 0


def test_work_that_nobody_watches_is_wanted() -> None:
    check_wanted()
    with as_long_as(lambda: True):
        check_wanted()
    with as_long_as(lambda: False), pytest.raises(AbandonedError):
        check_wanted()
    check_wanted()


def test_other_threads_go_on() -> None:
    raised: list[BaseException] = []

    def work() -> None:
        try:
            check_wanted()
        except BaseException as error:
            raised.append(error)

    with as_long_as(lambda: False):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert not raised


@pytest.mark.parametrize("times", [0, 1, 3])
def test_fitting_asks_again_and_again(times: int) -> None:
    wanted = Countdown(times)
    shapes = [PlacedShape(Box(1.0, 0.3, 0.2), np.eye(4)), PlacedShape(Box(0.2, 1.0, 0.3), np.eye(4))]
    with as_long_as(wanted), pytest.raises(AbandonedError):
        fit_spheres(shapes)
    assert wanted.asked == times + 1


def test_a_preparation_that_was_given_up_leaves_nothing_half_done(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("coal")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # else it may know all about these boxes
    robot = robot_from_urdf(boxes(5))
    always = Countdown(10**9)
    for times in (0, 2, 5, 9):
        with as_long_as(Countdown(times)), pytest.raises(AbandonedError):
            readiness.prepare_collisions(robot)
        with pytest.raises(readiness.PreparingError):
            readiness.check_ready(robot)
    with as_long_as(always):
        readiness.prepare_collisions(robot)
    assert always.asked > 400  # the samples of the usual gaps, at least
    readiness.check_ready(robot)


def test_requests_wait_as_long_as_something_is_being_prepared_for_them() -> None:
    robot = robot_from_urdf(boxes(2))
    pool = SolverPool(robot)
    late, soon = 0.0, float("inf")
    assert not pool.must_wait(False, False, soon)
    assert pool.must_wait(True, False, soon)
    assert pool.must_wait(False, True, soon)
    assert not pool.must_wait(True, True, late)
    assert pool.missing == ("collision checks", "trajectories")
    with pytest.raises(readiness.PreparingError, match="prepare_collisions"):
        pool.check_prepared(True, False)


def test_nobody_waits_for_a_robot_that_was_replaced() -> None:
    pool = SolverPool(robot_from_urdf(boxes(2)))
    pool.retire()
    assert not pool.must_wait(True, True, float("inf"))
    assert pool.missing == ()
    with pytest.raises(readiness.NotReadyError, match="another robot description came"):
        pool.check_prepared(True, True)


def test_nobody_waits_for_what_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(robot: object) -> None:
        raise ZeroDivisionError("by nothing")

    robot = robot_from_urdf(boxes(2))
    pool = SolverPool(robot)
    monkeypatch.setattr(readiness, "_prepare", fail)
    with pytest.raises(ZeroDivisionError):
        readiness.prepare_collisions(robot)
    assert not pool.must_wait(True, False, float("inf"))
