"""Records: every number comes back bit for bit, and what is solved again is answered the same."""

import json
import math
import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.bench.verify.requests import KINDS, draw
from kinopt_ros.bench.verify.robots import Subject, subjects
from kinopt_ros.cli import main
from kinopt_ros.errors import InvalidRequestError, KinoptError
from kinopt_ros.geometry.shapes import PlacedShape, PointCloud
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.preferences.manipulability import Manipulability
from kinopt_ros.problems.record import (
    ROBOTS,
    SCENES,
    load_record,
    make_record,
    recorded_problem,
    recorded_robot,
    save_record,
)
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.changes import add
from kinopt_ros.scene.files import scene_hash
from kinopt_ros.scene.scene import EMPTY_SCENE, SceneObject
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status

SUBJECTS = {subject.name: subject for subject in subjects()[0]}
ARM = SUBJECTS["panda"]


def saved(folder: Path, subject: Subject, kind: str, seed: int = 0, timeout: float | None = None) -> Path:
    problem = draw(subject, np.random.default_rng(seed), 4, kind).problem
    solver = create_solver("cpu", subject.robot)
    solver.warm_up()
    result = solver.solve_ik(problem)
    record = make_record(
        subject.robot, problem, "cpu", {}, timeout, result.status.tolist(), result.messages, subject.urdf
    )
    file = folder / f"{kind}.yaml"
    save_record(record, file, subject.urdf)
    return file


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("name", ["panda", "gantry", "mimic"])
def test_every_number_comes_back(tmp_path: Path, name: str, kind: str) -> None:
    subject = SUBJECTS[name]
    problem = draw(subject, np.random.default_rng(3), 4, kind).problem
    if kind == "preference" and len(problem.variables) > 5:
        problem = replace(problem, preference=Manipulability(0.25, problem.posture))
    save_record(
        make_record(subject.robot, problem, "cpu", urdf=subject.urdf), tmp_path / "r.yaml", subject.urdf
    )
    record = load_record(tmp_path / "r.yaml")
    robot = recorded_robot(record, tmp_path / "r.yaml")
    again = recorded_problem(record, robot)
    for before, after in zip(problem.targets, again.targets, strict=True):
        assert before.link == after.link
        assert before.position_tolerance == after.position_tolerance
        assert before.orientation_tolerance == after.orientation_tolerance
        np.testing.assert_array_equal(before.T_base_target, after.T_base_target)
        assert (before.T_link_tool is None) is (after.T_link_tool is None)
        if before.T_link_tool is not None and after.T_link_tool is not None:
            np.testing.assert_array_equal(before.T_link_tool, after.T_link_tool)
    for field in ("state", "seeds", "variables"):
        np.testing.assert_array_equal(getattr(problem, field), getattr(again, field))
    for field in (
        "base_link",
        "joints",
        "num_solutions",
        "min_separation",
        "turns",
        "random_seed",
    ):
        assert getattr(problem, field) == getattr(again, field)
    assert type(problem.preference) is type(again.preference)
    if isinstance(problem.preference, Manipulability) and isinstance(again.preference, Manipulability):
        assert problem.preference.weight == again.preference.weight
    assert (problem.posture is None) is (again.posture is None)
    if problem.posture is not None and again.posture is not None:
        np.testing.assert_array_equal(problem.posture.reference, again.posture.reference)
        np.testing.assert_array_equal(problem.posture.weight, again.posture.weight)
    np.testing.assert_array_equal(robot.limits.lower, subject.robot.limits.lower)
    solver = create_solver("cpu", subject.robot)
    solver.warm_up()
    np.testing.assert_array_equal(solver.solve_ik(problem).q, create_solver("cpu", robot).solve_ik(again).q)


def test_a_base_that_was_a_joint_comes_back_as_one(tmp_path: Path) -> None:
    srdf = (
        '<robot name="panda"><virtual_joint name="base" type="floating" parent_frame="odom" child_link="panda_link0"/>'
        "</robot>"
    )
    robot = robot_from_urdf(ARM.urdf, srdf, virtual_joint=True)
    problem = ik_problem(robot, np.eye(4), base_link="odom", tip_link="panda_link8")
    record = make_record(robot, problem, "cpu", urdf=ARM.urdf, srdf=srdf)
    save_record(record, tmp_path / "r.yaml", ARM.urdf, srdf)
    again = recorded_robot(load_record(tmp_path / "r.yaml"), tmp_path / "r.yaml")
    assert again.variable_names == robot.variable_names
    assert recorded_problem(record, again).joints == problem.joints


def test_a_deadline_starts_anew(tmp_path: Path) -> None:
    record = load_record(saved(tmp_path, ARM, "plain", timeout=2.0))
    assert record.timeout == 2.0
    deadline = recorded_problem(record, ARM.robot).deadline
    assert deadline is not None
    assert math.isfinite(deadline)


def test_the_description_is_kept_once(tmp_path: Path) -> None:
    saved(tmp_path, ARM, "plain")
    saved(tmp_path, ARM, "tool")
    (description,) = (tmp_path / ROBOTS).iterdir()
    assert description.read_text() == ARM.urdf


def test_a_full_disk_leaves_no_half_description(tmp_path: Path) -> None:
    """A description is named after its whole content: who finds it takes it for whole, ever after."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            saved(tmp_path, ARM, "plain")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [file for file in tmp_path.rglob("*") if file.is_file()]
    saved(tmp_path, ARM, "plain")
    (description,) = (tmp_path / ROBOTS).iterdir()
    assert description.read_text() == ARM.urdf


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no record"),
        ("[1, 2]", "no record"),
        ("kinopt_record: 99", "no record"),
        ("kinopt_record: 1\nrobot: x", "not a whole record"),
        ("{unclosed", "cannot be read"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(InvalidRequestError, match=words):
        load_record(file)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("num_solutions: 1", "num_solutions: 0"),
        ("link: panda_link8", "link: flange"),
        ("- panda_joint3", "- elbow"),
        ("position_tolerance: 0.0001", "position_tolerance: tight"),
        ("- []", "- [1.0]"),
    ],
)
def test_a_record_that_is_not_consistent_is_refused(tmp_path: Path, old: str, new: str) -> None:
    file = saved(tmp_path, ARM, "plain")
    text = file.read_text()
    if old not in text:
        old, new = old.replace("- ", ""), new.replace("- ", "")
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(KinoptError):
        recorded_problem(load_record(file), ARM.robot)


def test_replay_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(tmp_path, ARM, "plain")
    saved(tmp_path, SUBJECTS["gantry"], "tool")
    assert main(["replay", str(tmp_path)]) == 0
    assert "SUCCESS" in capsys.readouterr().out
    record = load_record(file)
    # As if it had been solved before, at a place where nobody can be.
    problem = dict(record.problem)
    target = dict(problem["targets"][0])
    target["T_base_target"] = [[1.0, 0, 0, 9.0, 0, 1.0, 0, 0, 0, 0, 1.0, 0, 0, 0, 0, 1.0]] * len(
        target["T_base_target"]
    )
    problem["targets"] = [target]
    worse = replace(record, problem=problem, status=(int(Status.SUCCESS),) * len(record.status))
    save_record(worse, tmp_path / "worse.yaml")
    assert main(["replay", str(tmp_path / "worse.yaml"), "--json"]) == 1
    output = capsys.readouterr().out
    assert '"worse": 1' in output
    assert "out of reach" in output


def test_a_file_that_is_no_record_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path, ARM, "plain")
    (tmp_path / "half.yaml").write_text("kinopt_record: 1\nrobot: panda")
    assert main(["replay", str(tmp_path), "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["records"]
    assert [row["now"] for row in rows if row["file"] != "half.yaml"] == [["SUCCESS"]]
    assert [row["message"] for row in rows if row["file"] == "half.yaml"] == [
        "'half.yaml' is not a whole record: the record has no variables"
    ]


@pytest.mark.parametrize(("arguments", "words"), [(["nowhere"], "nowhere"), (["{folder}"], "no record")])
def test_replay_of_nothing_is_refused(
    tmp_path: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *(argument.replace("{folder}", str(tmp_path)) for argument in arguments)]) == 1
    assert words in capsys.readouterr().err


def small_arm() -> str:
    """Four joints, a ball on every link."""
    axes = ("0 0 1", "0 1 0", "0 1 0", "0 1 0")
    ball = '<collision><origin xyz="0 0 0.15"/><geometry><sphere radius="0.05"/></geometry></collision>'
    links = "".join(f'<link name="l{i}">{ball}</link>' for i in range(5))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="0 0 0.3"/><axis xyz="{axis}"/><limit lower="-2.5" upper="2.5" effort="1" velocity="1"/></joint>'
        for i, axis in enumerate(axes)
    )
    return f'<robot name="small">{links}{joints}</robot>'


def test_the_scene_is_kept_beside_the_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("coal")
    urdf = small_arm()
    robot = robot_from_urdf(urdf)
    cloud = PlacedShape(PointCloud(np.random.default_rng(0).normal(size=(400, 3)) * 0.05, 0.01), np.eye(4))
    T_root_object = np.eye(4)
    T_root_object[:3, 3] = 0.4, 0.3, 0.7
    scene = add(EMPTY_SCENE, robot, SceneObject("cloud", (cloud,), T_root_object))
    T = forward_kinematics(robot, np.array([0.3, 0.5, 0.4, 0.2]), links=("l4",))[0]
    problem = ik_problem(robot, T, tip_link="l4", free_axes=["rx", "ry", "rz"], scene=scene, clearance=0.01)
    solver = create_solver("cpu", robot)
    solver.warm_up()
    result = solver.solve_ik(problem)
    record = make_record(robot, problem, "cpu", {}, None, result.status.tolist(), result.messages, urdf)
    file = tmp_path / "r.yaml"
    save_record(record, file, urdf, scene=scene)
    save_record(record, tmp_path / "twice.yaml", urdf, scene=scene)
    assert len(list((tmp_path / SCENES).glob("*.yaml"))) == 1
    read = load_record(file)
    again = recorded_problem(read, recorded_robot(read, file), file)
    assert again.scene is not None
    assert (scene_hash(again.scene), again.clearance) == (scene_hash(scene), 0.01)
    np.testing.assert_array_equal(solver.solve_ik(again).q, result.q)
    assert main(["replay", str(file)]) == 0
    assert Status(int(result.status[0])).name in capsys.readouterr().out
    with pytest.raises(InvalidRequestError, match="does not lie beside the record"):
        recorded_problem(read, robot)
    (tmp_path / SCENES / f"{scene_hash(scene)}.yaml").unlink()
    with pytest.raises(InvalidRequestError, match="does not lie beside the record"):
        recorded_problem(read, robot, file)


def test_axes_that_were_locked_stay_so(tmp_path: Path) -> None:
    srdf = (
        '<robot name="panda"><virtual_joint name="base" type="planar" parent_frame="odom" child_link="panda_link0"/>'
        "</robot>"
    )
    robot = robot_from_urdf(ARM.urdf, srdf, virtual_joint=True)
    problem = ik_problem(
        robot, np.eye(4), base_link="odom", tip_link="panda_link8", locked_joints=["base/x", "base/theta"]
    )
    record = make_record(robot, problem, "cpu", urdf=ARM.urdf, srdf=srdf)
    save_record(record, tmp_path / "r.yaml", ARM.urdf, srdf)
    again = recorded_problem(load_record(tmp_path / "r.yaml"), robot)
    assert again.joints == problem.joints
    assert again.joints[0] == "base/y"
    np.testing.assert_array_equal(again.variables, problem.variables)
