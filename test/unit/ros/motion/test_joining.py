"""A motion that leaves another one makes no robot step that is beside that."""

from types import SimpleNamespace

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.planning.leaving import leaving
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.simulated_actions import given
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.motion.joining import joined
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory as Motion
from kinopt_ros.trajectory.simulated_controller import SimulatedController

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
INDEX = [PANDA.variable_index[name] for name in ARM]
LIMITS = PANDA.limits
BEGIN = 10**15
MS = 1_000_000
LEAD = 60 * MS


def to(q: np.ndarray, **positions: float) -> np.ndarray:
    goal = q.copy()
    for name, value in positions.items():
        goal[PANDA.variable_index[name]] = value
    return goal


def stamped(motion: Motion, start: int) -> JointTrajectory:
    message = trajectory_message(motion, "panda_link0")
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(start, 10**9)
    return message


class Leaves:
    """A robot that is in a motion of 1.5 rad, and leaves it half way back to where it was."""

    def __init__(self, controller: SimulatedController, behind: float, way: int | None = None) -> None:
        """``behind``: how much later the robot is measured where the controller has it, s; ``way``: time after which
        the motion came that it leaves, which had no stamp, ns."""
        q, still = PANDA.default_q, np.zeros(PANDA.nq)
        first = plan_joint_motion(PANDA, ARM, q, still, to(q, panda_joint1=1.5), 1.0, 1.0).trajectory
        self.controller = controller
        self.running = Published(stamped(first, BEGIN if way is None else 0), PANDA, BEGIN)
        self.take(self.running.message, BEGIN - 5 * MS if way is None else BEGIN + way)
        self.now = BEGIN + round(0.5 * first.duration * 1e9)
        commanded = self.running.commanded(ARM)
        assert commanded is not None
        left = leaving(
            commanded, self.now, LEAD, servo_setup(PANDA, "panda_link0", "panda_link0", ARM).planning
        )
        at, velocity = q.copy(), still.copy()
        at[INDEX], velocity[INDEX] = left.state.position, left.state.velocity
        motion = plan_joint_motion(PANDA, ARM, at, velocity, to(q, panda_joint1=0.0), 1.0, 1.0, leaving=left)
        self.message = stamped(motion.trajectory, left.start)
        self.now += LEAD // 2  # it was planned meanwhile
        there = controller.state(self.now - round(1e9 * behind))
        states = JointStates()
        states.update(
            JointState(name=ARM, position=there.position.tolist(), velocity=there.velocity.tolist()),
            self.now,
            self.now,
        )
        self.state = states.of(PANDA)

    def take(self, message: JointTrajectory, now: int) -> None:
        names, points, start = given(message)
        self.controller.take(names, points, start, now)

    def way(self, message: JointTrajectory) -> np.ndarray:
        """Where the controller has the joints each ms, from when it gets a motion."""
        before = self.controller.state(self.now + 2 * MS).position
        self.take(message, self.now + 2 * MS)
        times = self.now + MS * np.arange(3, 700)
        return np.array([before, *(self.controller.state(int(time)).position for time in times)])


def step(way: np.ndarray) -> float:
    """The largest velocity, in shares of the limits."""
    return float((np.abs(np.diff(way, axis=0)) / 1e-3 / LIMITS.velocity[INDEX]).max())


def controller(slider: float = 1.0) -> SimulatedController:
    return SimulatedController(ARM, PANDA.default_q[INDEX], speed_scaling=slider)


@pytest.mark.parametrize("way", [5 * MS, 25 * MS])
def test_a_robot_whose_motion_began_when_it_came_does_not_jump(way: int) -> None:
    one, other = Leaves(controller(), 0.0, way), Leaves(controller(), 0.0, way)
    before = step(one.way(one.message))
    assert before > 3.0, "nothing is to be mended"
    after = step(other.way(joined(other.message, other.running, other.state, other.now)))
    assert after < 0.3 * before


def test_a_robot_that_is_in_its_motion_gets_all_of_the_next() -> None:
    world = Leaves(controller(), 0.0)
    assert joined(world.message, world.running, world.state, world.now) is world.message


@pytest.mark.parametrize("behind", [0.005, 0.03])
def test_a_robot_whose_drives_lag_gets_all_of_the_next(behind: float) -> None:
    """By default a joint_trajectory_controller goes to its first point from where the robot is measured."""
    world = Leaves(controller(), behind)
    assert joined(world.message, world.running, world.state, world.now) is world.message


@pytest.mark.parametrize("way", [5 * MS, 25 * MS])
def test_a_controller_that_is_in_time_does_what_was_verified(way: int) -> None:
    one, other = Leaves(controller(), 0.0), Leaves(controller(), 0.0)
    late = Leaves(controller(), 0.0, way)
    message = joined(late.message, late.running, late.state, late.now)
    assert message is not late.message
    assert np.abs(one.way(one.message) - other.way(message)).max() < 1.2e-3


def test_the_end_of_a_motion_that_is_over_sooner_is_joined_as_slowly() -> None:
    world = Leaves(controller(), 0.0, 20 * MS)
    world.message.points = world.message.points[:2]
    end = world.message.points[-1]
    first, *_, last = 2 * joined(world.message, world.running, world.state, world.now).points
    np.testing.assert_allclose(last.positions, end.positions, atol=1e-12)
    stamp = world.message.header.stamp.sec * 10**9 + world.message.header.stamp.nanosec
    later = stamp + first.time_from_start.sec * 10**9 + first.time_from_start.nanosec - world.now
    assert 20 * MS < later <= 1e9


def test_of_a_controller_that_was_handed_its_motion_nobody_knows_where_it_is() -> None:
    world = Leaves(controller(), 0.0, 20 * MS)
    handed = Published(world.running.message, PANDA, BEGIN, SimpleNamespace(over=False))
    assert joined(world.message, handed, world.state, world.now) is world.message
