"""What counts as movement of joints, by their measured positions."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.motion.movement import CALM, Movement

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
SETUP = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, ARM, start_tolerance=1e-3)


def state(q: np.ndarray, velocity: float = 0.0) -> Any:
    return SimpleNamespace(q=q, age=np.zeros_like(q), velocity=np.full_like(q, velocity))


@pytest.mark.parametrize("rate", [5.0, 10.0, 50.0, 1000.0])
@pytest.mark.parametrize("speed", [0.05, -0.5, 2.0])
def test_a_joint_that_moves_is_seen(rate: float, speed: float) -> None:
    movement, q = Movement(SETUP), PANDA.default_q.copy()
    for k in range(int(0.5 * rate) + 2):
        movement.take(state(q), 100.0 + k / rate)
        q[3] += speed / rate
    now = 100.0 + k / rate
    assert movement.moving(now) == "panda_joint4"
    assert movement.velocity(state(q))[3] == pytest.approx(speed, rel=1e-6)
    assert movement.velocity(state(q, speed))[3] == pytest.approx(speed, rel=1e-6)
    assert abs(movement.velocity(state(q, 100.0 * speed))[3]) < 1.6 * abs(speed)
    assert movement.jumped is None


def test_after_a_jump_nothing_is_believed_for_a_while() -> None:
    movement, q = Movement(SETUP), PANDA.default_q.copy()
    movement.take(state(q), 0.0)
    q[1] += 1.0
    seen = []
    for k in range(50):
        q[0] += 0.01
        movement.take(state(q), 0.02 * (k + 1))
        if movement.moving(0.02 * (k + 1)):
            seen.append(0.02 * (k + 1))
    assert movement.jumped == "panda_joint2"
    assert seen[0] >= CALM
    assert seen[0] < CALM + 0.1


def test_turns_of_continuous_joints_are_no_way() -> None:
    robot = robot_from_urdf(
        '<robot name="r"><link name="a"/><link name="b"/><joint name="turn" type="continuous"><parent link="a"/>'
        '<child link="b"/><axis xyz="0 0 1"/><limit velocity="2" effort="1"/></joint></robot>'
    )
    setup = servo_setup(robot, "a", "a", ("turn",), start_tolerance=1e-3)
    movement = Movement(setup)
    for k in range(20):
        movement.take(state(np.array([(np.pi - 1e-3) * (-1) ** k])), 0.02 * k)
    assert movement.moving(1.0) is None
    assert movement.jumped is None
    for k in range(20):
        turned = np.array([np.arctan2(np.sin(3.0 + 0.02 * k), np.cos(3.0 + 0.02 * k))])
        movement.take(state(turned), 1.0 + 0.02 * k)
    assert movement.moving(1.4) == "turn"
    assert movement.velocity(state(turned)) == pytest.approx(1.0)
