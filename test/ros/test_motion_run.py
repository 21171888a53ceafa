"""One motion from the gate to its end, and controllers that do not do what they should; without a node."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.looks import Trusting
from trajectory_msgs.msg import JointTrajectory

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.motion import published_end, run
from kinopt_ros.ros.motion.brakes import commanded_of
from kinopt_ros.ros.motion.controller_kinds import FOLLOWS, NoControllerError
from kinopt_ros.ros.motion.controllers import ChosenControllers, commanded
from kinopt_ros.ros.motion.in_the_way import InTheWay
from kinopt_ros.ros.motion.last_look import LastLook, PlannedFor
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.motion.rights import Claim
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.robot.controller_names import groups_of_controllers
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.rviz.execution import Executions, ShownMotion
from kinopt_ros.status import Status

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
WORDS = ("arm=panda_arm", "hand=hand")


class Controller:
    """A hand-over whose controller does what a test wants with each motion in turn."""

    def __init__(self, *does: str) -> None:
        """Of each motion: ``succeeds``, ``fails``, ``refuses`` or ``goes on``."""
        self._does = list(does)
        self.sent: list[Any] = []
        self.cancelled: list[Any] = []

    kind = FOLLOWS

    def wait(self) -> None:
        """It is there."""

    def brake(self, running: Any, brake: Any, ended: Callable[[bool, str], None]) -> Any:
        """It goes on with a brake as with a motion."""
        return self.send(brake, ended)

    def send(self, message: Any, ended: Callable[[bool, str], None]) -> Any:
        does = self._does[len(self.sent)]
        self.sent.append(message)
        execution = SimpleNamespace(over=False, is_taken=does != "is silent", cancel=lambda: None)

        def cancel() -> None:
            if not execution.over:
                self.cancelled.append(message)
                execution.over = True
                ended(False, "cancelled")

        execution.cancel = cancel
        if does in ("succeeds", "fails"):
            execution.over = True
            ended(does == "succeeds", "" if does == "succeeds" else "too far off")
        return execution


class World:
    """A Panda at rest, and a clock that passes by some time with each look at it."""

    def __init__(
        self, controllers: dict[str, Any], step: float = 1e-3, words: tuple[str, ...] | None = WORDS
    ) -> None:
        """``words``: as ``ChosenControllers`` gets them."""
        self.at = 10**15
        self.controller_joints: list[str] = []
        self.arrival_tolerance = 0.1
        self._step = round(1e9 * step)
        self.joint_states = JointStates()
        self.scene: Any = None
        self.loaded: Any = SimpleNamespace(model=PANDA, pool=None)
        logger = SimpleNamespace(error=lambda text, **options: None, warning=lambda text, **options: None)
        self.node: Any = SimpleNamespace(get_logger=lambda: logger)
        names, position = list(PANDA.variable_names), PANDA.default_q.tolist()
        self.joint_states.update(SimpleNamespace(name=names, position=position, velocity=[]), 0, 0)
        self.output = MotionOutput(None, Trusting(), lambda: self.at)
        context: Any = self
        self.chosen = ChosenControllers(controllers, words, context)
        self.run = MotionRun(context, self.output, self.chosen)

    def now(self) -> int:
        self.at += self._step
        return self.at

    def parameter(self, name: str) -> Any:
        return {
            "servo.state_timeout": 1e6,
            "start_delay": 0.0,
            "servo.tracking_tolerance": 0.05,
            "arrival_tolerance": self.arrival_tolerance,
            "state_timeout": 1e6,
            "controller_joints": self.controller_joints,
        }[name]

    def measure_again(self) -> None:
        """Have the robot measured whenever somebody looks, where it was."""
        states, robot = self.joint_states, PANDA
        now = SimpleNamespace(name=list(robot.variable_names), position=robot.default_q.tolist(), velocity=[])

        def of(robot: Any) -> Any:
            states.update(now, 0, 0)
            return states.of(robot)

        self.joint_states = SimpleNamespace(of=of)  # type: ignore[assignment]

    def claim(self, joints: tuple[str, ...] = ARM) -> Claim:
        """The right to move some joints, as goals ask for it."""
        context: Any = self
        return self.output.claim(
            "somebody", self.run.lost, joints=commanded(context, self.run._chosen, joints)
        )

    def do(self, claim: Claim, joints: tuple[str, ...] = ARM) -> Any:
        goal = PANDA.default_q.copy()
        goal[[PANDA.variable_index[joints[0]]]] += 0.01
        planned = plan_joint_motion(PANDA, joints, PANDA.default_q, np.zeros(PANDA.nq), goal, 0.5, 0.5)
        message = trajectory_message(planned.trajectory, "panda_link0")
        return self.run.run(claim, message, PlannedFor(self.loaded, PANDA.default_q, None))


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LOOK_SECONDS", 1e-4)
    monkeypatch.setattr(run, "BRAKE_SECONDS", 0.05)
    monkeypatch.setattr(run, "REST_SECONDS", 0.05)  # joint states of these robots come once, and are old


def test_a_motion_that_the_controller_has_done() -> None:
    controller = Controller("succeeds")
    world = World({"arm": controller, "hand": Controller()})
    assert world.do(world.claim()).code == Status.SUCCESS
    assert len(controller.sent) == 1


def test_a_controller_that_says_to_have_done_what_the_robot_has_not() -> None:
    """Drives are off, or the arm is held: many controllers say that they are done when the time is over."""
    world = World({"arm": Controller("succeeds"), "hand": Controller()})
    world.arrival_tolerance = 0.005
    world.measure_again()
    failed = world.do(world.claim())
    assert failed.code == Status.CONTROL_FAILED
    assert "'panda_joint1' is at" in failed.message
    assert "allowed is a difference of 0.005 (parameter arrival_tolerance)" in failed.message


def test_an_end_of_which_nothing_is_heard_is_said_to_be_unknown() -> None:
    world = World({"arm": Controller("succeeds"), "hand": Controller()})
    world.arrival_tolerance = 0.005
    done = world.do(world.claim())
    assert done.code == Status.SUCCESS
    assert "whether the robot is there is not known" in done.message


def test_what_a_gripper_holds_keeps_it_from_its_end() -> None:
    world = World({"arm": Controller(), "hand": Controller("succeeds")})
    world.arrival_tolerance = 0.005
    world.measure_again()
    finger = ("panda_finger_joint1",)
    assert world.do(world.claim(finger), finger).code == Status.SUCCESS


def test_a_motion_of_which_nobody_has_the_right_any_more_is_no_success() -> None:
    controller = Controller("succeeds")
    world = World({"arm": controller, "hand": Controller()})
    claim = world.claim()
    claim.give_up()
    assert world.do(claim).code == Status.PREEMPTED
    assert not controller.sent


def test_a_controller_that_fails() -> None:
    world = World({"arm": Controller("fails"), "hand": Controller()})
    status = world.do(world.claim())
    assert (status.code, status.message) == (Status.CONTROL_FAILED, "too far off")


def test_a_controller_that_fails_has_the_others_brake() -> None:
    arm, hand = Controller("goes on", "succeeds"), Controller("fails", "succeeds")
    world = World({"arm": arm, "hand": hand})
    joints = (*ARM, "panda_finger_joint1")
    status = world.do(world.claim(joints), joints)
    assert status.code == Status.CONTROL_FAILED
    assert [len(one.sent) for one in (arm, hand)] == [2, 1]  # who has failed stands for a reason
    assert len(arm.sent[1].points) == 1  # from wherever it is to rest
    assert list(arm.sent[1].joint_names) == list(ARM)


def test_a_motion_that_takes_too_long_is_stopped() -> None:
    controller = Controller("goes on", "succeeds")
    world = World({"arm": controller, "hand": Controller()}, step=0.05)
    assert world.do(world.claim()).code == Status.TIMED_OUT
    assert len(controller.sent) == 2
    assert controller.cancelled == controller.sent[:1]  # if the brake has not taken its place


@pytest.mark.parametrize("does", ["fails", "is silent"])
def test_a_controller_that_does_not_take_the_brake_is_told_to_stop(does: str) -> None:
    controller = Controller("goes on", does)
    world = World({"arm": controller, "hand": Controller()}, step=0.05)
    assert world.do(world.claim()).code == Status.TIMED_OUT
    assert controller.sent[0] in controller.cancelled


def test_a_motion_that_was_stopped_before_is_not_sent() -> None:
    controller = Controller("succeeds")
    world = World({"arm": controller, "hand": Controller()})
    world.run.stop(Status.PREEMPTED, "the goal was cancelled")
    status = world.do(world.claim())
    assert (status.code, status.message) == (Status.PREEMPTED, "the goal was cancelled")
    assert not controller.sent


def test_motions_are_split_among_controllers() -> None:
    arm, hand = Controller(), Controller()
    chosen = World({"arm": arm, "hand": hand}).chosen
    message = JointTrajectory(joint_names=["panda_finger_joint1", "panda_joint2"])
    parts = chosen.split(message, PANDA, PANDA.default_q)
    assert [(part.controller, list(part.message.joint_names)) for part in parts] == [
        (arm, list(ARM)),
        (hand, ["panda_finger_joint1"]),
    ]
    with pytest.raises(NoControllerError, match="none of the controllers hand moves panda_joint2"):
        chosen.split(message, PANDA, PANDA.default_q, ["hand"])
    with pytest.raises(NoControllerError, match="unknown controller 'leg'"):
        chosen.split(message, PANDA, PANDA.default_q, ["leg"])


def test_two_controllers_that_command_the_same_joint_are_refused() -> None:
    """One would hold what the other holds, too, and each motion would name it twice."""
    groups = {
        name: replace(PANDA.group("panda_arm"), name=name, joints=ARM[k : k + 2])
        for k, name in enumerate("ab")
    }
    robot = replace(PANDA, groups=groups)
    chosen = World({"one": Controller(), "other": Controller()}, words=("one=a", "other=b")).chosen
    assert len(chosen.split(JointTrajectory(joint_names=[ARM[0]]), robot, robot.default_q)) == 1
    with pytest.raises(NoControllerError, match="two controllers move panda_joint2"):
        chosen.split(JointTrajectory(joint_names=[ARM[0], ARM[2]]), robot, robot.default_q)


@pytest.mark.parametrize("words", [["arm"], ["=panda_arm"], ["arm="], ["arm=a", "arm=b"]])
def test_words_that_name_no_controllers(words: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="controller"):
        groups_of_controllers(words)


WHOLE = ("whole=panda_arm_hand",)
"""One controller of all joints: a motion of some of them tells it to hold the others."""
FINGER = ("panda_finger_joint1",)


@pytest.mark.parametrize(
    ("words", "order"),
    [(WHOLE, []), (None, [*ARM, *FINGER]), (None, [])],
    ids=["several", "one", "any joints"],
)
def test_motions_of_one_controller_are_done_one_after_the_other(
    words: tuple[str, ...] | None, order: list[str]
) -> None:
    """The controller drops the motion before, and its joints were thrown back to where they had been measured."""
    world = World({"whole": Controller("goes on", "succeeds")}, words=words)
    world.controller_joints = order
    world.claim()
    assert not world.run.stopped
    world.claim(FINGER)
    assert world.run.stopped


@pytest.mark.parametrize("words", [WHOLE, None], ids=["several", "one"])
def test_joints_that_a_controller_holds_are_looked_at_as_those_that_it_moves(
    words: tuple[str, ...] | None,
) -> None:
    controller = Controller("goes on", "succeeds")
    world = World({"whole": controller}, step=0.05, words=words)
    world.controller_joints = [] if words else [*ARM, *FINGER]
    context: Any = world
    world.output._look = LastLook(context)
    world.do(world.claim(FINGER), FINGER)
    [braked] = world.output.published  # as its controller did not end it
    assert sorted(braked.message.joint_names) == sorted([*ARM, *FINGER])
    assert [sorted(sent.joint_names) for sent in controller.sent] == 2 * [sorted([*ARM, *FINGER])]
    q = PANDA.default_q.copy()
    q[3] += 0.2  # it has been moved since the motion was planned
    names = list(PANDA.variable_names)
    world.joint_states = JointStates()
    world.joint_states.update(SimpleNamespace(name=names, position=q.tolist(), velocity=[]), 0, 0)
    world.run = MotionRun(context, world.output, world.chosen)
    status = world.do(world.claim(FINGER), FINGER)
    assert status.code == Status.START_STATE_INVALID, status.message
    assert "'panda_joint4'" in status.message
    assert len(controller.sent) == 2


@pytest.mark.parametrize("words", [("arm=panda_arm", *WHOLE), None], ids=["several", "one"])
def test_a_motion_is_braked_by_the_controllers_that_do_it(words: tuple[str, ...] | None) -> None:
    """Its joints, with those that are held, would be divided in another way: among more controllers, or as a parameter
    says by now. There was no brake then, and the controller stopped as it likes."""
    arm, whole = Controller(), Controller("goes on", "succeeds")
    world = World({"arm": arm, "whole": whole} if words else {"whole": whole}, step=0.05, words=words)
    world.controller_joints = [] if words else [*ARM, *FINGER]
    claim = world.claim(FINGER)
    does = whole.send

    def send(*given: Any) -> Any:
        world.controller_joints = [*FINGER]
        return does(*given)

    whole.send = send  # type: ignore[method-assign]
    assert world.do(claim, FINGER).code == Status.TIMED_OUT
    assert [sorted(sent.joint_names) for sent in whole.sent] == 2 * [sorted([*ARM, *FINGER])]
    assert len(whole.sent[1].points) == 1
    assert not arm.sent


def test_a_motion_of_a_marker_leaves_other_controllers_alone() -> None:
    """Parameter controller_joints is of published motions: what another controller did was ended to hold its joints."""
    arm, hand = Controller("succeeds"), Controller()
    world = World({"arm": arm, "hand": hand})
    world.controller_joints = [*ARM, *FINGER]
    lost: list[str] = []
    world.output.claim("somebody", lost.append, joints=FINGER)
    goal = PANDA.default_q.copy()
    goal[0] += 0.01
    planned = plan_joint_motion(PANDA, ARM, PANDA.default_q, np.zeros(PANDA.nq), goal, 0.5, 0.5)
    problem = SimpleNamespace(start=PANDA.default_q, scene=None, clearance=0.0)
    asked: Any = SimpleNamespace(loaded=world.loaded, problem=problem)
    context: Any = world
    controllers: Any = SimpleNamespace(chosen=lambda: world.chosen, needed_by=lambda asks: None)
    executions = Executions(context, world.output, controllers)
    ends: queue.SimpleQueue[Any] = queue.SimpleQueue()
    shown = ShownMotion(trajectory_message(planned.trajectory, "panda_link0"), asked)
    executions.begin(shown, ends.put, world.output.stops)
    assert ends.get(timeout=60.0).code == Status.SUCCESS
    executions.close()
    assert not lost
    assert not hand.sent
    assert [list(sent.joint_names) for sent in arm.sent] == [list(ARM)]


def test_what_is_published_has_all_joints_of_the_parameter() -> None:
    world = Publishing()
    world.controller_joints = [*ARM, *FINGER]
    running = world.send()
    assert list(running.message.joint_names) == [*ARM, *FINGER]
    assert world.messages == [running.message]
    context: Any = world
    assert commanded(context, None, FINGER) == [*ARM, *FINGER]


class Publishing(World):
    """A node without controllers, whose robot is to turn joint 1 by a radian."""

    def __init__(self) -> None:
        super().__init__({})
        self.messages: list[Any] = []
        self.output = MotionOutput(SimpleNamespace(publish=self.messages.append), Trusting(), lambda: self.at)
        context: Any = self
        self.run = MotionRun(context, self.output, None, judged=False)

    def message(self, turn: float = 1.0) -> JointTrajectory:
        goal = PANDA.default_q.copy()
        goal[0] += turn
        planned = plan_joint_motion(PANDA, ARM, PANDA.default_q, np.zeros(PANDA.nq), goal, 0.5, 0.5)
        return trajectory_message(planned.trajectory, "panda_link0")

    def send(self) -> Published:
        planned = PlannedFor(self.loaded, PANDA.default_q, None)
        assert self.run.send(self.claim(), self.message(), planned, keep=False)
        [running] = self.output.published
        return running

    def overtake(self) -> None:
        """Another motion takes the place of the one that runs."""
        claim = self.output.claim("another one", lambda owner: None, joints=ARM)
        assert claim.publish(self.message(-1.0), PlannedFor(self.loaded, PANDA.default_q, None))

    def measured(self, q: np.ndarray, velocity: float = 0.0) -> None:
        names = list(PANDA.variable_names)
        speeds = [velocity] * len(names)
        self.joint_states.update(SimpleNamespace(name=names, position=q.tolist(), velocity=speeds), 0, 0)


def along(running: Published, share: float) -> np.ndarray:
    """The configuration at a share of a motion's time."""
    motion = commanded_of(running)
    q = PANDA.default_q.copy()
    q[:7] = motion.at(round(running.start + share * (running.end - running.start))).position
    return q


def test_what_a_slow_controller_has_not_done_yet_is_left_of_a_motion() -> None:
    """What the motion should have done by now was not looked at, and the robot was still to go there."""
    world = Publishing()
    running = world.send()
    world.at = round(running.start + 0.8 * (running.end - running.start))
    world.measured(along(running, 0.8))
    planned = PlannedFor(world.loaded, PANDA.default_q, None)
    way = InTheWay(world.run._context, world.output, running, planned, None, world.run.stop)
    in_time = way.left().position[0, 0]
    world.measured(along(running, 0.3))
    slow = way.left().position[0, 0]
    assert slow <= along(running, 0.3)[0] < in_time
    assert slow >= along(running, 0.2)[0]
    elsewhere = along(running, 0.5)
    elsewhere[1] += 0.2  # beside its way: where it is nearest to
    world.measured(elsewhere)
    assert way.left().position[0, 0] <= elsewhere[0]


def test_a_published_motion_is_watched_as_long_as_its_robot_is_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(published_end, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    world = Publishing()
    running = world.send()
    world.at = running.end + 10**9
    for share in (0.5, 0.6, 0.7):
        world.measured(along(running, share))
        seconds[0] += 0.9 * published_end.LAG_SECONDS
        assert world.run._runs(running)
    seconds[0] += published_end.LAG_SECONDS / published_end.SLOWEST  # it has stopped there
    assert not world.run._runs(running)
    world.measured(along(running, 0.8))
    assert world.run._runs(running)
    end = along(running, 1.0)
    world.measured(end, 0.06)
    assert world.run._runs(running)  # it passes there
    seconds[0] += 2.0 * published_end.THERE_SECONDS
    assert not world.run._runs(running)
    world.measured(along(running, 0.9))
    assert world.run._runs(running)
    world.measured(end)
    assert not world.run._runs(running)


def test_a_motion_whose_place_another_one_has_taken_is_left_alone() -> None:
    world = Publishing()
    world.send()
    world.overtake()
    assert world.run.watch().code == Status.PREEMPTED
    assert len(world.messages) == 2


def test_what_another_motion_has_left_before_it_could_be_braked_is_not_braked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The newer motion would be replaced by a brake from the middle of the one before."""
    world = Publishing()
    world.send()

    def late(context: Any, running: Any) -> JointTrajectory:
        world.overtake()
        return world.message()

    monkeypatch.setattr(run, "brake_of", late)
    world.run.stop(Status.ENVIRONMENT_CHANGED, "a box has come")
    assert world.run.watch().code == Status.PREEMPTED
    assert len(world.messages) == 2


def test_a_goal_waits_for_the_end_of_a_published_motion_too() -> None:
    """Before a robot has begun to move, or when its brake is nearly over, it is measured to stand: a goal that came
    then was refused, as the robot was in a motion."""
    world = Publishing()
    running = world.send()
    assert world.at < running.end
    assert world.run.wait_for_rest(ARM, 60.0) > 0.0
    assert world.at >= running.end


def test_an_emergency_stop_is_not_followed_by_a_brake() -> None:
    world = Publishing()
    world.send()
    world.output.halt("the emergency stop")
    world.run.stop(Status.ENVIRONMENT_CHANGED, "a box has come")
    assert world.run.watch().code == Status.PREEMPTED
    assert len(world.messages) == 1


@pytest.mark.parametrize("when", ["before", "while it is sent"])
def test_a_motion_that_is_told_to_stop_before_anybody_watches_it_is_braked(when: str) -> None:
    controller = Controller("goes on", "succeeds")
    world = World({"arm": controller, "hand": Controller()})
    goal = PANDA.default_q.copy()
    goal[0] += 0.5
    motion = plan_joint_motion(PANDA, ARM, PANDA.default_q, np.zeros(PANDA.nq), goal, 0.5, 0.5)
    message = trajectory_message(motion.trajectory, "panda_link0")
    planned = PlannedFor(world.loaded, PANDA.default_q, None)
    canceller = threading.Thread(target=world.run.lost, args=("somebody else",))
    if when == "before":
        world.run.lost("somebody else")
    else:  # on another thread, as cancels come: it finds what is being sent
        send = controller.send

        def sending(*given: Any) -> Any:
            if not controller.sent:
                canceller.start()
            return send(*given)

        controller.send = sending  # type: ignore[method-assign]
    sent = world.run.send(world.claim(), message, planned)
    assert sent is (when != "before")
    if sent:
        canceller.join()
    assert world.run.watch().code == Status.PREEMPTED
    assert len(controller.sent) == (2 if sent else 0)


def test_a_part_of_a_motion_is_not_left_to_itself_when_another_one_cannot_be_sent() -> None:
    arm = Controller("goes on")
    world = World({"arm": arm, "hand": Controller()})  # the hand's fails: it knows no motion
    joints = (*ARM, "panda_finger_joint1")
    goal = PANDA.default_q.copy()
    goal[0] += 0.01
    motion = plan_joint_motion(PANDA, joints, PANDA.default_q, np.zeros(PANDA.nq), goal, 0.5, 0.5)
    message = trajectory_message(motion.trajectory, "panda_link0")
    with pytest.raises(IndexError):
        world.run.send(world.claim(joints), message, PlannedFor(world.loaded, PANDA.default_q, None))
    assert len(arm.cancelled) == len(arm.sent)
