"""When a published motion begins."""

import numpy as np
import pytest
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.published import BEGINS_AFTER, EARLIEST, EARLIEST_AT_ONCE, begin_of, check_clock
from kinopt_ros.ros.robot.joint_states import LATEST, JointStates

PANDA = load_robot("panda")
ARM = [f"panda_joint{i + 1}" for i in range(7)]
NOW = 5_000_000_000


class Measured:
    """A joint state of the arm at rest."""

    name, position, velocity = ARM, PANDA.default_q[:7].tolist(), [0.0] * 7


def states(late: float | None) -> JointStates:
    """Joint states that arrive so many seconds after their stamp; None: without one."""
    made = JointStates()
    made.update(Measured(), 0 if late is None else NOW - round(1e9 * late), NOW)
    return made


def motion(speed: float = 0.0) -> JointTrajectory:
    point = JointTrajectoryPoint(positions=[0.0] * 7, velocities=[0.0] * 6 + [speed])
    return JointTrajectory(joint_names=ARM, points=[point])


@pytest.mark.parametrize("late", [0.0, EARLIEST, 0.01, LATEST])
def test_a_motion_from_rest_begins_ahead_where_clocks_agree(late: float) -> None:
    assert begin_of(motion(), PANDA, states(late).of(PANDA), NOW) == NOW + BEGINS_AFTER


@pytest.mark.parametrize("late", [None, EARLIEST - 0.01, LATEST + 0.01, 1e6])
def test_one_begins_when_it_comes_where_they_do_not_or_nobody_knows(late: float | None) -> None:
    assert begin_of(motion(), PANDA, states(late).of(PANDA), NOW) is None


def test_one_that_begins_in_motion_is_not_put_off() -> None:
    """Its first point is where the robot is now, and not a moment later."""
    assert begin_of(motion(0.1), PANDA, states(0.0).of(PANDA), NOW) is None
    assert begin_of(JointTrajectory(joint_names=ARM), PANDA, states(0.0).of(PANDA), NOW) is None


@pytest.mark.parametrize(("late", "refused"), [(-0.01, False), (-0.03, True), (-0.3, True), (3.0, False)])
def test_what_is_sent_at_once_is_for_controllers_whose_clock_is_not_ahead(late: float, refused: bool) -> None:
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, tuple(ARM))
    state = states(late).of(PANDA)
    if not refused:
        check_clock(state, setup, EARLIEST_AT_ONCE, np.inf)
        return
    with pytest.raises(StartStateError, match=f"'panda_joint1' is stamped {-late} s ahead of that clock"):
        check_clock(state, setup, EARLIEST_AT_ONCE, np.inf)
