"""Nothing is left of scenes that were replaced, nor of robots: live objects are counted, not memory."""

import gc
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from support.scene_holders import serving

from kinopt_ros.collision.packed_bodies import packed_bodies_of
from kinopt_ros.geometry.shapes import Box, HeightMap, Mesh, PlacedShape, PointCloud, Shape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.changes import add
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.verification.collision import check_collisions

CHANGES = 1_000
DESCRIPTIONS = 100


def arm() -> RobotModel:
    limit = '<limit lower="-2.5" upper="2.5" velocity="2" effort="1"/>'
    ball = '<collision><origin xyz="0.2 0 0"/><geometry><sphere radius="0.05"/></geometry></collision>'
    links = "".join(f'<link name="l{i}">{ball}</link>' for i in range(4))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="{0.4 if i else 0} 0 0"/><axis xyz="0 0 1"/>{limit}</joint>'
        for i in range(3)
    )
    return robot_from_urdf(f'<robot name="arm">{links}{joints}</robot>')


def shapes(number: int) -> Shape:
    """A moved box, a new cloud, new ground, a new mesh."""
    rng = np.random.default_rng(number)
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * (1.0 + number * 1e-6)
    kinds: tuple[Shape, ...] = (
        Box(0.1, 0.1, 0.1),
        PointCloud(rng.random((200, 3)), 0.01),
        HeightMap(rng.random((8, 8)) - 2.0, 0.5),
        Mesh(corners, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])),
    )
    return kinds[0 if number % 20 else (number // 20) % 4]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What needs the collector of cycles would pile up: it does not know how large arrays are."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def own_cache(kept_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept_folder))


def plan(robot: RobotModel, solver: Any, scene: Scene) -> None:
    from kinopt_ros.planning.trajectories import plan_trajectory

    plan_trajectory(solver, trajectory_problem(robot, [robot.default_q + 0.1], scene=scene))


@pytest.mark.usefixtures("own_cache", "no_collector")
def test_nothing_is_left_of_scenes_that_were_replaced() -> None:
    pytest.importorskip("coal")
    robot = arm()
    prepare_collisions(robot)
    solver = create_solver("cpu", robot)
    T = forward_kinematics(robot, robot.default_q, links=("l3",))[0]
    holder = serving(robot, pytest.fail)
    gone: list[weakref.ref[Any]] = []
    for number in range(CHANGES):
        T_root_object = np.eye(4)
        T_root_object[:3, 3] = 5.0, 0.001 * number, 0.0
        shape = shapes(number)
        body = SceneObject("it", (PlacedShape(shape, np.eye(4)),), T_root_object)
        scene = holder.change(robot, [("add", lambda old, body=body: add(old, robot, body, replacing=True))])
        packed = packed_bodies_of(robot, scene)
        gone += [weakref.ref(each) for each in (scene, body, shape, packed, packed.bodies, packed.obstacles)]
        if number % 20 == 0:  # every shape is asked about, too
            assert solver.solve_ik(ik_problem(robot, T, tip_link="l3", scene=scene)).success.all()
            check_collisions(robot, scene, robot.default_q[None])
        if number % 250 == 0:
            plan(robot, solver, scene)
        del shape, body, scene, packed
    alive = [number // 6 for number, each in enumerate(gone) if each() is not None]
    assert len(set(alive)) <= 1 + CHANGES // 250, "a search for a motion may leave a cycle, nothing else does"
    gc.collect()
    assert {number // 6 for number, each in enumerate(gone) if each() is not None} == {CHANGES - 1}, alive


def answered(robot: RobotModel) -> None:
    """What a node does with a description."""
    pool = SolverPool(robot, on_demand=lambda name: pool.close())  # refers to itself, as the node's does
    pool.prepare("cpu")
    T = forward_kinematics(robot, robot.default_q, links=("l3",))[0]
    prepare_collisions(robot)
    for scene in (None, EMPTY_SCENE):
        pool.solve_ik(ik_problem(robot, T, tip_link="l3", scene=scene))
    for scene in (None, EMPTY_SCENE):
        problem = trajectory_problem(robot, [robot.default_q + 0.1], scene=scene)
        from kinopt_ros.planning.trajectories import plan_trajectory

        plan_trajectory(pool.get("cpu"), problem)
    pool.close()


@pytest.mark.usefixtures("own_cache")
def test_nothing_is_left_of_robots_that_were_replaced() -> None:
    pytest.importorskip("coal")
    answered(arm())  # threads of libraries start once
    gc.collect()
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    gone: list[weakref.ref[Any]] = []
    for _ in range(DESCRIPTIONS):
        robot = arm()
        answered(robot)
        gone.append(weakref.ref(robot))
        del robot
    gc.collect()
    assert not [each for each in gone if each() is not None]
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before


def test_a_jax_solver_goes_with_its_robot(own_cache: None) -> None:
    pytest.importorskip("jax")
    from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver

    gone: list[weakref.ref[Any]] = []
    for _ in range(3):
        robot, solver = arm(), JaxLmSolver()
        solver.configure(robot, {"groups": "", "batch_sizes": "1"})
        T = forward_kinematics(robot, robot.default_q, links=("l3",))[0]
        free = ik_problem(robot, T, tip_link="l3", orientation_tolerance=np.inf)
        assert solver.solve_ik(free).success.all()
        chains = [prepared.packed for prepared in solver._chains._prepared._values.values()]
        gone += [weakref.ref(each) for each in (robot, solver, solver._programs, *chains)]
        solver.close()
        del robot, solver, chains, free
    gc.collect()
    assert not [each for each in gone if each() is not None]


def weak_dictionaries() -> dict[str, Any]:
    found = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("kinopt_ros"):
            for attribute, value in vars(module).items():
                if isinstance(value, weakref.WeakKeyDictionary):
                    found[f"{name}.{attribute}"] = value
    return found


PASSED_BY = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType, FrameType, weakref.ref)


def reachable(start: Any, wanted: Any, most: int = 100_000) -> bool:
    """Whether an object leads to another one."""
    todo, seen = [start], {id(start)}
    while todo and len(seen) < most:
        each = todo.pop()
        if each is wanted:
            return True
        for other in gc.get_referents(each):
            if id(other) not in seen and not isinstance(other, PASSED_BY):
                seen.add(id(other))
                todo.append(other)
    return False


@pytest.mark.usefixtures("own_cache")
def test_no_weak_dictionary_holds_its_own_keys() -> None:
    """A value that leads to its key keeps it for ever."""
    pytest.importorskip("coal")
    robot = arm()
    answered(robot)
    scene = add(EMPTY_SCENE, robot, SceneObject("it", (PlacedShape(Box(1, 1, 1), np.eye(4)),), np.eye(4)))
    check_collisions(robot, scene, robot.default_q[None])
    looked_at = 0
    places = weak_dictionaries()
    places |= {
        f"kept of {function}": kept
        for function, kept in robot.kept.items()
        if isinstance(kept, weakref.WeakKeyDictionary)
    }
    for place, known in places.items():
        for key, value in list(known.items()):
            looked_at += 1
            assert not reachable(value, key), place
    assert looked_at > 4
    assert reachable([{"a": (robot,)}], robot), "the search finds what there is"
