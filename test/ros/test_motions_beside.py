"""Two arms that move at the same time: a motion begins beside another one only where the two cannot meet; no node."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.scene_holders import serving
from support.two_pandas import LEFT, PANDAS, RIGHT, START
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.ros.messages.conversions import trajectory_from_message, trajectory_message
from kinopt_ros.ros.motion.in_the_way import InTheWay
from kinopt_ros.ros.motion.last_look import LastLook, PlannedFor
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.status import Status

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)  # on a new machine a compiler is at work

Q = PANDAS.default_q.copy()
for _name, _value in START.items():
    Q[PANDAS.variable_index[_name]] = _value
"""Where the robot begins, rad or m."""
NOW = 10**15
"""Time of the node's clock, ns; it stands still."""


def to(**goal: float) -> JointTrajectory:
    """A motion of one arm from Q."""
    q = Q.copy()
    for name, value in goal.items():
        q[PANDAS.variable_index[name]] = value
    joints = LEFT if next(iter(goal)).startswith("left") else RIGHT
    planned = plan_joint_motion(PANDAS, joints, Q, np.zeros(PANDAS.nq), q, 0.5, 0.5)
    return trajectory_message(planned.trajectory, "world")


OUTWARDS, INWARDS = {"left_joint1": 0.8}, {"left_joint1": -0.5}
"""Ways of the left arm, which stands on the positive side of y."""


class World:
    """The two arms, of which the left one is in a motion that a controller does."""

    def __init__(self, message: JointTrajectory, share: float = 0.5) -> None:
        self.scene = serving(PANDAS)
        self.joint_states = JointStates()
        self.loaded: Any = SimpleNamespace(model=PANDAS, pool=None)
        quiet = SimpleNamespace(warning=lambda text, **options: None, error=pytest.fail)
        self.node: Any = SimpleNamespace(get_logger=lambda: quiet)
        self.now = lambda: NOW
        motion = trajectory_from_message(message)
        row = int(share * (len(motion.time) - 1))
        start = NOW - round(1e9 * float(motion.time[row]))
        self.running = Published(message, PANDAS, start, SimpleNamespace(over=False))
        self.published: tuple[Published, ...] = (self.running,)
        self.q, self.velocity = Q.copy(), np.zeros(PANDAS.nq)
        self.moving = [PANDAS.variable_index[name] for name in motion.joint_names]
        self.q[self.moving], self.velocity[self.moving] = motion.position[row], motion.velocity[row]
        self.measured()

    def measured(self) -> None:
        names = list(PANDAS.variable_names)
        message = SimpleNamespace(name=names, position=self.q.tolist(), velocity=self.velocity.tolist())
        self.joint_states.update(message, NOW, NOW)

    def parameter(self, name: str) -> Any:
        return {"state_timeout": 1e6}[name]

    def send(
        self, message: JointTrajectory, published: Callable[[], Any] | None = None, **options: Any
    ) -> bool:
        """Send a motion of the right arm that was planned while the left one was a little before."""
        planned = PlannedFor(self.loaded, self.q - 0.05 * self.velocity, self.scene.of(PANDAS), **options)
        planned.q[[PANDAS.variable_index[name] for name in RIGHT]] = Q[
            [PANDAS.variable_index[name] for name in RIGHT]
        ]
        look: Any = LastLook(self)  # type: ignore[arg-type]
        return bool(look.send(planned, message, published or (lambda: self.published), lambda: True))


def test_a_motion_begins_beside_one_that_it_cannot_meet() -> None:
    world = World(to(**OUTWARDS))
    assert world.send(to(right_joint1=-0.8))


def test_a_motion_does_not_begin_beside_one_that_it_may_meet() -> None:
    """Even where the other one would have gone by then, if it is in time."""
    world = World(to(**INWARDS))
    with pytest.raises(StartStateError, match=r"'left_joint1'.*must not meet, but '\w+' may come within"):
        world.send(to(right_joint1=0.5))
    assert world.send(to(right_joint1=-0.8))


def test_what_is_left_of_a_motion_counts_and_what_is_over_does_not() -> None:
    """From the inner end outwards: at its begin it is in the way of the right arm, at its end it is not."""
    there = trajectory_from_message(to(**INWARDS))
    back = trajectory_message(
        type(there)(
            there.joint_names,
            there.time,
            there.position[::-1].copy(),
            -there.velocity[::-1],
            there.acceleration[::-1].copy(),
        ),
        "world",
    )
    for share, free in ((0.0, False), (0.95, True)):
        world = World(back, share)
        if free:
            assert world.send(to(right_joint1=0.5))
        else:
            with pytest.raises(StartStateError, match="must not meet"):
                world.send(to(right_joint1=0.5))


def test_a_robot_that_is_not_in_its_motion_may_be_anywhere() -> None:
    world = World(to(**OUTWARDS))
    world.q[PANDAS.variable_index["left_joint4"]] += 0.2
    world.measured()
    with pytest.raises(
        StartStateError, match=r"'left_joint4' is 0\.2 from the motion .* nobody knows where it goes"
    ):
        world.send(to(right_joint1=-0.8))


def test_motions_that_go_on_from_one_another_stay_alone() -> None:
    world = World(to(**OUTWARDS))
    servo = Published(
        world.running.message, PANDAS, world.running.start, world.running.execution, goes_on=True
    )
    with pytest.raises(StartStateError, match="checked with the robot at rest"):
        world.send(to(right_joint1=-0.8), lambda: (servo,))
    with pytest.raises(StartStateError, match="checked with the robot at rest"):
        world.send(to(right_joint1=-0.8), goes_on=True)


def test_a_motion_that_takes_the_place_of_another_meanwhile_is_looked_at_too() -> None:
    world = World(to(**OUTWARDS))
    inwards = World(to(**INWARDS), 0.0).running
    asked = 0

    def published() -> tuple[Published, ...]:
        nonlocal asked
        asked += 1
        return (world.running,) if asked < 3 else (inwards,)

    world.q, world.velocity = Q.copy(), np.zeros(PANDAS.nq)
    world.measured()
    with pytest.raises(StartStateError, match="must not meet"):
        world.send(to(right_joint1=0.5), published)


@pytest.mark.parametrize(("goal", "stops"), [(OUTWARDS, False), (INWARDS, True)])
def test_a_brake_of_the_other_arm_that_leads_into_the_way_stops_this_one(
    goal: dict[str, float], stops: bool
) -> None:
    world = World(to(right_joint1=0.5), 0.0)
    context: Any = world
    brake = Published(to(**goal), PANDAS, NOW, SimpleNamespace(over=False))
    output: Any = SimpleNamespace(published=(world.running,))
    planned = PlannedFor(world.loaded, Q, world.scene.of(PANDAS))
    stopped: list[Status] = []
    way = InTheWay(
        context, output, world.running, planned, None, lambda status, sentence: stopped.append(status)
    )
    output.published = (world.running, brake)
    way.look()
    assert stopped == stops * [Status.ENVIRONMENT_CHANGED]
