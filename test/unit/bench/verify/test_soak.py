"""The soak finds nothing wrong with the solver, and its judge finds what is made wrong on purpose."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
from kinopt_ros.bench.verify.judge import Judge
from kinopt_ros.bench.verify.requests import KINDS, Drawn, draw
from kinopt_ros.bench.verify.robots import Subject, subjects
from kinopt_ros.bench.verify.soak import soak
from kinopt_ros.cli import main
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.result import IkResult


@pytest.fixture(scope="module")
def robots() -> dict[str, Subject]:
    return {subject.name: subject for subject in subjects()[0]}


def solved(subject: Subject, kind: str, seed: int = 0) -> tuple[Drawn, IkResult]:
    solver = create_solver("cpu", subject.robot)
    solver.warm_up()
    drawn = draw(subject, np.random.default_rng(seed), 20, kind)
    return drawn, solver.solve_ik(drawn.problem)


def objections(subject: Subject, drawn: Drawn, result: IkResult) -> list[str]:
    judged = Judge(subject)(drawn.problem, result, subject.robot.variable_names, drawn.locked)
    return [objection.reason for objection in judged]


def with_q(result: IkResult, change: np.ndarray) -> IkResult:
    return replace(result, q=result.q + change)


def test_thousands_of_requests_of_all_kinds_and_no_success_is_wrong() -> None:
    report = soak("cpu", 4000, seed=5)
    assert report.rejected == 0, report.objections
    assert sum(tally.requests for tally in report.robots.values()) == 4000
    assert len(report.robots) >= 6
    asked = {kind for tally in report.robots.values() for kind in tally.by_kind}
    assert asked == set(KINDS)
    solved = sum(tally.successes for tally in report.robots.values())
    assert solved > 3800  # what cannot be reached is 2 in 110


@pytest.mark.parametrize("name", ["panda", "gantry", "mimic", "five"])
@pytest.mark.parametrize("kind", ["plain", "tool", "free axes", "per axis"])
def test_the_judge_sees_a_joint_that_is_off(robots: dict[str, Subject], name: str, kind: str) -> None:
    subject = robots[name]
    drawn, result = solved(subject, kind)
    assert result.success.any()
    assert objections(subject, drawn, result) == []
    # Rotate and shift every joint: no free axis forgives all of that.
    off = with_q(result, np.linspace(0.11, 0.17, result.q.shape[2]))
    assert len(objections(subject, drawn, off)) >= 0.9 * int(result.success.sum())


def test_the_judge_sees_limits_and_those_of_mimic_joints(robots: dict[str, Subject]) -> None:
    subject = robots["mimic"]
    drawn, result = solved(subject, "plain")
    beyond = result.q.copy()
    beyond[:, :, 0] = subject.robot.limits.upper[0] + 1e-9
    assert any("outside" in reason for reason in objections(subject, drawn, replace(result, q=beyond)))
    assert objections(subject, drawn, result) == []
    narrow = replace(
        subject, urdf=subject.urdf.replace('lower="-1.0" upper="1.0"', 'lower="0.099" upper="0.101"')
    )
    assert all("mimic joint j3" in reason for reason in objections(narrow, drawn, result))
    assert len(objections(narrow, drawn, result)) == drawn.problem.batch_size


@pytest.mark.parametrize(
    ("limits", "counts"),
    [
        ("-1.0 1.0", True),
        ("0.0 1.0", True),  # its driver keeps half of its range
        ("0.1 0.1", False),  # the driver would stand still
        ("0.9 2.5", False),  # it needs 1.6 to 4.8 of a driver that has -1.6 to 1.6
        ("2.0 3.0", False),
    ],
)
def test_limits_of_mimic_joints_that_freeze_their_driver_are_read_as_moveit_does(
    robots: dict[str, Subject], limits: str, counts: bool
) -> None:
    """The judge and the library come to the same, each by its own way."""
    lower, upper = limits.split()
    urdf = robots["mimic"].urdf.replace('lower="-1.0" upper="1.0"', f'lower="{lower}" upper="{upper}"')
    subject = replace(robots["mimic"], urdf=urdf, robot=robot_from_urdf(urdf))
    assert any("'j3'" in warning for warning in subject.robot.warnings) is not counts
    drawn, result = solved(subject, "plain")
    assert result.success.any()
    assert objections(subject, drawn, result) == []
    # The driver's own limits hold whatever the mimic joint's are.
    beyond = result.q.copy()
    beyond[:, :, list(result.joint_names).index("j2")] = 1.6 + 1e-9
    found = objections(subject, drawn, replace(result, q=beyond))
    assert len(found) == int(result.success.sum())
    assert all("j2 is at" in reason for reason in found)
    outside = result.q.copy()
    outside[:, :, list(result.joint_names).index("j2")] = -1.55  # j3 would be at -0.675
    reasons = objections(subject, drawn, replace(result, q=outside))
    assert any("mimic joint j3" in reason for reason in reasons) is (counts and float(lower) > -0.675)


def test_the_judge_sees_solutions_that_are_the_same(robots: dict[str, Subject]) -> None:
    subject = robots["ur5"] if "ur5" in robots else robots["panda"]
    drawn, result = solved(subject, "several solutions", seed=4)
    drawn = replace(drawn, problem=replace(drawn.problem, turns=False))
    assert (result.num_found > 1).any()
    doubled = result.q.copy()
    doubled[:, 1:] = doubled[:, :1] + 1e-4
    assert any("differ" in reason for reason in objections(subject, drawn, replace(result, q=doubled)))


def test_the_judge_sees_a_locked_joint_that_moved(robots: dict[str, Subject]) -> None:
    subject = robots["panda"]
    drawn, result = solved(subject, "plain")
    moved = replace(drawn, locked={"panda_joint3": np.zeros(drawn.problem.batch_size)})
    assert any("locked" in reason for reason in objections(subject, moved, result))


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "verify", "--requests", "300", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["requests"] == 300
    assert record["rejected"] == 0


@pytest.mark.parametrize(("requests", "seed"), [(0, 0), (1, -1)])
def test_numbers_out_of_range_are_refused(requests: int, seed: int) -> None:
    with pytest.raises(InvalidRequestError, match=f"requests is {requests} and seed {seed};"):
        soak("cpu", requests, seed=seed)
