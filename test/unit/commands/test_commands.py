"""The command line, without ROS."""

import errno
import io
import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.moving_base import base_urdf

from kinopt_ros.cli import COMMANDS, main
from kinopt_ros.commands import doctor, replay
from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot

POSE = ["--xyz", "0.4", "0.1", "0.5", "--rpy", "3.14159265", "0", "0"]


def test_ik_prints_json_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ik", "--robot", "panda", *POSE, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    robot = load_robot("panda")
    q = robot.default_q.copy()
    q[:7] = answer["positions"]
    T = forward_kinematics(robot, q, links=(answer["tip"],))[0]
    np.testing.assert_allclose(T[:3, 3], [0.4, 0.1, 0.5], atol=1e-4)
    assert answer["status"] == "SUCCESS"
    assert "target pose" in answer["checks"]


def test_ik_shows_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ik", *POSE]) == 0
    out = capsys.readouterr().out
    assert "panda_joint7" in out
    assert "not checked" in out


def test_ik_out_of_reach(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ik", "--xyz", "5", "0", "0", "--json"]) == 2
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "NO_IK_SOLUTION"
    assert answer["positions"] == []
    assert len(answer["attempt"]) == 7


def test_ik_as_near_as_possible(capsys: pytest.CaptureFixture[str]) -> None:
    far = ["ik", "--xyz", "5", "0", "0", "--nearest"]
    assert main([*far, "--position-weight", "1", "1", "2", "--orientation-weight", "0.1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] == "NEAREST"
    assert answer["positions"] == []
    assert len(answer["attempt"]) == 7
    assert answer["message"].startswith("position off by 4.")
    assert "target pose" not in answer["checks"]
    assert answer["position_error_m"] > 4.0
    assert main(["ik", *POSE, "--nearest", "--orientation-weight", "0"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "as near as possible by cpu" in out
    assert "position met (off by" in out
    assert "orientation free" in out
    assert "no solution" in out
    assert "solved" not in out


def test_fk_agrees_with_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fk", "--joints", "panda_joint1=0.5", "--links", "panda_link8", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    robot = load_robot("panda")
    q = robot.default_q.copy()
    q[0] = 0.5
    T = forward_kinematics(robot, q, links=("panda_link8",))[0]
    np.testing.assert_allclose(answer["links"]["panda_link8"]["position"], T[:3, 3], atol=1e-12)


def test_doctor_finds_a_working_installation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    checks = {check["what"]: check for check in record["checks"]}
    assert checks["solver cpu"]["ok"]
    assert checks["robot panda"]["ok"]
    assert all(finding["severity"] == "note" for finding in record["findings"])


@pytest.mark.parametrize(
    ("module", "ok", "said"),
    [
        ("ruckig", True, r"\d+\.\d+"),
        ("kinopt_ruckig", True, "by kinopt_ruckig"),
        (None, False, "pip install ruckig"),
    ],
)
def test_doctor_says_what_times_motions(
    module: str | None,
    ok: bool,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found() -> ModuleType:
        if module is None:
            raise SolverUnavailableError("timing a motion needs ruckig: pip install ruckig")
        return ModuleType(module)

    monkeypatch.setattr(doctor, "ruckig_module", found)
    monkeypatch.setattr(doctor, "version", version_of_pip)
    assert main(["doctor", "--json"]) == 0
    (check,) = (each for each in json.loads(capsys.readouterr().out)["checks"] if each["what"] == "ruckig")
    assert check["ok"] is ok
    assert re.search(said, check["detail"])


def version_of_pip(package: str) -> str:
    """What importlib.metadata says where pip has installed all but the package of colcon."""
    if package == "kinopt_ruckig":
        raise PackageNotFoundError(package)
    return "1.0"


def test_doctor_shows_how_spheres_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("coal")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    urdf, spheres, plot = tmp_path / "r.urdf", tmp_path / "spheres.yaml", tmp_path / "fit.png"
    box = '<collision><geometry><box size="0.2 0.1 0.1"/></geometry></collision>'
    urdf.write_text(f'<robot name="r"><link name="a">{box}</link></robot>')
    arguments = ["doctor", "--robot", str(urdf), "--collision"]
    assert main([*arguments, "--plot", str(plot), "--json"]) == 0
    (fit,) = json.loads(capsys.readouterr().out)["collision"]["links"]
    assert (fit["link"], fit["uncovered"], fit["source"]) == ("a", 0, "fit")
    assert plot.read_bytes().startswith(b"\x89PNG")
    spheres.write_text("collision_spheres: {a: [{center: [0, 0, 0], radius: 0.1}]}")
    main([*arguments, "--spheres", str(spheres)])
    out = capsys.readouterr().out
    assert "1 file" in out
    assert "1 spheres in all" in out


@pytest.mark.parametrize("option", ["--spheres", "--plot"])
def test_doctor_says_what_an_option_needs(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", option, "file.png"]) != 0
    assert "need --collision" in "".join(capsys.readouterr())


def test_doctor_names_what_is_wrong_with_a_robot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot name='x'><link name='a'/><link name='b'/></robot>")
    assert main(["doctor", "--robot", str(broken)]) == 1
    assert "root" in capsys.readouterr().out


def test_doctor_says_which_limits_motions_assume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer's motion took 0.1 rad/s^2, and nothing said why."""
    file = tmp_path / "arm.urdf"
    file.write_text(
        '<robot name="arm"><link name="base"/><link name="tip"/><joint name="turn" type="revolute"><parent '
        'link="base"/><child link="tip"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/>'
        "</joint></robot>"
    )
    main(["doctor", "--robot", str(file), "--json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [one["what"] for one in found if "acceleration" in one["what"]] == [
        "no limit of acceleration for turn: 1 rad/s^2 or m/s^2 is used"
    ]
    main(["doctor", "--robot", "panda", "--json"])
    said = [one["what"] for one in json.loads(capsys.readouterr().out)["findings"]]
    assert [one for one in said if "acceleration" in one] == [
        "no limit of acceleration for panda_finger_joint1: 1 rad/s^2 or m/s^2 is used"
    ]


def test_doctor_says_that_an_srdf_waits_for_its_robot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, srdf = tmp_path / "broken.urdf", tmp_path / "some.srdf"
    broken.write_text("<robot name='x'>\n<link name='a'/>\n<link name='b'/>\n</robot>")
    srdf.write_text("<robot name='x'/>")
    assert main(["doctor", "--robot", str(broken), "--srdf", str(srdf), "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)["findings"]
    assert set(first) == {"severity", "file", "line", "what", "remedy"}
    assert (first["severity"], first["file"], first["line"]) == ("error", str(broken), 3)
    assert (second["severity"], second["file"]) == ("note", str(srdf))
    assert "not looked at" in second["what"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ik", "--robot", "no_such_robot", *POSE], "panda"),
        (["ik", "--robot", "missing.urdf", *POSE], "missing.urdf"),
        (["ik", "--srdf", "missing.srdf", *POSE], "missing.srdf"),
        (["ik", "--group", "arm", *POSE], "panda_arm"),
        (["ik", "--tip", "flange", *POSE], "flange"),
        (["ik", "--xyz", "nan", "0", "0"], "finite"),
        (["ik", "--xyz", "0.4", "0", "0.4", "--quaternion", "1", "1", "0", "0"], "length"),
        (["ik", *POSE, "--timeout", "0"], "timeout"),
        (["ik", *POSE, "--timeout", "inf"], "timeout is inf"),
        (["ik", *POSE, "--position-tolerance", "-1"], "position_tolerance"),
        (["ik", *POSE, "--solver", "ikfast"], "cpu"),
        (["ik", *POSE, "--seed-state", "yoga"], "ready"),
        (["ik", *POSE, "--orientation-weight", "0"], "--nearest"),
        (["ik", *POSE, "--nearest", "--position-weight", "1", "2"], "--position-weight has 2 numbers"),
        (["ik", *POSE, "--nearest", "--position-weight", "-1"], "weight of position"),
        (["ik", "--demo", "updown", "--nearest"], "--demo"),
        (["fk", "--joints", "elbow=1"], "elbow"),
        (["fk", "--joints", "panda_joint1"], "NAME=VALUE"),
        (["fk", "--joints", "panda_joint1=fast"], "fast"),
        (["fk", "--links", "panda_link99"], "panda_link99"),
    ],
)
def test_bad_arguments_get_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


def test_help_lists_every_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "kinopt_ros.cli", "--help"], capture_output=True, text=True, check=True
    )
    assert all(name in result.stdout for name in COMMANDS)


HELP = """
import sys
from kinopt_ros.cli import main
for command in sys.argv[1:]:
    try:
        main([command, "--help"])
    except SystemExit as end:
        print("ended with", end.code)
"""


def test_every_command_has_help() -> None:
    """In one new process, which has imported nothing else."""
    result = subprocess.run(
        [sys.executable, "-c", HELP, *COMMANDS], capture_output=True, text=True, check=True
    )
    told = result.stdout.split("ended with 0\n")
    assert len(told) == len(COMMANDS) + 1
    for command, text in zip(COMMANDS, told[:-1], strict=True):
        assert text.startswith(f"usage: kinopt {command} ")
    assert told[-1] == ""


MARKED = """<robot name="r[/b]"><link name="a[/bold]"/><link name="b[red]"/>
<joint name="j[/x]" type="revolute"><parent link="a[/bold]"/><child link="b[red]"/>
<origin xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["doctor"], "[/b]"),
        (["fk"], "a[/bold]"),
        (["ik", "--tip", "b[red]", "--xyz", "0", "0", "1", "--rpy", "0", "0", "0.5"], "j[/x]"),
        (["ik", "--tip", "b[red]", "--xyz", "0", "0", "3"], "j[/x]"),
    ],
)
def test_names_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """Brackets are markup of the tables: names vanished, or ended the command with a traceback."""
    file = tmp_path / "marked.urdf"
    file.write_text(MARKED)
    main([arguments[0], "--robot", str(file), *arguments[1:]])
    assert said in capsys.readouterr().out


def test_records_and_problems_are_shown_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a[b].yaml").write_text("[/b]")
    assert main(["replay", str(tmp_path)]) == 1
    assert "a[b].yaml" in capsys.readouterr().out
    (tmp_path / "marked.urdf").write_text(MARKED)
    problem = tmp_path / "problem.yaml"
    problem.write_text('robot: marked.urdf\ngoals: [{joints: {"j[/x]": 0.5}}]')
    assert main(["plan", str(problem)]) == 0
    assert "j[/x]" in capsys.readouterr().out


def test_a_record_opens_no_file_that_its_options_name() -> None:
    """One of somebody else had any file read, and its keys shown."""
    given: Any = SimpleNamespace(
        solver="jax_lm", options={"objectives": "secret.yaml", "groups": "panda_arm"}
    )
    assert replay._options(given) == {"groups": "panda_arm"}


class Full(io.StringIO):
    """Stands for a file on a full disk."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("arguments", [["fk"], ["ik", "--xyz", "0.4", "0", "0.4", "--json"]])
def test_a_full_disk_gets_one_sentence(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(arguments) == 1
    assert capsys.readouterr().err == f"kinopt {arguments[0]}: No space left on device\n"


def test_a_motion_begins_at_the_joint_values_that_are_given(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("coal")
    start = ["panda_joint2=-0.3", "panda_joint4=-1.8", "panda_joint6=1.6"]
    goal = ["--tip", "panda_link8", "--to-xyz", "0.5", "0.1", "0.6", "--to-rpy", "3.1416", "0", "0"]
    assert main(["plan", "--json", "--start", *start, *goal]) == 0
    found = json.loads(capsys.readouterr().out)
    begin = dict(zip(found["joint_names"], found["positions"][0], strict=True))
    assert (begin["panda_joint2"], begin["panda_joint4"], begin["panda_joint6"]) == (-0.3, -1.8, 1.6)
    panda = load_robot("panda")
    q = panda.default_q.copy()
    q[[panda.variable_index[name] for name in found["joint_names"]]] = found["positions"][-1]
    T = forward_kinematics(panda, q, links=("panda_link8",))[0]
    np.testing.assert_allclose(T[:3, 3], [0.5, 0.1, 0.6], atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--start", "panda_joint1=up", "--to-state", "ready"], "the value of 'panda_joint1' is 'up'"),
        (["--start", "panda_joint1=nan", "--to-state", "ready"], "allowed is a finite number"),
        (
            ["--start", "ready", "panda_joint1=1", "--to-state", "ready"],
            "--start takes NAME=VALUE, not 'ready'",
        ),
        (["--start", "elbow=1", "--to-state", "ready"], "unknown joint 'elbow'"),
        (["--start", "a=1", "a=2", "--to-state", "ready"], "--start names 'a' twice"),
        (["--tip", "panda_link8", "--to-state", "ready"], "--tip goes with --to-xyz"),
        (["--tip", "nowhere", "--to-xyz", "0.5", "0", "0.5"], "nowhere"),
    ],
)
def test_a_start_or_tip_that_cannot_be_gets_a_sentence(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", *arguments]) == 1
    assert said in capsys.readouterr().err


def test_a_default_start_in_collision_says_that_none_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("coal")
    scene = tmp_path / "scene.yaml"
    scene.write_text("objects: {lump: {shapes: [{type: box, size: [2.0, 2.0, 2.0]}]}}")
    assert main(["plan", "--scene", str(scene), "--to-state", "ready"]) == 2
    said = capsys.readouterr().out
    assert "START_STATE_IN_COLLISION" in said
    assert "default configuration, which counts where no start is given" in " ".join(said.split())


def test_bases_that_move_are_planned_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("coal")
    for kind, values in (
        ("planar", "{drive/x: 1.0, drive/theta: 4.0}"),
        ("floating", "{drive/trans_x: 1.0, drive/rot_w: 0.8, drive/rot_z: 0.6}"),
    ):
        (tmp_path / f"{kind}.urdf").write_text(base_urdf(kind))
        file = tmp_path / f"{kind}.yaml"
        file.write_text(f"{{robot: {kind}.urdf, group: tool, scene: empty, goals: [{{joints: {values}}}]}}")
        assert main(["plan", str(file), "--json", "--plot", str(tmp_path / f"{kind}.png")]) == 0
        answer = json.loads(capsys.readouterr().out)
        last = dict(zip(answer["joint_names"], answer["positions"][-1], strict=True))
        if kind == "planar":
            assert last["drive/theta"] == pytest.approx(4.0 - 2.0 * np.pi)
            assert answer["turning"] == []
        else:
            assert last["drive/turn_x"] == pytest.approx(2.0 * np.arctan2(0.6, 0.8))
            assert [turning["joint"] for turning in answer["turning"]] == ["drive"]
            assert "floating joints" in answer["checks"]
        assert (tmp_path / f"{kind}.png").stat().st_size > 10_000
