"""kinopt bench ik: rows, keys, judge, peers that are missing or cannot take a robot."""

import argparse
import json
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
from kinopt_ros.bench import ik, peers
from kinopt_ros.bench.judge import Judge
from kinopt_ros.bench.peers.trac_ik import _round_inwards
from kinopt_ros.bench.targets import ik_task
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError, UnknownSolverError
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import robot_names

BASE, TIP = "panda_link0", "panda_link8"


def test_rows_have_exactly_the_agreed_keys() -> None:
    rows = ik.run_ik_bench("panda", BASE, TIP, ["cpu"], targets=200)
    assert [row["solver"] for row in rows] == ["cpu", "cpu:solve_ik"]
    for row in rows:
        assert tuple(row) == ik.KEYS
        assert row["success"] == 1.0
        assert row["targets"] == 200
        assert row["limit_violation_max"] == 0.0
        assert row["position_error_max_m"] <= 1e-6
        assert 0.0 < row["median_us"] <= row["p99_us"] <= row["max_us"]


def test_command_prints_json_only(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    ik.add_arguments(parser)
    arguments = [
        "--base",
        BASE,
        "--tip",
        TIP,
        "--solver",
        "cpu",
        "--targets",
        "20",
        "--sampling",
        "halton",
        "--json",
    ]
    assert ik.main(parser.parse_args(arguments)) == 0
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    ik.add_arguments(parser)
    assert ik.main(parser.parse_args(["--solver", "cpu", "--targets", "20"])) == 0
    assert "cpu:solve_ik" in capsys.readouterr().out


def test_a_missing_peer_keeps_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, task: object) -> None:
        raise SolverUnavailableError("not installed (pip install x)")

    monkeypatch.setattr(ik, "build_peer", missing)
    (row,) = ik.run_ik_bench("panda", BASE, TIP, ["rtb_ik_lm"], targets=5)
    assert row["note"] == "not installed (pip install x)"
    assert row["mean_us"] is None
    assert json.dumps(row)


def test_peers_that_are_not_installed_say_so() -> None:
    with pytest.raises(SolverUnavailableError, match="pip install nothing-of-the-kind"):
        peers.require("nothing_of_the_kind", "nothing-of-the-kind")


def test_bad_arguments() -> None:
    with pytest.raises(UnknownSolverError):
        ik.run_ik_bench("panda", BASE, TIP, ["cpuu"], targets=5)
    with pytest.raises(InvalidRequestError, match="targets"):
        ik.run_ik_bench("panda", BASE, TIP, ["cpu"], targets=0)
    with pytest.raises(InvalidRequestError, match="sampling"):
        ik.run_ik_bench("panda", BASE, TIP, ["cpu"], targets=5, sampling="sobol")


def test_judge_measures_what_is_wrong() -> None:
    task = ik_task("panda", BASE, TIP, 50, "random", 3)
    q = random_configurations(task.robot, 50, 3)[:, task.variables]
    judge = Judge(task)
    right = judge(q)
    assert right.position_error.max() < 1e-12
    assert right.orientation_error.max() < 1e-7
    assert right.limit_violation.max() == 0.0
    wrong = q.copy()
    wrong[0, 0] += 1e-3
    wrong[1, 0] = task.upper[0] + 0.25
    wrong[2] = np.nan
    verdict = judge(wrong)
    assert verdict.orientation_error[0] == pytest.approx(1e-3, abs=1e-9)
    assert verdict.limit_violation[1] == pytest.approx(0.25)
    assert np.isinf(verdict.position_error[2])


def test_peers_refuse_mimic_joints_in_a_sentence(tmp_path: Path) -> None:
    joint = '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="{3}"/>{4}'
    end = '<origin xyz="0.2 0 0.1"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    joints = [
        ("a", "l0", "l1", "0 0 1", ""),
        ("b", "l1", "l2", "0 1 0", '<mimic joint="a" multiplier="0.5"/>'),
    ]
    links = "".join(f'<link name="l{i}"/>' for i in range(3))
    path = tmp_path / "mimic.urdf"
    path.write_text(f'<robot name="m">{links}{"".join(joint.format(*j) + end for j in joints)}</robot>')
    own, public, other = ik.run_ik_bench(path, "l0", "l2", ["cpu", "pinocchio_lm"], targets=50)
    assert own["success"] == public["success"] == 1.0
    assert "mimic" in other["note"]


def test_a_mimic_joint_whose_driver_is_elsewhere_is_seen() -> None:
    # The right finger follows the left one, which is not on this chain, one to one.
    task = ik_task("panda", BASE, "panda_rightfinger", 50, "random", 0)
    assert task.has_mimic_joints
    assert not ik_task("panda", BASE, "panda_leftfinger", 1, "random", 0).has_mimic_joints
    own, public, other = ik.run_ik_bench(
        "panda", BASE, "panda_rightfinger", ["cpu", "pinocchio_lm"], targets=50
    )
    assert own["success"] == public["success"] == 1.0
    assert "mimic" in other["note"]


def test_limits_are_rounded_to_single_precision_inwards() -> None:
    for lower, upper in ((-2.8973, 2.8973), (-0.1, 0.1), (0.0, 0.5), (1e-3, 1e-3 + 1e-5)):
        limit = ElementTree.Element("limit", lower=str(lower), upper=str(upper), effort="87")
        _round_inwards(limit)
        ends = float(limit.attrib["lower"]), float(limit.attrib["upper"])
        assert lower <= ends[0] <= ends[1] <= upper
        assert ends == (np.float32(ends[0]), np.float32(ends[1]))
        np.testing.assert_allclose(ends, (lower, upper), rtol=2e-7)
        assert limit.attrib["effort"] == "87"


def test_trac_ik_stays_inside_the_limits() -> None:
    pytest.importorskip("pytracik")
    (row,) = ik.run_ik_bench("panda", BASE, TIP, ["trac_ik"], targets=1000)
    assert row["limit_violation_max"] == 0.0


def test_the_tight_toolbox_peer_keeps_to_the_criterion_of_the_benchmark() -> None:
    pytest.importorskip("roboticstoolbox")
    task = ik_task("panda", BASE, TIP, 200, "random", 0)
    solve = peers.build_peer("rtb_ik_lm_tight", task).solve
    verdict = Judge(task)(np.array([solve(T) for T in task.T_base_target]))
    error = np.hypot(verdict.position_error, verdict.orientation_error)
    assert (error < 1e-6).mean() > 0.9
    assert not ((error >= 1e-6) & (error < 2e-6)).any()


@pytest.mark.parametrize("name", ["rtb_ik_lm", "rtb_ik_lm_tight", "trac_ik", "pinocchio_lm"])
def test_peers_solve_the_same_targets(name: str) -> None:
    task = ik_task("panda", BASE, TIP, 20, "random", 0)
    try:
        peer = peers.build_peer(name, task)
    except SolverUnavailableError as error:
        pytest.skip(str(error))
    verdict = Judge(task)(np.array([peer.solve(T) for T in task.T_base_target]))
    assert (verdict.position_error < 1e-5).mean() >= 0.7


@pytest.mark.parametrize(
    ("name", "module"),
    [("roboplan_simple_ik", "roboplan"), ("roboplan_oink", "roboplan"), ("pink", "pink")],
)
def test_peers_of_others_solve_or_say_what_is_missing(name: str, module: str) -> None:
    (row,) = ik.run_ik_bench("panda", BASE, TIP, [name], targets=20)
    if find_spec(module) is None:
        assert "not installed (pip install" in row["note"]
        assert row["success"] is None
    else:
        assert row["success"] >= 0.8
        assert row["limit_violation_max"] <= 1e-9


@pytest.mark.skipif(find_spec("eaik") is None, reason="EAIK is not installed (pip install eaik)")
def test_the_public_interface_of_the_analytic_plugin_is_a_peer() -> None:
    if "ur5" in robot_names():
        (row,) = ik.run_ik_bench("ur5", "base_link", "tool0", ["analytic:solve_ik"], targets=50)
        assert row["success"] == 1.0
    (row,) = ik.run_ik_bench("panda", BASE, TIP, ["analytic:solve_ik"], targets=5)
    assert "solver analytic" in row["note"]
    assert row["success"] is None
