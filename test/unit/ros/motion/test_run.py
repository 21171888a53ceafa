"""One motion that controllers do: whatever happens, it is not left to itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from support.looks import Trusting
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.motion import run as module
from kinopt_ros.ros.motion import sure_stop
from kinopt_ros.ros.motion.controller_kinds import FOLLOWS, ControllerError
from kinopt_ros.ros.motion.controllers import Controllers, Part, SeveralExecutions
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.status import Status

PATIENCE = 30.0
ROBOT = (
    '<robot name="arm"><link name="base"/><link name="tip"/><joint name="a" type="continuous"><parent link="base"/>'
    '<child link="tip"/><limit velocity="1" effort="1"/></joint></robot>'
)


@pytest.fixture(autouse=True)
def _nobody_asks_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The robot of these tests has no joints to measure."""
    monkeypatch.setattr(module, "missed", lambda *given: "")


class Execution:
    """A motion that a controller has taken and does not end, unless it is told to."""

    def __init__(self, message: Any, ended: Callable[[bool, str], None]) -> None:
        self._ended = ended
        self.message = message
        self.over, self.is_taken = False, True
        self.refuses = self.says = False
        """Whether it does not stop when it is told to, and whether it says that it does."""
        self.cancelled = threading.Event()

    @property
    def stops(self) -> bool:
        return self.over or self.says

    def cancel(self) -> None:
        self.cancelled.set()
        if not (self.over or self.refuses):
            self.over = True
            self._ended(False, "cancelled")


class Controller:
    """Takes all motions."""

    kind, name = FOLLOWS, "arm"

    def __init__(self) -> None:
        self.taken: list[Execution] = []
        self.has_one = threading.Event()

    def send(self, message: Any, ended: Callable[[bool, str], None]) -> Execution:
        self.taken.append(Execution(message, ended))
        self.has_one.set()
        return self.taken[-1]

    def brake(self, running: Execution, brake: Any, ended: Callable[[bool, str], None]) -> Execution:
        return self.send(brake, ended)


class World:
    """A motion of one joint that a controller does on a thread of its own, of a robot that stands."""

    def __init__(self) -> None:
        self.controller = Controller()
        robot = robot_from_urdf(ROBOT)
        self.errors: list[str] = []
        states = JointStates()
        states.update(SimpleNamespace(name=["a"], position=[0.0], velocity=[0.0]), 0, 0)
        self.state = replace(states.of(robot), age=np.zeros(1), velocity=np.zeros(1))
        """Tests change its arrays."""
        self.keeps = 0.0
        """Share of its pace that the joint keeps when it is told to stop; where it is told by then counts."""
        log = SimpleNamespace(error=self.errors.append)
        context: Any = SimpleNamespace(
            node=SimpleNamespace(get_logger=lambda: log),
            now=time.monotonic_ns,
            joint_states=SimpleNamespace(of=self.measured),
            sets_back=lambda: False,
            parameter=lambda name: {
                "controller_joints": [],
                "arrival_tolerance": 0.1,
                "start_delay": 0.0,
                "servo.state_timeout": 0.5,
            }[name],
        )
        chosen: Any = SimpleNamespace(
            split=lambda message, *given: [Part(self.controller, message)],  # type: ignore[arg-type]
            wait=lambda parts: None,
        )
        self.output = MotionOutput(SimpleNamespace(publish=lambda message: None), Trusting())
        self.run = MotionRun(context, self.output, chosen)
        claim = self.output.claim("somebody", self.run.lost, joints=["a"])
        planned: Any = SimpleNamespace(
            loaded=SimpleNamespace(model=robot), scene=None, q=np.zeros(1), goes_on=False, stops=False
        )
        self.ends: list[Any] = []
        self.thread = threading.Thread(
            target=lambda: self.ends.append(self.run.run(claim, motion(60), planned)), daemon=True
        )

    def measured(self, robot: Any) -> Any:
        """Measure the joint."""
        if self.output.halted:
            at = self.keeps * (time.monotonic_ns() - self.output.published[0].start) / 1e9
            return replace(self.state, q=np.array([at]))
        return self.state

    def begin(self) -> Execution:
        self.thread.start()
        assert self.controller.has_one.wait(PATIENCE)
        return self.controller.taken[0]

    def end(self) -> Any:
        self.thread.join(PATIENCE)
        assert self.ends, "the motion has no end"
        return self.ends[0]


def braked_by(monkeypatch: pytest.MonkeyPatch, brake_of: Callable[..., JointTrajectory]) -> None:
    """Have brakes be made otherwise."""
    for where in (module, sure_stop):
        monkeypatch.setattr(where, "brake_of", brake_of)


def be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for robots to stand for a moment alone."""
    monkeypatch.setattr(module, "REST_SECONDS", 0.05)
    monkeypatch.setattr(sure_stop, "WATCHED_SECONDS", 0.3)


def motion(seconds: int) -> JointTrajectory:
    """Move at 1 rad/s."""
    begin, end = (
        JointTrajectoryPoint(positions=[float(at)], velocities=[1.0], accelerations=[0.0])
        for at in (0, seconds)
    )
    end.time_from_start.sec = seconds
    return JointTrajectory(joint_names=["a"], points=[begin, end])


def test_a_motion_that_was_sent_just_before_an_emergency_stop_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who stops all has looked for moving controllers before it was handed over, and tells none of them."""
    braked_by(monkeypatch, lambda context, running: motion(0))
    world = World()
    execution = world.begin()
    world.output.halt("the emergency stop")
    assert execution.cancelled.wait(PATIENCE)
    assert world.end().code == Status.PREEMPTED
    assert len(world.controller.taken) == 1


@pytest.mark.parametrize(
    "then",
    [
        "goes on",
        "says that it stops and goes on",
        "says that it stops and for long goes on",
        "says that it stops and brakes",
        "stops late",
        "nobody says where it is",
        "another motion comes",
    ],
)
def test_a_controller_that_does_not_stop_for_an_emergency_gets_a_brake(
    monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """A cancel had it brake, and an emergency stop let it go on to its goal."""
    braked_by(monkeypatch, lambda context, running: motion(1))
    monkeypatch.setattr(
        sure_stop, "STOPS_SECONDS", PATIENCE if then in ("stops late", "another motion comes") else 0.02
    )
    be_impatient(monkeypatch)
    if then.endswith("goes on"):
        monkeypatch.setattr(sure_stop, "WATCHED_SECONDS", PATIENCE)
    world = World()
    execution = world.begin()
    execution.refuses = True
    execution.says = then.startswith("says")
    if execution.says and then.endswith("goes on"):
        world.state.velocity[:] = 1.0
        world.keeps = 0.5 if "for long" in then else 1.0
    if then == "nobody says where it is":
        world.state.age[:] = 1.0
    world.output.halt("the emergency stop")
    assert execution.cancelled.wait(PATIENCE)
    if then == "stops late":
        execution.over = True
    elif then == "another motion comes":
        world.output.release()
        world.output._published = ()
    assert world.end().code == Status.PREEMPTED
    if then.endswith("goes on"):
        _, brake = world.controller.taken
        assert not brake.cancelled.is_set()
        # From wherever the robot is by then.
        assert [point.time_from_start.sec for point in brake.message.points] == [1]
        assert "the controller arm did not stop the motion within" in world.errors[0]
        world.controller.taken[1]._ended(False, "the goal is refused")
        assert world.errors[-1] == "a brake was not done: the goal is refused"
    else:
        assert len(world.controller.taken) == 1


def test_a_brake_is_for_those_alone_that_do_not_stop() -> None:
    """An arm that stood was sent on by up to 0.06 rad, as the brake was made for both."""
    stops, goes_on = Controller(), Controller()
    several = SeveralExecutions(lambda done, sentence: None)
    parts = [Part(one, JointTrajectory(joint_names=[name])) for one, name in ((stops, "a"), (goes_on, "b"))]  # type: ignore[arg-type]
    several.send(parts)
    stops.taken[0].over = True
    asked: list[str] = []

    def made(joints: Any) -> JointTrajectory | None:
        asked.extend(joints)
        return None if len(asked) == 1 else motion(1)

    def ended(done: bool, sentence: str) -> None:
        pass

    assert several.brake_rest(made, lambda joints: False, ended) == ()  # nobody knew where it was
    assert not several.settled
    assert several.brake_rest(made, lambda joints: False, ended) == ("arm",)
    assert several.settled
    assert several.brake_rest(made, lambda joints: False, ended) == ()
    assert asked == ["b", "b"]
    assert [len(one.taken) for one in (stops, goes_on)] == [1, 2]


def test_who_ends_while_a_brake_is_made_is_sent_none() -> None:
    """A fault of all drives ends all controllers, one some milliseconds after the other: that arm was sent on."""
    controllers = [Controller(), Controller()]
    several = SeveralExecutions(lambda done, sentence: None)
    several.send(
        [Part(one, JointTrajectory(joint_names=[name])) for one, name in zip(controllers, "ab", strict=True)]  # type: ignore[arg-type]
    )
    controllers[0].taken[0].over = True
    assert several.moving == ["b"]
    controllers[1].taken[0].over = True
    brake = several.brake(JointTrajectory(joint_names=["b"]), lambda done, sentence: None)
    assert brake.over
    assert [len(one.taken) for one in controllers] == [1, 1]


def test_who_says_that_it_stops_while_its_brake_is_made_is_sent_none() -> None:
    """An arm that stood by then was sent on by 14 mrad."""
    arm = Controller()
    several = SeveralExecutions(lambda done, sentence: None)
    several.send([Part(arm, JointTrajectory(joint_names=["a"]))])  # type: ignore[arg-type]

    def made(joints: Any) -> JointTrajectory:
        arm.taken[0].over = True
        return motion(1)

    assert several.brake_rest(made, lambda joints: False, lambda done, sentence: None) == ()
    assert len(arm.taken) == 1


def test_a_stop_that_comes_while_a_brake_is_made_has_it_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()

    def brake_of(context: Any, running: Any) -> JointTrajectory:
        world.output.halt("the emergency stop")
        return motion(1)

    braked_by(monkeypatch, brake_of)
    monkeypatch.setattr(sure_stop, "STOPS_SECONDS", 0.02)
    monkeypatch.setattr(module, "REST_SECONDS", 0.05)
    world.begin().refuses = True
    world.run.stop(Status.PREEMPTED, "the goal was cancelled")
    assert world.end().code == Status.PREEMPTED
    _, brake = world.controller.taken
    assert [point.time_from_start.sec for point in brake.message.points] == [1]


def test_a_motion_whose_brake_cannot_be_made_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(context: Any, running: Any) -> Any:
        raise InvalidRequestError("the parameters have changed")

    braked_by(monkeypatch, fails)
    world = World()
    execution = world.begin()
    world.run.stop(Status.PREEMPTED, "the goal was cancelled")
    assert world.end().code == Status.PREEMPTED
    assert execution.cancelled.is_set()


def test_a_brake_that_a_controller_never_ends_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    braked_by(monkeypatch, lambda context, running: motion(0))
    monkeypatch.setattr(module, "SETTLE_SECONDS", 0.1)
    world = World()
    world.begin()
    world.run.stop(Status.PREEMPTED, "the goal was cancelled")
    assert world.end().code == Status.PREEMPTED
    first, brake = world.controller.taken
    assert brake.cancelled.is_set()
    assert first.cancelled.is_set()


def test_a_published_motion_that_nobody_can_watch_is_braked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect left it to itself: there is no controller to be told."""
    braked_by(monkeypatch, lambda context, running: motion(0))

    def fails(self: MotionRun, running: Any, planned: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(MotionRun, "_watch", fails)
    world = World()
    world.run._chosen = None
    world.thread.start()
    assert world.end().code == Status.FAILURE
    (published,) = world.output.published
    assert published.message.points[-1].time_from_start.sec == 0


@pytest.mark.parametrize(("age", "said"), [(0.1, "still moves"), (3.0, "is not known")])
def test_a_robot_of_which_nothing_is_heard_is_not_said_to_move(
    monkeypatch: pytest.MonkeyPatch, age: float, said: str
) -> None:
    """At the node's end the last joint states were of the motion: the log said that the robot went on moving."""
    monkeypatch.setattr(module, "REST_SECONDS", 0.05 if age > 1.0 else 0.5)
    braked_by(monkeypatch, lambda context, running: motion(0))
    world = World()
    world.begin()
    world.state.velocity[:], world.state.age[:] = 1.0, age
    world.output.halt("somebody")
    world.end()
    [error] = world.errors
    assert said in error


def test_a_robot_that_stands_is_not_said_to_move_where_its_controller_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A controller that was started anew amid a motion never ends it."""
    monkeypatch.setattr(module, "REST_SECONDS", 0.05)
    world = World()
    execution = world.begin()
    [running] = world.output.published
    world.state.age[:] = 0.01
    assert world.run.wait_until_still(running)
    [error] = world.errors
    assert "the robot stands" in error
    execution.over = True
    execution._ended(True, "")
    world.end()


@pytest.mark.parametrize("late", ["moves", "nothing new"])
def test_a_motion_ends_when_joint_states_say_so_too(monkeypatch: pytest.MonkeyPatch, late: str) -> None:
    """Whoever planned from what was measured at the end of a motion got one that begins in its middle."""
    world = World()
    execution = world.begin()
    if late == "moves":
        world.state.velocity[:] = 1.0
    else:
        world.state.age[:] = 10.0
    slept = threading.Event()

    def sleep(seconds: float) -> None:
        slept.set()
        time.sleep(seconds)

    monkeypatch.setattr(module, "REST_SECONDS", 2.0 * PATIENCE)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    execution.over = True
    execution._ended(True, "")
    assert slept.wait(PATIENCE)
    assert not world.ends
    world.state.velocity[:], world.state.age[:] = 0.0, 0.0
    assert world.end().code == Status.SUCCESS
    assert not world.errors


def test_controllers_that_are_named_and_that_nobody_knows_are_refused() -> None:
    world = World()
    world.run._chosen = None
    claim = world.output.claim("somebody", lambda owner: None, joints=["b"])
    status = world.run.run(claim, motion(1), SimpleNamespace(), ["arm_controller"])  # type: ignore[arg-type]
    assert status.code == Status.INVALID_REQUEST
    assert "arm_controller" in status.message
    assert not world.output.published


def test_two_parameters_that_name_controllers_are_refused() -> None:
    given = {"controller_action": "/arm", "controllers": ("arm_controller=arm",)}
    context: Any = SimpleNamespace(parameter=given.get)
    with pytest.raises(ControllerError, match="controller_action and controllers both"):
        Controllers(context, None).chosen()  # type: ignore[arg-type]


@pytest.mark.parametrize("moved_by_us", [False, True])
def test_joints_that_another_motion_has_just_left_are_waited_for(
    monkeypatch: pytest.MonkeyPatch, moved_by_us: bool
) -> None:
    """Goals for a hand right after one for the arm were refused: joint states still said that the arm moves."""
    world = World()
    robot: Any = SimpleNamespace(
        variable_index={"a": 0, "b": 1},
        limits=SimpleNamespace(velocity=np.ones(2)),
        variable_names=("a", "b"),
        joint_by_name={"a": None, "b": None},
    )
    state = SimpleNamespace(seen_velocity=np.array([0.0, 0.3]), known=np.ones(2, dtype=np.bool_))
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            state.seen_velocity[1] = 0.0

    running: Any = SimpleNamespace(runs=lambda now: True, message=SimpleNamespace(joint_names=["b"]))
    context: Any = SimpleNamespace(
        loaded=SimpleNamespace(model=robot),
        joint_states=SimpleNamespace(of=lambda robot: state),
        sets_back=lambda: False,
        node=world.run._context.node,
        now=world.run._context.now,
    )
    output: Any = SimpleNamespace(
        is_executed=lambda joints: False, published=[running] if moved_by_us else []
    )
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=sleep))
    MotionRun(context, output, None).wait_for_rest(["a"])
    assert len(looks) == (0 if moved_by_us else 3)
