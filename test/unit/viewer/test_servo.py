"""Servo by dragging: what moves, what stops it, and that the page hears why."""

import numpy as np
import pytest

import kinopt_ros as ko
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.status import Status
from kinopt_ros.viewer.servo import PERIOD, DraggedServo, ServoState
from kinopt_ros.viewer.session import Session

TIP = "panda_link8"
TOLERANCE = (1e-4, 1e-3)


def servo_of(session: Session, tips: tuple[str, ...] = (TIP,)) -> DraggedServo:
    return DraggedServo(
        session.robot,
        tips,
        session.joints,
        session.q,
        0,
        velocity_scaling=0.5,
        acceleration_scaling=0.5,
        scene=session.scene,
        clearance=0.0,
    )


def run(
    servo: DraggedServo, T: np.ndarray | None, scene: Scene | None, begin: int, seconds: float
) -> list[ServoState]:
    """Run it by a clock of the test's own."""
    period = round(PERIOD * 1e9)
    steps = round(seconds / PERIOD)
    return [servo.step(begin + k * period, T, scene, TOLERANCE) for k in range(1, steps + 1)]


def test_the_robot_follows_the_gizmo_smoothly(session: Session) -> None:
    T = session.targets[TIP].copy()
    T[:3, 3] += 0.05, 0.1, 0.0
    states = run(servo_of(session), T, session.scene, 0, 4.0)
    reached = ko.forward_kinematics(session.robot, states[-1].q, links=[TIP])[0]
    assert np.linalg.norm(reached[:3, 3] - T[:3, 3]) < 1e-3
    assert states[-1].at_rest
    limit = 0.5 * session.robot.limits.velocity
    path = np.array([state.q for state in states])
    assert (np.abs(np.diff(path, axis=0)) <= limit * PERIOD + 1e-9).all()


def test_an_obstacle_stops_it_and_it_says_which(session: Session) -> None:
    T = session.targets[TIP].copy()
    where = T.copy()
    where[:3, :3] = np.eye(3)
    where[1, 3] += 0.25
    wall = SceneObject("wall", (PlacedShape(Box(0.6, 0.02, 0.8), np.eye(4)),), where)
    scene = Scene(version=2, objects={"wall": wall})
    T[1, 3] += 0.5
    states = run(servo_of(session), T, scene, 0, 4.0)
    assert all(ko.clearance_of(session.robot, scene, state.q).distance > 0.0 for state in states[::10])
    assert any("wall" in state.sentence for state in states)
    assert any(state.status is Status.SERVO_INFEASIBLE for state in states)


def test_it_comes_to_rest_when_asked(session: Session) -> None:
    servo = servo_of(session)
    T = session.targets[TIP].copy()
    T[1, 3] += 0.4
    moving = run(servo, T, session.scene, 0, 0.5)
    assert not moving[-1].at_rest
    rest = run(servo, None, session.scene, round(0.5e9), 1.0)
    assert rest[-1].at_rest
    assert (rest[-1].q == rest[-2].q).all()


def test_servo_follows_one_gizmo(session: Session) -> None:
    with pytest.raises(InvalidRequestError, match="servo follows one gizmo"):
        servo_of(session, (TIP, "panda_link4"))
