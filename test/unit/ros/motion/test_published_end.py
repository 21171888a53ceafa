"""Whether fingers have done a published motion: nobody says so but joint states."""

from collections.abc import Sequence
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import pytest
from builtin_interfaces.msg import Duration
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.robot.srdf import apply_srdf
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.motion import published_end
from kinopt_ros.ros.motion.published import Published
from kinopt_ros.ros.motion.published_end import PublishedEnd
from kinopt_ros.ros.robot.joint_states import JointStates

JOINTS = ("arm", "left", "right")


def joint(name: str, kind: str, parent: str, upper: float) -> str:
    return (
        f'<link name="{name}_link"/><joint name="{name}" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{name}_link"/><axis xyz="0 0 1"/>'
        f'<limit lower="{-upper if kind == "revolute" else 0.0}" upper="{upper}" velocity="1" effort="1"/></joint>'
    )


ROBOT = apply_srdf(
    robot_from_urdf(
        '<robot name="r"><link name="base"/>'
        + joint("arm", "revolute", "base", 3.0)
        + joint("left", "prismatic", "arm_link", 0.04)
        + joint("right", "prismatic", "arm_link", 0.04)
        + "</robot>"
    ),
    '<robot name="r"><group name="arm"><joint name="arm"/></group>'
    '<group name="hand"><joint name="left"/><joint name="right"/></group>'
    '<end_effector name="hand" parent_link="arm_link" group="hand"/></robot>',
)


def ended(
    monkeypatch: pytest.MonkeyPatch,
    begin: Sequence[float],
    end: Sequence[float],
    measured: Sequence[float],
    sent_at: Sequence[float],
    *,
    by_way_of: Sequence[Sequence[float]] = (),
    stopped: bool = False,
) -> tuple[str, PublishedEnd, Published]:
    """Look at the end of a motion after which joints are measured somewhere; return why it has failed. ``stopped``:
    whether it is stopped after one look."""
    points = [
        JointTrajectoryPoint(
            positions=list(map(float, place)),
            velocities=[0.0] * 3,
            accelerations=[0.0] * 3,
            time_from_start=Duration(sec=second),
        )
        for second, place in enumerate((begin, *by_way_of, end))
    ]
    one = Published(JointTrajectory(joint_names=list(JOINTS), points=points), ROBOT, 0)
    states = JointStates()
    message = JointState(name=list(JOINTS), position=list(map(float, measured)), velocity=[0.0] * 3)
    states.update(message, 0, 0)
    context: Any = SimpleNamespace(
        joint_states=states,
        now=lambda: len(points) * 10**9,
        parameter={"state_timeout": 1e9, "arrival_tolerance": 0.1}.__getitem__,
    )
    q = ROBOT.default_q.copy()
    q[[ROBOT.variable_index[name] for name in JOINTS]] = sent_at
    times = repeat(0.0) if stopped else chain([0.0], repeat(1e6))
    monkeypatch.setattr(
        published_end, "time", SimpleNamespace(monotonic=lambda: next(times), sleep=lambda seconds: None)
    )
    looked = PublishedEnd(context, one, True, q)
    stops = chain([False], repeat(stopped))
    return looked.why_not_there(lambda: next(stops)), looked, one


OPEN, SHUT = (0.04, 0.04), (0.0, 0.0)


@pytest.mark.parametrize(
    ("arm", "end", "fingers", "fails"),
    [
        pytest.param((0.0, 0.0), SHUT, SHUT, False, id="closed"),
        pytest.param((0.0, 0.0), SHUT, (0.02, 0.02), False, id="grips"),
        pytest.param((0.0, 0.0), SHUT, (0.0385, 0.0385), False, id="grips early"),
        pytest.param((0.0, 0.0), SHUT, (0.0, 0.04), False, id="one touches at once"),
        pytest.param((0.0, 0.0), SHUT, OPEN, True, id="nobody does it"),
        pytest.param((0.0, 0.0), SHUT, (0.0398, 0.0402), True, id="noise"),
        pytest.param((0.0, 0.0), (0.039, 0.039), OPEN, False, id="less than can be told"),
        pytest.param((0.0, 1.0), OPEN, (0.03, 0.03), False, id="held, and pushed by others"),
        pytest.param((0.0, 1.0), SHUT, OPEN, True, id="arm and hand"),
    ],
)
def test_fingers_have_to_move(
    arm: tuple[float, float],
    end: tuple[float, float],
    fingers: tuple[float, float],
    fails: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent_at = (arm[0], *(fingers if end == OPEN else OPEN))
    why, looked, one = ended(monkeypatch, (arm[0], *OPEN), (arm[1], *end), (arm[1], *fingers), sent_at)
    assert bool(why) == fails, why
    assert looked.only_grips_wait == fails
    if fails:
        assert "left, right of an end effector has not moved since the motion was sent" in why
    # Later stops leave alone what holds something, and stop what has not begun.
    assert (one.progress.arrived is None) == (fails and arm[0] == arm[1])


def test_fingers_that_others_moved_before_have_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    why, looked, one = ended(
        monkeypatch, (0.0, *OPEN), (0.0, *SHUT), (0.0, 0.035, 0.035), (0.0, 0.035, 0.035)
    )
    assert "has not moved" in why
    assert looked.only_grips_wait
    assert one.progress.arrived is None


def test_an_arm_that_ends_where_it_begins_may_wait_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is braked, whatever fingers hold: nobody knows whether it has done its motion."""
    why, looked, _ = ended(monkeypatch, (0.0, *OPEN), (0.015, *SHUT), (0.015, *OPEN), (0.0, *OPEN))
    assert "has not moved" in why
    assert not looked.only_grips_wait
    why, looked, _ = ended(monkeypatch, (0.0, *OPEN), (1.0, *SHUT), (0.9, *OPEN), (0.0, *OPEN))
    assert "the motion ends with 'arm' at 1" in why
    assert not looked.only_grips_wait


def test_fingers_that_come_last_may_be_still_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller that is slowed down goes on with them: it is braked, also by later stops."""
    places = (0.0, *OPEN), (1.0, *SHUT), (1.0, *OPEN), (0.0, *OPEN)
    why, looked, one = ended(monkeypatch, *places, by_way_of=[(1.0, *OPEN)])
    assert "has not moved" in why
    assert not looked.only_grips_wait
    assert one.progress.arrived is None
    why, looked, one = ended(monkeypatch, *places, by_way_of=[(0.5, 0.02, 0.02)])
    assert "has not moved" in why
    assert looked.only_grips_wait
    assert one.progress.arrived is not None


@pytest.mark.parametrize("fingers", [OPEN, (0.02, 0.02)])
def test_a_stop_while_fingers_are_waited_for_does_not_loosen_them(
    fingers: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (0.0, *fingers), (0.0, *SHUT), (0.0, *fingers), (0.0, *fingers)
    why, looked, _ = ended(monkeypatch, *places, stopped=True)
    assert not why
    assert looked.may_go_on()
    assert looked.only_grips_wait


@pytest.mark.parametrize(
    ("arm", "way"),
    [
        pytest.param(
            (0.0, 0.0, 1.0, 1.0), (0.02, 0.0, 0.0, 0.04), id="squeezes, then opens when the arm is there"
        ),
        pytest.param((0.0, 0.0, 0.0, 0.0), (0.02, 0.0, 0.0, 0.04), id="squeezes, then opens"),
        pytest.param((0.0, 0.3, 0.6, 1.0), (0.04, 0.0, 0.04, 0.0), id="closes twice"),
    ],
)
def test_fingers_that_come_back_to_where_they_are_may_be_still_to_come(
    arm: Sequence[float], way: Sequence[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, *between, end = [(a, finger, finger) for a, finger in zip(arm, way, strict=True)]
    measured = (arm[-1], way[0], way[0])
    why, looked, _ = ended(monkeypatch, begin, end, measured, begin, by_way_of=between)
    assert "has not moved" in why
    assert not looked.only_grips_wait
