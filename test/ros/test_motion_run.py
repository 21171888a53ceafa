"""One motion from the gate to its end, and controllers that do not do what they should; without a node."""

from __future__ import annotations

from collections.abc import Callable
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
from kinopt_ros.ros.motion import run
from kinopt_ros.ros.motion.controller_hand_over import ControllerError
from kinopt_ros.ros.motion.controllers import ChosenControllers
from kinopt_ros.ros.motion.last_look import PlannedFor
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.rights import Claim
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.robot.controller_names import groups_of_controllers
from kinopt_ros.ros.robot.joint_states import JointStates
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

    def wait(self) -> None:
        """It is there."""

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

    def __init__(self, controllers: dict[str, Any], step: float = 1e-3) -> None:
        self.now = 10**15
        self._step = round(1e9 * step)
        self.joint_states = JointStates()
        self.scene: Any = None
        self.loaded: Any = SimpleNamespace(model=PANDA, pool=None)
        logger = SimpleNamespace(error=lambda text, **options: None, warning=lambda text, **options: None)
        self.node: Any = SimpleNamespace(
            get_clock=lambda: SimpleNamespace(now=self._look), get_logger=lambda: logger
        )
        names, position = list(PANDA.variable_names), PANDA.default_q.tolist()
        self.joint_states.update(SimpleNamespace(name=names, position=position, velocity=[]), 0, 0)
        self.output = MotionOutput(None, Trusting(), lambda: self.now)
        context: Any = self
        self.chosen = ChosenControllers(controllers, WORDS, context)
        self.run = MotionRun(context, self.output, self.chosen)

    def _look(self) -> Any:
        self.now += self._step
        return SimpleNamespace(nanoseconds=self.now)

    def parameter(self, name: str) -> Any:
        return {"servo.state_timeout": 1e6, "servo.tracking_tolerance": 0.05, "controller_joints": []}[name]

    def claim(self, joints: tuple[str, ...] = ARM) -> Claim:
        return self.output.claim("somebody", self.run.lost, joints=joints)

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


def test_a_motion_that_the_controller_has_done() -> None:
    controller = Controller("succeeds")
    world = World({"arm": controller, "hand": Controller()})
    assert world.do(world.claim()).code == Status.SUCCESS
    assert len(controller.sent) == 1


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
    assert [len(one.sent) for one in (arm, hand)] == [2, 2]
    assert len(arm.sent[1].points) == 1  # from wherever it is to rest


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
    with pytest.raises(ControllerError, match="none of the controllers hand moves panda_joint2"):
        chosen.split(message, PANDA, PANDA.default_q, ["hand"])
    with pytest.raises(ControllerError, match="unknown controller 'leg'"):
        chosen.split(message, PANDA, PANDA.default_q, ["leg"])


@pytest.mark.parametrize("words", [["arm"], ["=panda_arm"], ["arm="], ["arm=a", "arm=b"]])
def test_words_that_name_no_controllers(words: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match="controller"):
        groups_of_controllers(words)
