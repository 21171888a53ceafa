"""What servo begins with, without a node: commands in time, and a robot as it was measured."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from support.looks import Trusting

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.present_motion import present_motion
from kinopt_ros.ros.requests.servo_commands import TWIST
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.ros.topics.servo import ServoTopic

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
SECOND = 10**9


def test_a_command_from_before_time_was_set_back_holds_no_longer_than_others() -> None:
    """It came, then a simulation began anew, then servo read it: it must not hold until it is as late again."""
    servo: Any = ServoTopic.__new__(ServoTopic)
    servo._came, servo._distrust, servo._command = 0, False, None
    servo._now = lambda: 5 * SECOND
    servo._context = SimpleNamespace(parameter=lambda name: 0.1)
    setup = SimpleNamespace(base="panda_link0", robot=PANDA)
    state = SimpleNamespace(q=PANDA.default_q)
    servo._read(setup, state, TWIST, TwistStamped(), 1000 * SECOND, 0)
    assert servo._command.ends == 5 * SECOND + SECOND // 10


@pytest.mark.parametrize("velocity", [50.0, -1e6, 1e13, 1e300])
def test_a_velocity_that_no_joint_can_have_begins_no_motion(velocity: float) -> None:
    """A brake from there would last for hours, or longer than there are numbers for."""
    setup = servo_setup(PANDA, "panda_link0", "panda_link8", ARM, start_tolerance=1e-3)
    n = len(PANDA.default_q)
    measured = np.zeros(n)
    measured[PANDA.variable_index["panda_joint3"]] = velocity
    state = RobotState(
        PANDA.default_q.copy(),
        measured,
        np.ones(n, dtype=bool),
        np.zeros(n),
        np.zeros(n, dtype=np.int64),
        *np.zeros((2, n)),
    )
    output = MotionOutput(None, Trusting())
    with pytest.raises(StartStateError, match="'panda_joint3' is measured to move at"):
        present_motion(output, setup, state, 10 * SECOND, SECOND // 50, 0.05)
    measured[PANDA.variable_index["panda_joint3"]] = 1.0
    begin = present_motion(output, setup, state, 10 * SECOND, SECOND // 50, 0.05)
    assert begin.end - begin.start < 5 * SECOND
