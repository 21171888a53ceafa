"""What servo begins with, without a node: commands in time, and a robot as it was measured."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from support.looks import Trusting
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_msgs.msg import ServoStatus
from kinopt_ros.errors import StartStateError
from kinopt_ros.planning.servo.session import Session
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.planning.servo.velocity import Wanted
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.published import Published, not_begun_since
from kinopt_ros.ros.requests.command_pauses import CommandPauses
from kinopt_ros.ros.requests.servo_commands import TWIST
from kinopt_ros.ros.robot.joint_states import RobotState
from kinopt_ros.ros.robot.parameters import MOST_DELAY
from kinopt_ros.ros.topics.servo import ServoTopic
from kinopt_ros.status import Status
from kinopt_ros.trajectory.timing import point_to_point

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
SECOND = 10**9
SETUP = servo_setup(PANDA, "panda_link0", "panda_link8", ARM, start_tolerance=1e-3)


def test_a_command_from_before_time_was_set_back_holds_no_longer_than_others() -> None:
    """It came, then a simulation began anew, then servo read it: it must not hold until it is as late again."""
    servo: Any = ServoTopic.__new__(ServoTopic)
    servo._pauses, servo._command = CommandPauses(), None
    servo._now = lambda: 5 * SECOND
    servo._context = SimpleNamespace(parameter=lambda name: 0.1)
    setup = SimpleNamespace(base="panda_link0", robot=PANDA)
    state = SimpleNamespace(q=PANDA.default_q)
    servo._read(setup, state, TWIST, TwistStamped(), 1000 * SECOND, 0)
    assert servo._command.ends == 5 * SECOND + SECOND // 10


class Output:
    """Where motions are published: what was before, and the right to go on."""

    def __init__(self, *published: Published) -> None:
        self.published = published

    def claim(self, *given: Any, at_once: bool) -> Any:
        return SimpleNamespace(holds=False)

    def check_heard(self) -> None:
        pass


def beginning(output: Any) -> Any:
    """A servo about to begin."""
    servo: Any = ServoTopic.__new__(ServoTopic)
    servo._claim, servo._stops, servo._output, servo._takes = None, 0, output, 0
    servo._context = SimpleNamespace(parameter=lambda name: 0.05)
    return servo


def begin(state: RobotState, *published: Published) -> Session:
    """The session of servo that begins now."""
    servo = beginning(Output(*published))
    servo._begin(SETUP, state, 10 * SECOND)
    return servo._session


def measured(velocity: float) -> RobotState:
    n = len(PANDA.default_q)
    moving = np.zeros(n)
    moving[PANDA.variable_index["panda_joint3"]] = velocity
    return RobotState(
        PANDA.default_q.copy(),
        moving,
        np.ones(n, dtype=bool),
        np.zeros(n),
        np.zeros(n, dtype=np.int64),
        *np.zeros((2, n)),
    )


@pytest.mark.parametrize("velocity", [0.2, 50.0, -1e6, 1e13, 1e300])
def test_servo_does_not_begin_with_a_robot_that_somebody_else_moves(velocity: float) -> None:
    """Nobody knows what it does next: its controller would jump."""
    with pytest.raises(StartStateError, match="'panda_joint3' moves at a velocity"):
        begin(measured(velocity))
    session = begin(measured(0.05))  # as sensors tell of one at rest
    assert not session.goes_on
    for time in (10 * SECOND, session.commanded.end):
        np.testing.assert_array_equal(session.commanded.at(time).position, PANDA.default_q[:7])


@pytest.mark.parametrize("joints", [ARM, ("panda_finger_joint1",)])
def test_a_command_that_is_refused_ends_no_motion(joints: tuple[str, ...]) -> None:
    """A twist ended what a controller did before servo looked whether the robot stands."""
    now, lost = 10 * SECOND, []
    output = MotionOutput(SimpleNamespace(publish=lambda message: None), Trusting(), lambda: now, lambda: "")
    goal = output.claim("a goal", lost.append)
    there = JointTrajectoryPoint(positions=[0.0] * len(joints))
    message = JointTrajectory(joint_names=list(joints), points=[there])
    planned: Any = SimpleNamespace(loaded=SimpleNamespace(model=PANDA), goes_on=False, stops=False)
    assert goal.hand_over(message, planned, lambda: SimpleNamespace(over=False))
    servo = beginning(output)
    with pytest.raises(StartStateError, match=f"has sent before moves '{joints[0]}'"):
        servo._begin(SETUP, measured(0.0), now)
    output.brake(output.published[0], message, lambda brake: SimpleNamespace(over=True))
    with pytest.raises(StartStateError, match="'panda_joint3' moves at a velocity"):
        servo._begin(SETUP, measured(0.2), now)
    assert lost == []
    servo._begin(SETUP, measured(0.0), now)
    assert lost == []  # only what is sent ends a motion
    assert servo._claim.publish(message, planned, keep=True)
    assert lost == ["servo"]


def test_servo_begins_anew_if_somebody_else_moves_the_robot_before_it_does() -> None:
    """A stream of zeros sends nothing, so nobody takes a right from it; it went on from where the robot was no longer.
    Nor does it begin anew as long as nobody moves: simulated time may be a step behind for a moment."""
    output = Output()
    servo = beginning(output)
    servo._begin(SETUP, measured(0.0), 10 * SECOND)
    for waits in (True, False):
        servo._claim, output.published = SimpleNamespace(waits=waits), servo._before
        assert not servo._is_overtaken()
        output.published = (Published(JointTrajectory(), PANDA, 0),)
        assert servo._is_overtaken() is waits


def test_servo_ends_no_motion_of_others_by_a_command_that_is_refused_before_the_first_one() -> None:
    """It had begun with a motion of another one, and braked that."""
    said = []
    servo = beginning(Output())
    servo._end = lambda status, sentence: said.append(status)
    for waits in (True, False):
        servo._session, servo._claim = object(), SimpleNamespace(waits=waits)
        servo._refuse(StartStateError("it is elsewhere"))
        assert (servo._session is None) is waits  # else it brings the robot to rest
    assert said == [Status.START_STATE_INVALID] * 2


def test_servo_ends_the_motion_that_it_takes_over() -> None:
    """With a twist of zero, or one that nothing can be made of, the robot went on to where it was told to go before."""
    limits = (SETUP.limits.velocity, SETUP.limits.acceleration, SETUP.limits.jerk)
    before = point_to_point(ARM, PANDA.default_q[:7], PANDA.default_q[:7] + 1.0, *limits)
    message = trajectory_message(before, "panda_link0")
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(10 * SECOND - SECOND // 5, SECOND)
    one = Published(message, PANDA, 10 * SECOND - SECOND // 5)
    there = one.commanded(ARM)
    assert there is not None
    state = measured(0.0)
    now = there.at(10 * SECOND)
    state.q[:7], state.velocity[:7] = now.position, now.velocity
    session = begin(state, one)
    assert session.goes_on
    zero: Any = lambda *given: Wanted(np.zeros(7))  # noqa: E731
    step = session.advance(SETUP, 10 * SECOND, state.q, zero)
    assert step.motion is not None
    assert step.motion.report.ok
    assert step.commanded.end < there.end
    leave = step.commanded.leave
    np.testing.assert_allclose(step.commanded.at(leave).position, there.at(leave).position, atol=1e-9)
    np.testing.assert_allclose(step.commanded.at(leave).velocity, there.at(leave).velocity, atol=1e-7)
    session.accept(SETUP, step)
    assert session.advance(SETUP, 10 * SECOND + SECOND // 50, state.q, zero).motion is None


def test_servo_does_not_take_over_from_a_motion_without_a_stamp() -> None:
    """It began when its controller got it: what left it at a time of the node's clock set the robot on by 60 mrad."""
    limits = (SETUP.limits.velocity, SETUP.limits.acceleration, SETUP.limits.jerk)
    before = point_to_point(ARM, PANDA.default_q[:7], PANDA.default_q[:7] + 1.0, *limits)
    state = measured(0.0)
    for stamped in (True, False):
        message = trajectory_message(before, "panda_link0")
        start = 10 * SECOND - SECOND // 5
        if stamped:
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(start, SECOND)
        one = Published(message, PANDA, start)
        there = one.commanded(ARM)
        assert there is not None
        now = there.at(10 * SECOND)
        state.q[:7], state.velocity[:7] = now.position, now.velocity
        if stamped:
            assert begin(state, one).goes_on
        else:
            with pytest.raises(StartStateError, match="began when its controller got it"):
                begin(state, one)


@pytest.mark.parametrize(
    ("beside", "lead"),
    [(0.0, 0.0), (1e-3, 0.0277), (5e-3, 0.0620), (0.03, 0.1520), (None, 0.05)],
)
def test_servo_begins_when_the_controller_can_be_where_the_robot_is(
    beside: float | None, lead: float
) -> None:
    """Controllers hold joints where the motion before has ended, and gravity pulls them down from there: the command
    stepped by that in one period. Where a controller holds them otherwise, nobody knows, and start_delay counts."""
    sent: tuple[Published, ...] = ()
    if beside is not None:
        limits = (SETUP.limits.velocity, SETUP.limits.acceleration, SETUP.limits.jerk)
        held = PANDA.default_q[:7].copy()
        held[1] += beside
        before = point_to_point(ARM, held - 0.1, held, *limits)
        sent = (Published(trajectory_message(before, "panda_link0"), PANDA, SECOND),)
    session = begin(measured(0.0), *sent)
    wish: Any = lambda *given: Wanted(np.full(7, 0.1))  # noqa: E731
    step = session.advance(SETUP, 10 * SECOND, PANDA.default_q, wish)
    assert step.motion is not None
    assert step.commanded.start / SECOND - 10.0 == pytest.approx(lead, abs=1e-4)
    session.accept(SETUP, step)
    assert session.begins == step.commanded.start
    assert not step.motion.trajectory.velocity[0].any()


def test_servo_that_has_sent_nothing_yet_begins_later() -> None:
    """As long as what is wanted is in the way of something, say."""
    session = begin(measured(0.0))
    for now in (10.0, 10.2):
        step = session.advance(SETUP, round(now * SECOND), PANDA.default_q, None)
        assert step.motion is None
        session.accept(SETUP, step)
        assert session.commanded.start == round((now + 0.05) * SECOND)


def test_servo_that_has_sent_nothing_is_idle() -> None:
    """A target where the tool is already was reached at once, and servo went on for ever: it was to begin yet."""
    servo = beginning(Output())
    servo._command, servo._now = None, lambda: 10 * SECOND
    servo._begin(SETUP, measured(0.0), 10 * SECOND)
    step = servo._session.advance(SETUP, 10 * SECOND, PANDA.default_q, None)
    servo._session.accept(SETUP, step)
    assert servo._session.commanded.end > 10 * SECOND
    assert servo._state() == str(ServoStatus.IDLE)


def test_servo_begins_no_later_than_time_may_be_set_back() -> None:
    """The session was dropped, and began anew from its own first motion, which had not begun: 23 mrad in 1 ms."""
    servo = beginning(Output())
    servo._context = SimpleNamespace(parameter=lambda name: MOST_DELAY)
    servo._takes = SECOND // 100
    servo._begin(SETUP, measured(0.0), 10 * SECOND)
    step = servo._session.advance(SETUP, 10 * SECOND, PANDA.default_q, None)
    assert not_begun_since(step.commanded) <= 10 * SECOND


def sending(now: list[int], followed: int | None, *published: Published) -> Any:
    """A servo about to send its first motion."""
    servo: Any = ServoTopic.__new__(ServoTopic)
    servo._now = lambda: now[0]
    servo._closed = False
    servo._loaded = SimpleNamespace(model=PANDA)
    servo._followed, servo._output = followed, Output(*published)
    return servo


@pytest.mark.parametrize("replaced", [False, True])
def test_a_motion_that_was_replaced_by_a_brake_is_not_left(replaced: bool) -> None:
    """Who loses the joints brakes within milliseconds; the robot would jump from the brake to what leaves the other."""
    limits = (SETUP.limits.velocity, SETUP.limits.acceleration, SETUP.limits.jerk)
    before = point_to_point(ARM, PANDA.default_q[:7], PANDA.default_q[:7] + 1.0, *limits)
    message = trajectory_message(before, "panda_link0")
    there = Published(message, PANDA, 10 * SECOND + (SECOND // 10 if replaced else 0))
    servo = sending([10 * SECOND], 10 * SECOND, there)
    servo._claim = SimpleNamespace(publish=lambda message, planned, keep, agreed: agreed())
    sent = servo._send(SETUP, measured(0.0), message, True, 11 * SECOND)
    assert sent is not replaced


@pytest.mark.parametrize("late", [False, True])
def test_a_motion_is_not_sent_after_the_time_at_which_it_begins_to_move(late: bool) -> None:
    """The last look may take long, as where the scene has changed: a controller would begin in the midst of it."""
    now, sent = [10 * SECOND], []
    servo = sending(now, None)
    leave = now[0] + SETUP.period

    def publish(message: Any, planned: Any, keep: bool, agreed: Any) -> bool:
        now[0] += SETUP.period + 1 if late else SETUP.period // 2
        if agreed():
            sent.append(message)
        return bool(sent)

    servo._claim = SimpleNamespace(publish=publish)
    message = trajectory_message(begin(measured(0.0)).commanded.trajectory, "panda_link0")
    assert servo._send(SETUP, measured(0.0), message, False, leave) is not late
    assert len(sent) == (not late)


def test_who_loses_the_joints_is_told_when_the_motion_is_on_its_way() -> None:
    """Told before, a slow one made servo's first motion late, and the robot jumped to where it had got by then."""
    told: list[str] = []
    output = MotionOutput(
        SimpleNamespace(publish=lambda message: told.append("published")), Trusting(), lambda: 0, lambda: ""
    )
    output.claim("a goal", lambda owner: told.append(f"lost to {owner}"))
    message = JointTrajectory(joint_names=list(ARM), points=[JointTrajectoryPoint()])
    planned: Any = SimpleNamespace(loaded=SimpleNamespace(model=PANDA), goes_on=False, stops=False)
    assert output.claim("servo", lambda owner: None, at_once=False).publish(message, planned, keep=True)
    assert told == ["published", "lost to servo"]


def test_who_has_lost_the_joints_is_told_though_the_motion_could_not_be_sent() -> None:
    told: list[str] = []

    def publish(message: JointTrajectory) -> None:
        raise RuntimeError("the middleware is gone")

    def fails(owner: str) -> None:
        told.append(owner)
        raise ValueError("a defect")

    output = MotionOutput(SimpleNamespace(publish=publish), Trusting(), lambda: 0, lambda: "")
    output.claim("a goal", fails, joints=ARM[:3])
    output.claim("another goal", told.append, joints=ARM[3:])
    message = JointTrajectory(joint_names=list(ARM), points=[JointTrajectoryPoint()])
    planned: Any = SimpleNamespace(loaded=SimpleNamespace(model=PANDA), goes_on=False, stops=False)
    with pytest.raises(RuntimeError, match="middleware"):
        output.claim("servo", lambda owner: None, at_once=False).publish(message, planned, keep=True)
    assert told == ["servo", "servo"]
