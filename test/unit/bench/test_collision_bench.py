"""kinopt bench collision: scenes, the independent judge, and figures."""

import argparse
import json

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
pytest.importorskip("coal")
from kinopt_ros.bench.collision import command
from kinopt_ros.bench.collision.judge import CollisionJudge
from kinopt_ros.bench.collision.scenes import GAP, SceneMaker
from kinopt_ros.bench.verify.judge import Judge
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.collision.judge import distance
from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError
from kinopt_ros.geometry.meshes import hull_of
from kinopt_ros.geometry.shapes import Box, Capsule, Cone, Cylinder, HeightMap, Mesh, PlacedShape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import find_robot, load_robot, robot_names
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.verification.collision import check_collisions

needs_ur5 = pytest.mark.skipif("ur5" not in robot_names(), reason="example-robot-data is not installed")


def judge_of(name):
    robot = load_robot(name)
    subject = Subject(name, find_robot(name)[0].read_text(encoding="utf-8"), robot, robot.root_link, ())
    return robot, CollisionJudge(subject, Judge(subject))


def scene_with(shape, T):
    return Scene(objects={"thing": SceneObject("thing", (PlacedShape(shape, np.eye(4)),), T)})


def values(robot, q):
    return dict(zip(robot.variable_names, q.tolist(), strict=True))


SHAPES = [
    Box(0.1, 0.1, 0.1),
    Sphere(0.05),
    Cylinder(0.05, 0.1),
    Capsule(0.03, 0.1),
    Cone(0.05, 0.1),
    hull_of(np.random.default_rng(0).uniform(-0.06, 0.06, (30, 3))),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: type(shape).__name__)
def test_the_judge_sees_what_the_hand_runs_into(shape):
    robot, judge = judge_of("panda")
    q = robot.default_q
    T = forward_kinematics(robot, q[None], ("panda_hand",))[0, 0].copy()
    for T_shape, hit in ((T.copy(), True), (np.eye(4), False)):
        if not hit:
            T_shape[:3, 3] = 2.0, 2.0, 2.0
        judge.enter(scene_with(shape, T_shape))
        assert bool(judge.collision(values(robot, q))) == hit
    judge.enter(EMPTY_SCENE)
    assert judge.collision(values(robot, q)) == ""


def test_the_judge_sees_ground():
    robot, judge = judge_of("panda")
    ground = HeightMap(np.random.default_rng(1).uniform(0.0, 0.1, (21, 21)), 0.1)
    for z, hit in ((-0.3, False), (0.05, True), (3.0, True)):
        T = np.eye(4)
        T[:3, 3] = -1.0, -1.0, z
        judge.enter(scene_with(ground, T))
        assert bool(judge.collision(values(robot, robot.default_q))) == hit


def test_the_judge_sees_self_collisions():
    robot, judge = judge_of("panda")
    judge.enter(EMPTY_SCENE)
    folded = robot.default_q.copy()
    folded[robot.variable_names.index("panda_joint4")] = -3.0
    folded[robot.variable_names.index("panda_joint6")] = 0.1
    assert "panda" in judge.collision(values(robot, folded))


@needs_ur5
def test_the_judge_sees_an_obstacle_inside_a_link():
    robot, judge = judge_of("ur5")
    T = forward_kinematics(robot, robot.default_q[None], ("base_link",))[0, 0].copy()
    judge.enter(scene_with(Box(1e-3, 1e-3, 1e-3), T))
    inside = judge.collision(values(robot, robot.default_q))
    report = check_collisions(robot, scene_with(Box(1e-3, 1e-3, 1e-3), T), robot.default_q[None])
    assert bool(inside) == (not report.free[0])


@needs_ur5
@pytest.mark.parametrize("name", ["panda", "ur5"])
def test_both_judges_agree(name):
    """The one of the library, and the one of the benchmark, on configurations in a cluttered scene."""
    robot, judge = judge_of(name)
    tip = command.ARMS[name][1]
    rng = np.random.default_rng(2)
    moved = list(range(min(robot.nq, 7)))
    scene = SceneMaker(robot, tip, moved, rng).scene(0)
    judge.enter(scene)
    q = np.repeat(robot.default_q[None], 60, axis=0)
    q[:, moved] = rng.uniform(robot.limits.lower[moved], robot.limits.upper[moved], (60, len(moved))) * 0.5
    theirs = np.array([not judge.collision(values(robot, row)) for row in q])
    ours = check_collisions(robot, scene, q, contacts=False).free
    assert theirs.any()
    assert not theirs.all()
    # Ours may be the stricter one: ground is a little higher, and open meshes are their hulls.
    assert not (ours & ~theirs).any()
    assert (ours == theirs).mean() >= 0.95


def test_scenes_are_cluttered_and_keep_off_what_does_not_move():
    robot = load_robot("panda")
    maker = SceneMaker(robot, "panda_link8", list(range(7)), np.random.default_rng(3))
    first, second = maker.scene(0), maker.scene(1)
    kinds = [type(thing.shapes[0].shape) for thing in first.objects.values()]
    assert {Box, Sphere, Cylinder, Capsule, Cone, Mesh, HeightMap} == set(kinds)
    assert len(kinds) == 12
    assert HeightMap not in [type(thing.shapes[0].shape) for thing in second.objects.values()]
    base = robot.collision_shapes["panda_link0"][0]
    for thing in (*first.objects.values(), *second.objects.values()):
        found = distance(thing.shapes[0].shape, thing.T_root_object, base.shape, base.T_frame_shape)
        assert found.distance >= GAP - 1e-6


def test_figures_of_a_small_run(capsys):
    args = argparse.Namespace(robot="panda", solver="cpu", requests=12, restarts=250, seed=4, json=True)
    assert command.main(args) == 0
    [row] = json.loads(capsys.readouterr().out)["rows"]
    assert row["requests"] == 12
    assert row["rejected"] == 0
    assert row["solved"] >= 11
    assert row["solved"] <= row["feasible"] <= 12
    assert row["share"] == row["solved"] / row["feasible"]
    assert 0.0 < row["median_ms"] <= row["p99_ms"] <= row["max_ms"]
    assert sum(row["codes"].values()) == 12
    args.json = False
    args.requests = 1
    assert command.main(args) == 0
    assert "panda" in capsys.readouterr().out


def test_a_success_in_collision_is_rejected(monkeypatch, capsys):
    """The benchmark asks without the scene: what then runs into obstacles is no success."""
    ask = command.CollisionBench._problem
    monkeypatch.setattr(
        command.CollisionBench, "_problem", lambda self, T, scene=None, **more: ask(self, T, **more)
    )
    args = argparse.Namespace(robot="panda", solver="cpu", requests=30, restarts=0, seed=5, json=True)
    assert command.main(args) == 1
    [row] = json.loads(capsys.readouterr().out)["rows"]
    assert row["rejected"] > 0
    assert row["rejected"] == row["requests"] - round(row["share_clear_at_once"] * row["requests"])
    assert "in collision" in row["objections"][0]


def test_bad_numbers_and_missing_packages_are_refused(monkeypatch):
    args = argparse.Namespace(robot="panda", solver="cpu", requests=0, restarts=0, seed=0, json=True)
    with pytest.raises(InvalidRequestError, match="requests is 0"):
        command.main(args)
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    with pytest.raises(SolverUnavailableError, match="pip install pin"):
        command.CollisionBench("panda", *command.ARMS["panda"], "cpu", 0)
