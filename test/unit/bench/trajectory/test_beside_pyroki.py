"""The comparison with PyRoki, a process in its place that answers with straight lines."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
pytest.importorskip("coal")
from kinopt_ros.bench.trajectory import pyroki
from kinopt_ros.bench.trajectory.interpolation import straight_commands
from kinopt_ros.bench.trajectory.judge import MotionJudge
from kinopt_ros.bench.trajectory.tasks import TaskMaker
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.trajectory.timing import point_to_point

STRAIGHT = """#!{python}
import json, sys
from pathlib import Path
import numpy as np
folder = Path(sys.argv[2])
job = json.loads((folder / "job.json").read_text())
assert "<visual>" not in job["urdf"]
print(json.dumps({{"joints": {joints}, "versions": {{"almond-pyroki": "0"}}}}))
print("a library says something")
print(json.dumps({{"first_s": 12.5}}))
paths = []
for task in job["tasks"]:
    share = np.linspace(0.0, 1.0, 50)[:, None]
    start, goal = np.array(task["start"]), np.array(task["goal"])
    paths.append((start + share * (goal - start))[:, ::-1])
    print(json.dumps({{"done": "compiled", "wall_s": 2.5, "cpu_s": 2.0}}))
np.save(folder / "paths.npy", np.array(paths))
print(json.dumps({{"done": "as shipped", "wall_s": 50.0, "cpu_s": 60.0}}))
"""


@pytest.fixture(scope="module")
def maker():
    return TaskMaker("panda")


@pytest.fixture(scope="module")
def judge(maker):
    text = find_robot("panda")[0].read_text(encoding="utf-8")
    return MotionJudge(Subject("panda", text, maker.robot, "panda_link0", ("panda_link8",)), maker.joints)


@pytest.fixture(scope="module")
def tasks(maker):
    return pyroki.suitable(maker, 2, 0)


def problem_of(maker, task):
    goal = task.goal[maker.variables]
    return trajectory_problem(
        maker.robot,
        goal,
        joints=maker.joints,
        start=task.start,
        scene=task.scene,
        velocity_scaling=1.0,
        acceleration_scaling=1.0,
    )


def straight(maker, task):
    limits, v = maker.robot.limits, maker.variables
    return point_to_point(
        maker.joints,
        task.start[v],
        task.goal[v],
        limits.velocity[v],
        limits.acceleration[v],
        limits.jerk[v],
    )


def test_positions_alone_are_joined_by_straight_lines():
    path = np.array([[0.0, 1.0], [0.2, 1.0], [0.2, 0.5]])
    found = straight_commands(path, 0.1, 1e-3)
    assert found.time[-1] == pytest.approx(0.2)
    np.testing.assert_allclose(found.states[0, 50], [0.1, 1.0], atol=1e-12)
    np.testing.assert_allclose(found.states[1, 50], [2.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.states[1, -1], [0.0, -5.0], atol=1e-12)


def test_problems_are_those_around_one_wall(tasks):
    assert len(tasks) == 2
    assert all(len(task.scene.objects) == 1 for task in tasks)


def test_both_are_judged_alike(maker, judge, tasks, tmp_path):
    python = tmp_path / "python"
    joints = list(maker.joints)[::-1]  # in another order, as a library may have it
    python.write_text(STRAIGHT.format(python=sys.executable, joints=repr(joints).replace("'", '"')))
    python.chmod(0o755)
    problems = [problem_of(maker, task) for task in tasks]
    ours = [(SimpleNamespace(trajectory=straight(maker, task)), 0.01, 0.02) for task in tasks]
    mine, theirs, shipped = pyroki.compare(maker, judge, tasks, problems, ours, python)
    assert (mine["name"], mine["answers"], mine["in_collision"]) == ("kinopt_ros", 2, 2)
    assert (theirs["answers"], theirs["in_collision"]) == (2, 2)
    assert mine["velocity_max"] == pytest.approx(1.0, abs=1e-3)
    assert theirs["velocity_max"] < 1.0  # the same way in the same time, at constant speed
    assert max(mine["ends_max"], theirs["ends_max"]) < 1e-9
    assert theirs["wall_times_ours"] == pytest.approx(250.0)
    assert theirs["cpu_times_ours"] == pytest.approx(100.0)
    assert theirs["compile_s"] == pytest.approx(10.0)
    assert (shipped["problems"], shipped["answers"], shipped["wall_s"]) == (1, 0, 50.0)
    pyroki.print_comparison([mine, theirs, shipped])


def test_an_answer_off_the_ends_is_measured(maker, judge, tasks):
    problem = problem_of(maker, tasks[0])
    path = np.linspace(tasks[0].start[maker.variables] + 0.02, tasks[0].goal[maker.variables], 50)
    found = judge.violations(problem, straight_commands(path, 1.0, 1e-2))
    assert found.start == pytest.approx(0.02)
    assert found.goal < 1e-12
    assert found.collision
    assert found.position == 0.0


def test_a_missing_environment_is_named(maker, judge, tasks):
    with pytest.raises(SolverUnavailableError, match="pyroki-python"):
        pyroki.compare(maker, judge, [], [], [], Path("no-such-python"))


def test_a_process_that_fails_says_why(maker, judge, tasks, tmp_path):
    python = tmp_path / "python"
    python.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no such module')\n")
    python.chmod(0o755)
    with pytest.raises(SolverUnavailableError, match="no such module"):
        pyroki.compare(maker, judge, [], [], [], python)
