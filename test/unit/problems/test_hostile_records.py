"""Records that lead out of their folder, or are none: a sentence."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from kinopt_ros.cli import main
from kinopt_ros.conformance.robots import six_revolute
from kinopt_ros.errors import InvalidRequestError, KinoptError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.record import load_record, make_record, recorded_problem, recorded_robot, save_record
from kinopt_ros.robot.sources import find_robot, load_robot

URDF = find_robot("panda")[0].read_text()


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A record in a folder of its own."""
    robot = load_robot("panda")
    T = forward_kinematics(robot, robot.default_q, links=("panda_hand",))
    made = make_record(
        robot, ik_problem(robot, T, tip_link="panda_hand"), "cpu", {"a": [1], "b": [1]}, 0.1, urdf=URDF
    )
    (tmp_path / "folder").mkdir()
    save_record(made, tmp_path / "folder" / "record.yaml", URDF)
    return tmp_path / "folder" / "record.yaml"


def changed(record: Path, **changes: Any) -> None:
    plain = yaml.safe_load(record.read_text())
    record.write_text(yaml.safe_dump(plain | changes))


def replayed(record: Path) -> Any:
    found = load_record(record)
    return recorded_problem(found, recorded_robot(found, record), record)


def test_the_record_itself_is_usable(record: Path) -> None:
    assert replayed(record).batch_size == 1


@pytest.mark.parametrize(
    "name", ["../outside", "/tmp/x", "../../etc/passwd", "a" * 16, 5, ["a"], "x\0y"], ids=range(7)
)
def test_no_name_in_a_record_leads_out_of_its_folder(record: Path, name: Any) -> None:
    (record.parent.parent / "outside.urdf").write_text(URDF)
    (record.parent / "robots" / f"{'a' * 16}.urdf").symlink_to(record.parent.parent / "outside.urdf")
    changed(record, urdf=name)
    with pytest.raises(InvalidRequestError, match=r"does not lie beside|not a whole record|cannot be read"):
        replayed(record)


def test_a_scene_of_a_record_lies_beside_it(record: Path) -> None:
    (record.parent / "scenes").mkdir()
    (record.parent.parent / "outside.yaml").write_text("{}")
    (record.parent / "scenes" / f"{'b' * 16}.yaml").symlink_to(record.parent.parent / "outside.yaml")
    for name in ("../../outside", "b" * 16, 5, {"a": 1}):
        plain = yaml.safe_load(record.read_text())
        changed(record, problem=plain["problem"] | {"scene": name})
        with pytest.raises(InvalidRequestError, match="does not lie beside the record"):
            replayed(record)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"problem": []}, "problem is"),
        ({"problem": {}}, "not consistent: KeyError"),
        ({"problem": {"posture": False}}, "not consistent"),
        ({"variables": 5}, "variables is 5"),
        ({"lower": ["a"]}, "lower is 'a'"),
        ({"lower": [0.0]}, "1 lower and 8 upper limits"),
        ({"timeout": "soon"}, "timeout is 'soon'"),
        ({"timeout": float("inf")}, "timeout is inf; allowed is 0 to 3600 s"),
        ({"solver": 5}, "solver is 5"),
        ({"options": 5}, "options is 5"),
        ({"status": [10**20]}, "a status is 100000000000000000000"),
        ({"messages": [5]}, "a message is 5"),
        ({"extra": 5}, "has 'extra'"),
        ({"robot": "x" * 10**6, "urdf": "none"}, r"1000000 characters\) does not lie beside"),
    ],
)
def test_malformed_records(record: Path, changes: dict[str, Any], why: str) -> None:
    if changes.get("problem"):
        changes = {"problem": yaml.safe_load(record.read_text())["problem"] | changes["problem"]}
    changed(record, **changes)
    with pytest.raises(KinoptError, match=why) as caught:
        replayed(record)
    assert len(str(caught.value)) < 1_000


def test_what_is_no_record_is_a_row_of_the_table(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = record.parent
    os.mkfifo(folder / "pipe.yaml")
    (folder / "bomb.yaml").write_text(
        "a: &a [1]\n" + "".join(f"{c}: &{c} [*{b},*{b}]\n" for b, c in zip("abcd", "bcde", strict=True))
    )
    (folder / "deep.yaml").write_text("[" * 100_000)
    assert main(["replay", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "pipe" in said
    assert "aliases" in said


@pytest.mark.parametrize(
    "field",
    ["clearance", "min_separation", "turns", "manipulability", "random_seed", "num_solutions", "base_link"],
)
def test_fields_of_a_problem_have_their_types(record: Path, field: str) -> None:
    changed(record, problem=yaml.safe_load(record.read_text())["problem"] | {field: ["a"]})
    with pytest.raises(KinoptError, match=rf"{field} is \['a'\]"):
        replayed(record)


def test_lists_that_occur_twice_are_written_in_full(tmp_path: Path) -> None:
    robot = six_revolute()
    same = [1, 2]
    made = make_record(robot, ik_problem(robot, np.eye(4)[None]), "cpu", {"a": same, "b": same})
    save_record(made, tmp_path / "record.yaml")
    assert load_record(tmp_path / "record.yaml").options == {"a": [1, 2], "b": [1, 2]}
