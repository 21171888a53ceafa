"""Which chains have a closed form, and why others have none."""

import numpy as np
import pytest

pytest.importorskip("eaik", reason="EAIK is not installed (pip install eaik)")
from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import (
    continuous_and_prismatic,
    seven_revolute,
    six_revolute,
    three_parallel,
    with_mimic,
)
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.se3 import so3_exp
from kinopt_ros.robot.chain import build_chain, with_tool
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.analytic import closed_form as module
from kinopt_ros.solvers.analytic.closed_form import ClosedForm, NoClosedForm, closed_form

TILT, GAP = 2e-3, 1e-3


def arm(rows: list[tuple[str, str, str]]) -> RobotModel:
    """Return an arm of revolute joints: xyz, rpy and axis of each; the last link is ``tip``, shifted and turned."""
    links = "".join(f'<link name="l{i}"/>' for i in range(len(rows) + 1))
    joints = "".join(
        f'<joint name="j{i + 1}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>'
        '<limit lower="-3.1" upper="3.1" velocity="1" effort="1"/></joint>'
        for i, (xyz, rpy, axis) in enumerate(rows)
    )
    tool = (
        f'<link name="tip"/><joint name="tool" type="fixed"><parent link="l{len(rows)}"/><child link="tip"/>'
        '<origin xyz="0.1 0.02 0.05" rpy="0.3 -0.8 1.1"/></joint>'
    )
    return robot_from_urdf(f'<robot name="arm">{links}{joints}{tool}</robot>')


ROUNDED = arm(
    [
        ("0 0 0.4", "0 0 0", "0 0 1"),
        ("0.18 0 0", "1.5708 0 0", "0 0 1"),
        ("0.6 0 0", "1.5708 0 0", "0 1 0"),
        ("0 0 -0.12", "0 1.57 0", "0 0 1"),
        ("0 0 0.62", "0 -1.5708 0", "0 0 1"),
        ("0 0.0003 0", "0 1.5708 0", "0 0 1"),
    ]
)
"""A spherical wrist, but for the digits of its description."""
GENERAL = arm(
    [
        ("0 0 0.3", "0 0 0", "0 0 1"),
        ("0.1 0.05 0", "0.7 0.2 0", "0 0 1"),
        ("0.1 0.3 0.1", "-0.4 0.9 0", "0 0 1"),
        ("0 0.2 0.15", "1.1 -0.3 0", "0 0 1"),
        ("0.12 0.1 0", "-0.8 0.5 0", "0 0 1"),
        ("0.07 0 0.1", "0.6 0.6 0", "0 0 1"),
    ]
)


def form_of(
    robot: RobotModel, base: str, tip: str, held: dict[int, float] | None = None, **nearly: float
) -> ClosedForm:
    chain = build_chain(robot, base, tip, held)
    form = closed_form(robot, chain, nearly.get("tilt", TILT), nearly.get("gap", GAP))
    assert isinstance(form, ClosedForm), form.sentence
    return form


def refusal(
    robot: RobotModel, base: str, tip: str, held: dict[int, float] | None = None, **nearly: float
) -> str:
    chain = build_chain(robot, base, tip, held)
    form = closed_form(robot, chain, nearly.get("tilt", TILT), nearly.get("gap", GAP))
    assert isinstance(form, NoClosedForm)
    assert form.sentence.endswith("solver cpu takes any chain")
    assert f"{base!r} to {tip!r}" in form.sentence
    return form.sentence


@pytest.mark.parametrize(
    ("robot", "base", "tip", "name"),
    [
        (six_revolute(), "l0", "l6", "three axes that meet"),
        (six_revolute(), "l6", "l0", "three axes that meet"),  # from the hand to the foot
        (three_parallel(), "l0", "l6", "three parallel axes"),
        (three_parallel(), "l6", "l0", "three parallel axes"),
        (ROUNDED, "l0", "tip", "three axes that meet"),
        (six_revolute(), "l1", "l6", "5 revolute joints"),
    ],
)
def test_claims_hold_the_configuration_of_a_pose(robot: RobotModel, base: str, tip: str, name: str) -> None:
    chain = build_chain(robot, base, tip)
    form = form_of(robot, base, tip)
    assert form.name == name
    n = len(form.variables)
    scale, shift = form.numbers[-2 * n : -n, None], form.numbers[-n:, None]
    far = 0
    for q in np.random.default_rng(5).uniform(-3, 3, (50, n)):
        claims = scale * form.claims(np.ascontiguousarray(chain_pose(chain, q))) + shift
        difference = claims - q[chain.column][:, None]
        difference -= 2.0 * np.pi * np.rint(difference / (2.0 * np.pi))
        far += np.abs(difference).max(axis=0).min() > (0.02 if robot is ROUNDED else 1e-5)
    assert far <= (3 if robot is ROUNDED else 0)  # beside singular poses rounding matters more


def test_only_tolerances_find_the_form_of_a_rounded_description() -> None:
    assert "have to be parallel" in refusal(ROUNDED, "l0", "tip", tilt=0.0, gap=0.0)


def test_tools_and_held_joints_are_part_of_the_chain() -> None:
    robot = seven_revolute()
    tool = np.eye(4)
    tool[:3, :3], tool[:3, 3] = so3_exp(np.array([0.2, 0.5, -1.0])), (0.1, -0.2, 0.3)
    chain = with_tool(build_chain(robot, "l0", "l7", {4: 0.4}), tool)  # the first three axes meet
    form = closed_form(robot, chain, TILT, GAP)
    assert isinstance(form, ClosedForm), form.sentence
    q = np.array([0.4, 0.7, -0.3, -1.5, 1.2, 0.5])
    claims = form.numbers[-12:-6, None] * form.claims(np.ascontiguousarray(chain_pose(chain, q)))
    difference = claims + form.numbers[-6:, None] - q[chain.column][:, None]
    difference -= 2.0 * np.pi * np.rint(difference / (2.0 * np.pi))
    assert np.abs(difference).max(axis=0).min() < 0.02


def test_why_there_is_none() -> None:
    assert "closed forms move 6 joints at most; lock 1 of them" in refusal(seven_revolute(), "l0", "l7")
    assert "'j3' turns more than one of its axes" in refusal(with_mimic(), "l0", "l7")
    lift = continuous_and_prismatic()
    assert "not all of them turn" in refusal(lift, "l0", "l7")
    assert "three neighbouring axes have to be parallel" in refusal(GENERAL, "l0", "tip")
    planar = arm([("0.3 0 0", "0 0 0", "0 0 1")] * 4)
    assert "they can move while the tip rests" in refusal(planar, "l0", "tip")
    robot = six_revolute()
    assert "nothing moves its tip" in refusal(robot, "l0", "l6", dict.fromkeys(range(6), 0.0))


def test_a_follower_that_turns_otherwise_is_refused() -> None:
    robot = with_mimic()
    held = {i: 0.0 for i in range(robot.nq) if robot.variable_names[i] != "j3"}
    assert "times as far as 'j3'" in refusal(robot, "l3", "l5", {i: v for i, v in held.items() if i != 3})


def test_a_closed_form_that_is_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(chain: object, tilt: float, gap: float) -> tuple[str, module.Claims, Float64]:
        return "a mistake", lambda T: np.zeros((6, 2)), np.ones(6)

    monkeypatch.setattr(module, "_family", wrong)
    assert "that for a mistake missed 32 of 32" in refusal(six_revolute(), "l0", "l6")
