"""One owner of the robot, without a node."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from geometry_msgs.msg import PoseStamped
from support.looks import Trusting, Unwatched
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.errors import EnvironmentChangedError, KinoptError
from kinopt_ros.ros.motion.controllers import unheard
from kinopt_ros.ros.motion.output import (
    ClosedError,
    EmergencyStopError,
    InactiveError,
    MotionOutput,
    UnheardError,
)
from kinopt_ros.ros.requests.timeouts import DeadlinePassedError, check_in_time
from kinopt_ros.ros.topics.emergency_stop import EmergencyStop
from kinopt_ros.ros.topics.target_pose import TargetPoseTopic
from kinopt_ros.status import Status

ROBOT: Any = None
UNASKED: Any = SimpleNamespace(loaded=SimpleNamespace(model=None), goes_on=False, stops=False)
"""What motions were planned for, where nobody checks it."""


class Published:
    """Stand-in for a publisher."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def publish(self, message: Any) -> None:
        self.messages.append(message)


def test_the_newest_owner_publishes_and_the_one_before_is_told() -> None:
    topic, lost = Published(), []
    output = MotionOutput(topic, Trusting())
    first = output.claim("first", lambda owner: lost.append(("first", owner)))
    second = output.claim("second", lambda owner: lost.append(("second", owner)))
    assert lost == [("first", "second")]
    assert not first.publish(JointTrajectory(), UNASKED)
    first.give_up()  # what it does not have any more
    assert second.holds
    assert second.publish(JointTrajectory(joint_names=["a"]), UNASKED)
    assert not second.publish(JointTrajectory(), UNASKED)  # used up
    assert [message.joint_names for message in topic.messages] == [["a"]]
    third = output.claim("third", lambda owner: lost.append(("third", owner)))
    assert lost == [("first", "second")]  # who has published loses nothing
    third.give_up()
    assert not third.publish(JointTrajectory(), UNASKED)
    output.claim("fourth", lambda owner: None)
    assert lost == [("first", "second")]


def test_a_kept_right_lasts_until_somebody_else_asks() -> None:
    topic, lost = Published(), []
    output = MotionOutput(topic, Trusting(), lambda: 7)
    claim = output.claim("first", lost.append)
    stamped = JointTrajectory(joint_names=["a"])
    stamped.header.stamp.nanosec = 5
    assert claim.publish(stamped, UNASKED, keep=True)
    assert [motion.start for motion in output.published] == [5]
    assert claim.publish(JointTrajectory(joint_names=["a"]), UNASKED, keep=True)
    assert [motion.start for motion in output.published] == [7]  # without a stamp it begins when it comes
    output.claim("second", lost.append)
    assert lost == ["second"]
    assert not claim.publish(JointTrajectory(), UNASKED, keep=True)
    assert len(topic.messages) == 2


@pytest.mark.parametrize("stops", [False, True])
def test_a_stop_of_who_has_the_right_is_known_as_one(stops: bool) -> None:
    """Servo sends its own."""
    output = MotionOutput(Published(), Trusting(), lambda: 7)
    planned: Any = SimpleNamespace(**{**vars(UNASKED), "stops": stops})
    assert output.claim("servo", lambda owner: None).publish(
        JointTrajectory(joint_names=["a"]), planned, keep=True
    )
    [one] = output.published
    assert one.stops is stops


def test_a_right_that_waits_is_taken_with_the_first_motion_that_may_be_sent() -> None:
    topic, lost = Published(), []
    refusals: list[KinoptError] = [EnvironmentChangedError("something is in the way")]

    class Look(Trusting):
        def send(self, planned: Any, message: Any, published: Any, send: Any) -> bool:
            if refusals:
                raise refusals.pop()
            return super().send(planned, message, published, send)

    output = MotionOutput(topic, Look(), lambda: 7)
    message = JointTrajectory(joint_names=["a"])
    first = output.claim("first", lambda owner: lost.append(("first", owner)))
    second = output.claim("second", lambda owner: lost.append(("second", owner)), at_once=False)
    with pytest.raises(EnvironmentChangedError):
        second.publish(message, UNASKED, keep=True)
    assert not second.publish(message, UNASKED, keep=True, agreed=lambda: False)
    assert (lost, first.holds, second.holds) == ([], True, False)
    output.halt("a stop", lasting=False)
    stopped = output.claim("third", lambda owner: None)
    with pytest.raises(EmergencyStopError, match="since this motion was asked for"):
        output.claim("fourth", lambda owner: None, stops=0, at_once=False)
    assert second.publish(message, UNASKED, keep=True)
    assert (stopped.holds, second.holds) == (False, True)
    assert second.publish(message, UNASKED, keep=True)
    output.claim("fifth", lambda owner: None)
    assert lost[-1] == ("second", "fifth")
    assert not second.publish(message, UNASKED, keep=True)
    given_up = output.claim("sixth", lambda owner: None, at_once=False)
    given_up.give_up()
    assert not given_up.publish(message, UNASKED)


def test_a_right_is_taken_from_somebody_only_after_a_look() -> None:
    lost: list[str] = []
    checked: list[str] = []
    output = MotionOutput(Published(), Trusting())

    def refuse() -> None:
        raise EnvironmentChangedError("it would be for nothing")

    first = output.claim("first", lost.append, joints=["a"], check=refuse)  # there is nobody to take it from
    assert first.holds
    for joints in (["a", "b"], None):
        with pytest.raises(EnvironmentChangedError):
            output.claim("second", lost.append, joints=joints, check=refuse)
    assert first.holds
    assert not lost
    assert output.claim("second", lost.append, joints=["b"], check=refuse).holds
    third = output.claim("third", lost.append, joints=["a"], check=lambda: checked.append("third"))
    assert (third.holds, first.holds) == (True, False)
    assert (lost, checked) == (["third"], ["third"])
    output.halt("a stop")
    with pytest.raises(EmergencyStopError):
        output.claim("fourth", lost.append, joints=["c"], check=refuse)


def test_a_motion_without_a_stamp_gets_one_where_its_begin_is_known() -> None:
    """Who leaves it half way has to know when it began: the node does not hear when it comes to the controller."""
    topic = Published()
    begins: list[int | None] = [3_000_000_007, None]
    output = MotionOutput(topic, Trusting(), lambda: 7, begin=lambda message, robot: begins.pop(0))
    for stamp, starts in (((0, 0), 3_000_000_007), ((0, 5), 5), ((0, 0), 7)):
        message = JointTrajectory(joint_names=["a"])
        message.header.stamp.sec, message.header.stamp.nanosec = stamp
        assert output.claim("somebody", lambda owner: None).publish(message, UNASKED)
        assert [motion.start for motion in output.published] == [starts]
    stamps = [(m.header.stamp.sec, m.header.stamp.nanosec) for m in topic.messages]
    assert stamps == [(3, 7), (0, 5), (0, 0)]


@pytest.mark.parametrize("way", ["publish", "hand_over"])
def test_a_right_is_for_its_joints_alone(way: str) -> None:
    """A goal that was asked for before a new description had the right of the old joints, and moved others, of which
    somebody else had it."""
    topic = Published()
    output = MotionOutput(topic, Trusting(), lambda: 7)
    output.claim("another", lambda owner: None, joints=["b"])
    claim = output.claim("somebody", lambda owner: None, joints=["a"])
    rest = [lambda: pytest.fail("it was sent")] if way == "hand_over" else []
    with pytest.raises(EnvironmentChangedError, match="moves b, which"):
        getattr(claim, way)(JointTrajectory(joint_names=["a", "b"]), UNASKED, *rest)
    assert not topic.messages
    assert claim.publish(JointTrajectory(joint_names=["a"]), UNASKED)


def test_motions_of_different_joints_are_known_beside_each_other() -> None:
    output = MotionOutput(Published(), Trusting(), lambda: 7)
    claim = output.claim("somebody", lambda owner: None)
    for joints in (["a", "b"], ["c"], ["d"], ["b", "c"]):
        assert claim.publish(JointTrajectory(joint_names=joints), UNASKED, keep=True)
    assert [motion.message.joint_names for motion in output.published] == [["d"], ["b", "c"]]


def test_a_motion_that_a_controller_does_is_known_until_another_one_moves_its_joints() -> None:
    now = 7
    output = MotionOutput(Published(), Trusting(), lambda: now)
    claim = output.claim("somebody", lambda owner: None)
    controller = SimpleNamespace(over=False)
    assert claim.publish(JointTrajectory(joint_names=["a", "b"]), UNASKED, keep=True)
    assert not output.runs
    assert claim.hand_over(JointTrajectory(joint_names=["b"]), UNASKED, lambda: controller)
    assert [motion.execution for motion in output.published] == [controller]
    assert output.runs
    controller.over = True
    assert not output.runs


def test_a_motion_that_is_handed_over_begins_after_its_lead() -> None:
    output = MotionOutput(Published(), Trusting(), lambda: 7)
    claim = output.claim("somebody", lambda owner: None)
    message = JointTrajectory(joint_names=["b"])
    assert claim.hand_over(message, UNASKED, lambda: SimpleNamespace(over=False), 5)
    assert output.published[0].start == 12


@pytest.mark.parametrize("way", ["publish", "hand_over", "brake", "stop"])
def test_a_motion_begins_when_it_is_sent_however_long_that_takes(way: str) -> None:
    """Who sends it waits for Python's lock then, 40 ms on a busy machine: what left the motion was 0.05 rad off."""
    now = [0]

    def take(*message: Any) -> Any:
        now[0] += 1000
        return SimpleNamespace(over=False)

    output = MotionOutput(SimpleNamespace(publish=take), Trusting(), lambda: now[0])
    claim = output.claim("somebody", lambda owner: None)
    message = JointTrajectory(joint_names=["a"], points=[JointTrajectoryPoint(), JointTrajectoryPoint()])
    now[0] = 7
    if way == "hand_over":
        assert claim.hand_over(message, UNASKED, take)
    else:
        assert claim.publish(message, UNASKED)
    if way == "brake":
        now[0] = 7
        assert output.brake(output.published[0], message, lambda begun: None)
    elif way == "stop":
        now[0] = 7
        assert output.halt("the emergency stop").publish(message, ROBOT)
    assert [motion.start for motion in output.published] == [7]


def test_motions_of_another_robot_are_forgotten_when_they_are_over() -> None:
    output = MotionOutput(Published(), Trusting(), lambda: 7)
    claim = output.claim("somebody", lambda owner: None)
    assert claim.publish(JointTrajectory(joint_names=["a"]), UNASKED, keep=True)
    another: Any = SimpleNamespace(loaded=SimpleNamespace(model="another"), goes_on=False, stops=False)
    assert claim.publish(JointTrajectory(joint_names=["b"]), another, keep=True)
    assert [motion.message.joint_names for motion in output.published] == [["b"]]


def test_an_emergency_stop_has_the_last_motion_until_it_is_over() -> None:
    topic, lost = Published(), []
    output = MotionOutput(topic, Trusting())
    running = output.claim("servo", lost.append)
    stop = output.halt("the emergency stop")
    assert lost == ["the emergency stop"]
    assert not running.publish(JointTrajectory(), UNASKED)
    with pytest.raises(EmergencyStopError, match="~/emergency_stop"):
        output.claim("~/target_pose", lost.append)
    assert stop.publish(JointTrajectory(joint_names=["stop"]), ROBOT)
    assert stop.publish(JointTrajectory(joint_names=["other joints"]), ROBOT)
    stop.give_up()
    assert not stop.publish(JointTrajectory(), ROBOT)
    assert [message.joint_names for message in topic.messages] == [["stop"], ["other joints"]]
    output.release()
    assert output.claim("~/target_pose", lost.append).publish(JointTrajectory(), UNASKED)


def test_rights_of_different_joints_stand_beside_each_other() -> None:
    lost: list[tuple[str, str]] = []
    output = MotionOutput(Published(), Trusting())

    def claim(name: str, joints: list[str] | None) -> Any:
        return output.claim(name, lambda owner: lost.append((name, owner)), joints=joints)

    arm, hand = claim("arm", ["a", "b"]), claim("hand", ["c"])
    assert not lost
    assert arm.holds
    other = claim("other", ["b", "c"])
    assert sorted(lost) == [("arm", "other"), ("hand", "other")]
    assert not arm.holds
    assert not hand.holds
    claim("all", None)
    assert lost[-1] == ("other", "all")
    assert not other.holds


def test_a_brake_is_of_the_motion_that_runs_and_of_no_other() -> None:
    topic = Published()
    output = MotionOutput(topic, Trusting(), lambda: 7)
    points = [JointTrajectoryPoint(positions=[float(k)]) for k in range(2)]
    first = JointTrajectory(joint_names=["a"], points=points)
    claim = output.claim("somebody", lambda owner: None)
    assert claim.hand_over(first, UNASKED, lambda: SimpleNamespace(over=False))
    [running] = output.published
    sent: list[Any] = []

    def send(message: Any) -> Any:
        sent.append(message)
        return SimpleNamespace(over=True)

    assert output.brake(running, JointTrajectory(joint_names=["a"], points=points), send)
    assert [list(message.points[0].positions) for message in sent] == [[1.0]]  # from wherever the joint is
    assert not output.runs
    assert not output.brake(running, first, send)  # another one has its place
    [braking] = output.published
    output.halt("the emergency stop")
    assert not output.brake(braking, first, send)
    assert len(sent) == 1
    assert not topic.messages


def test_whoever_hands_a_motion_over_keeps_the_right() -> None:
    topic, lost, sent = Published(), [], []
    output = MotionOutput(topic, Trusting())
    claim = output.claim("first", lost.append)
    assert claim.hand_over(JointTrajectory(), UNASKED, lambda: sent.append("yes"))
    assert claim.holds
    output.claim("second", lost.append)
    assert lost == ["second"]
    assert not claim.hand_over(JointTrajectory(), UNASKED, lambda: sent.append("late"))
    assert (sent, topic.messages) == (["yes"], [])


def test_a_motion_that_is_not_valid_any_more_is_not_sent() -> None:
    class Strict:
        def send(self, planned: Any, message: Any, published: Any, send: Any) -> bool:
            raise KinoptError("changed")

    topic = Published()
    claim = MotionOutput(topic, Strict()).claim("first", lambda owner: None)
    for attempt in (
        lambda: claim.publish(JointTrajectory(), UNASKED),
        lambda: claim.hand_over(JointTrajectory(), UNASKED, lambda: topic.publish("handed over")),
    ):
        with pytest.raises(KinoptError, match="changed"):
            attempt()
    assert not topic.messages
    assert claim.holds  # who asked may plan again


def test_nothing_moves_while_the_output_is_closed() -> None:
    output = MotionOutput(Published(), Trusting())
    running = output.claim("first", lambda owner: None)
    output.close(ClosedError("the node ends"))
    with pytest.raises(ClosedError, match="the node ends"):
        output.claim("second", lambda owner: None)
    assert running.holds
    output.release()  # that is for emergencies
    with pytest.raises(ClosedError):
        output.claim("second", lambda owner: None)
    output.open()
    assert output.claim("second", lambda owner: None).holds


def test_time_that_is_up_before_the_turn() -> None:
    check_in_time(0.9, 1.0)
    with pytest.raises(DeadlinePassedError, match="waited"):
        check_in_time(1.0, 1.0)


class Unprepared:
    """A robot for which nothing is prepared."""

    def __init__(self) -> None:
        self.pool = self
        self.asked = threading.Event()

    def must_wait(self, collisions: bool, motions: bool, until: float) -> bool:
        self.asked.set()
        return time.monotonic() < until


class Unready(TargetPoseTopic):
    """~/target_pose of a robot that is being prepared."""

    def __init__(self, output: MotionOutput) -> None:
        self.reports: list[Any] = []
        self.robot: Any = Unprepared()
        self.planned = threading.Event()
        context: Any = self
        super().__init__(context, output, Unwatched(), SimpleNamespace(publish=self.reports.append))

    # In place of its context.

    node = SimpleNamespace(get_logger=lambda: SimpleNamespace(warning=lambda sentence: None))

    @property
    def loaded(self) -> Any:
        return self.robot

    def parameter(self, name: str) -> Any:
        return {"ik.timeout": 60.0, "ik.avoid_collisions": True}[name]

    def _read(self, target: Any, report: Any) -> Any:
        del target, report

    def _plan(self, target: Any, report: Any, deadline: float, lead: int) -> Any:
        self.planned.set()


def test_a_target_waits_no_longer_when_somebody_else_has_the_robot() -> None:
    output = MotionOutput(Published(), Trusting())
    topic = Unready(output)
    topic.take(PoseStamped(), None)
    assert topic.robot.asked.wait(30.0)
    output.halt("the emergency stop")
    topic._worker.shutdown()
    (report,) = topic.reports
    assert report.status.code == Status.PREEMPTED
    assert "the emergency stop came later" in report.status.message
    assert report.wall_time < 30.0


def test_what_was_asked_for_before_an_emergency_stop_moves_nothing_after_its_end() -> None:
    output = MotionOutput(Published(), Trusting())
    before = output.stops
    output.halt("the emergency stop")
    output.release()
    with pytest.raises(EmergencyStopError, match="since this motion was asked for"):
        output.claim("somebody", lambda owner: None, before)
    assert output.claim("somebody", lambda owner: None, output.stops).holds


def test_a_target_that_waited_through_an_emergency_stop_is_dropped() -> None:
    output = MotionOutput(Published(), Trusting())
    topic = Unready(output)
    topic.take(PoseStamped(), None)
    assert topic.robot.asked.wait(30.0)
    topic.take(PoseStamped(), None)  # it waits for the one before
    topic.robot.must_wait = lambda *given: False
    with topic._lock:  # the worker takes it when both are over
        output.halt("the emergency stop")
        output.release()
    topic._worker.shutdown()
    first, second = topic.reports
    assert first.status.code == Status.PREEMPTED
    assert second.status.code == Status.EMERGENCY_STOP


def test_a_target_that_lay_unread_through_an_emergency_stop_is_dropped() -> None:
    """A request of 100,000 poses kept the executor from reading it for 2 s: the robot moved after the stop's end."""
    output = MotionOutput(Published(), Trusting())
    came = time.time_ns() - 10**9
    output.halt("the emergency stop")
    output.release()
    topic = Unready(output)
    topic.robot.must_wait = lambda *given: False
    topic.take(PoseStamped(), {"received_timestamp": came})
    topic._worker.shutdown()
    (report,) = topic.reports
    assert report.status.code == Status.EMERGENCY_STOP
    assert not topic.planned.is_set()


@pytest.mark.parametrize("info", [None, {"received_timestamp": 0}, {"received_timestamp": 2**62}])
def test_a_target_of_which_nobody_says_when_it_came_comes_now(info: Any) -> None:
    output = MotionOutput(Published(), Trusting())
    output.halt("the emergency stop")
    output.release()
    topic = Unready(output)
    topic.robot.must_wait = lambda *given: False
    topic.take(PoseStamped(), info)
    topic._worker.shutdown()
    assert topic.planned.is_set()


def test_what_came_before_a_stop_is_of_before_it_however_late_it_is_read() -> None:
    output = MotionOutput(Published(), Trusting())
    assert output.stops_before(3.0) == 0
    output.halt("the emergency stop")
    output.halt("the emergency stop")
    assert output.stops_before(0.0) == output.stops == 2
    assert output.stops_before(3.0) != 2


def test_a_target_that_came_before_an_activation_moves_nothing_after_it() -> None:
    """Activated right behind it, the node moved the robot by 0.4 rad."""
    output = MotionOutput(Published(), Trusting())
    topic = Unready(output)
    topic.robot.must_wait = lambda *given: False
    output.close(InactiveError("the node is not active"))
    turn = threading.Event()
    topic._worker.submit(turn.wait)
    topic.take(PoseStamped(), None)
    output.open()
    turn.set()
    topic._worker.shutdown()
    assert not topic.planned.is_set()
    assert [report.status.code for report in topic.reports] == [Status.NOT_READY]


def test_a_stop_tells_controllers_whose_goals_have_lost_the_robot() -> None:
    """Such a goal was cancelled, but the controller may have refused that."""
    told: list[bool] = []
    output = MotionOutput(Published(), Trusting())
    stop = EmergencyStop(
        UNASKED, output, lambda stopped, sentence: None, lambda: ["/arm/follow"], lambda: told.append(True)
    )
    stop.stop_all("the emergency stop")
    assert told == [True]


def test_a_target_waits_for_the_robot_that_is_in_service() -> None:
    topic = Unready(MotionOutput(Published(), Trusting()))
    topic.take(PoseStamped(), None)
    assert topic.robot.asked.wait(30.0)
    before, topic.robot = topic.robot, Unprepared()
    before.must_wait = lambda *given: False
    assert topic.robot.asked.wait(30.0)
    assert not topic.planned.is_set()
    topic.robot.must_wait = lambda *given: False
    topic._worker.shutdown()
    assert topic.planned.is_set()


def test_an_emergency_stop_says_which_controllers_were_told() -> None:
    output = MotionOutput(Published(), Trusting())
    running = ["/arm/follow"]
    claim = output.claim("a goal", lambda owner: running.clear())
    stop = EmergencyStop(UNASKED, output, lambda stopped, sentence: None, lambda: list(running), lambda: None)
    assert stop.stop_all("the emergency stop") == "the controller /arm/follow was told to stop"
    assert not claim.holds
    assert stop.stop_all("the emergency stop") == ""


def test_a_stop_stops_even_if_an_owner_cannot_be_told(capfd: pytest.CaptureFixture[str]) -> None:
    topic = Published()
    output = MotionOutput(topic, Trusting())

    def fails(owner: str) -> None:
        raise RuntimeError(f"no way to tell of {owner}")

    output.claim("a goal", fails)
    assert output.halt("the emergency stop").publish(JointTrajectory(joint_names=["a"]), ROBOT)
    assert output.halted
    assert len(topic.messages) == 1
    assert "no way to tell of the emergency stop" in capfd.readouterr().err


def test_what_nobody_would_do_is_no_success() -> None:
    sent: list[Any] = []
    why = ["nobody listens"]
    topic: Any = SimpleNamespace(publish=sent.append)
    output = MotionOutput(topic, Trusting(), unheard=lambda: why[0])
    claim = output.claim("first", lambda owner: None)
    with pytest.raises(UnheardError, match="nobody listens"):
        claim.publish(JointTrajectory(), UNASKED)
    assert not sent
    why[0] = ""
    assert claim.publish(JointTrajectory(), UNASKED)


@pytest.mark.parametrize(
    ("listeners", "parameter", "said"), [(1, "controllers", False), (0, "controllers", True), (0, "", False)]
)
def test_controllers_hear_actions_alone(listeners: int, parameter: str, said: bool) -> None:
    publisher: Any = SimpleNamespace(
        get_subscription_count=lambda: listeners, topic_name="/kinopt/joint_trajectory"
    )
    context: Any = SimpleNamespace(parameter=lambda name: ["arm=arm"] if name == parameter else [])
    assert bool(unheard(context, publisher)) is said
