"""What leaves a motion: from when on it is part of what follows."""

from typing import Any

import numpy as np
import pytest

from kinopt_ros.planning.leaving import leaving
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.planning.servo.step import servo_step
from kinopt_ros.planning.servo.stop import quickest_stop
from kinopt_ros.planning.servo.velocity import Wanted
from kinopt_ros.robot.sources import load_robot

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
SETUP = servo_setup(PANDA, "panda_link0", "panda_link8", ARM, velocity_scaling=1.0, acceleration_scaling=1.0)
BEGIN, MS = 10**15, 1_000_000


def a_motion() -> Commanded:
    goal = PANDA.default_q.copy()
    goal[0] += 1.0
    moving = plan_joint_motion(PANDA, ARM, PANDA.default_q, np.zeros(PANDA.nq), goal, 0.3, 0.3).trajectory
    return Commanded(moving, BEGIN, BEGIN, BEGIN)


def left_by(what: str, motion: Commanded, now: int) -> Commanded:
    """A stop, a step of servo, or a move."""
    if what == "stop":
        return quickest_stop(SETUP, motion, now, PANDA.default_q)[0]
    if what == "servo":
        wish: Any = lambda *given: Wanted(np.full(7, 0.1))  # noqa: E731
        step = servo_step(SETUP, motion, now, PANDA.default_q, wish)
        assert step.motion is not None
        return step.commanded
    left = leaving(motion, now, 10 * MS, SETUP.planning)
    place = PANDA.default_q.copy()
    place[:7] = left.state.position
    back = plan_joint_motion(PANDA, ARM, place, left.state.velocity, PANDA.default_q, 1.0, 1.0).trajectory
    return left.joined(back)


@pytest.mark.parametrize("what", ["stop", "servo", "move"])
@pytest.mark.parametrize("before", [95, 60, 20, 5, 1])
def test_what_leaves_a_motion_before_it_has_begun_begins_when_that_does(what: str, before: int) -> None:
    """Until then its controller is on its way there: what began sooner stepped by what was left of that."""
    motion = a_motion()
    follows = left_by(what, motion, BEGIN - before * MS)
    assert follows.start == BEGIN
    np.testing.assert_array_equal(follows.trajectory.position[0], motion.trajectory.position[0])
    assert not follows.trajectory.velocity[0].any()
    assert follows.leave > BEGIN
    times = np.linspace(BEGIN, follows.leave, 9).astype(np.int64)
    np.testing.assert_allclose(follows.at_all(times)[0], motion.at_all(times)[0], atol=1e-9)


@pytest.mark.parametrize("what", ["stop", "servo", "move"])
def test_what_leaves_one_that_runs_begins_now(what: str) -> None:
    motion = a_motion()
    now = BEGIN + 300 * MS
    assert abs(left_by(what, motion, now).start - now) <= MS
