"""Collision checks are prepared before anybody with a deadline uses them; if that fails, everybody is told why."""

import gc
import subprocess
import sys
from pathlib import Path
from weakref import ref

import numpy as np
import pytest

from kinopt_ros.errors import KinoptError, MissingPackageError, NotReadyError
from kinopt_ros.geometry.shapes import Box, PlacedShape, Shape
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.solvers import readiness
from kinopt_ros.verification.collision import check_collisions


def one_link() -> RobotModel:
    return robot_from_urdf('<robot name="r"><link name="a"/></robot>')


@pytest.mark.parametrize(
    ("raised", "expected", "words"),
    [
        (MissingPackageError("pip install coal"), MissingPackageError, "pip install coal"),
        (ZeroDivisionError("by nothing"), KinoptError, "ZeroDivisionError: by nothing"),
    ],
)
def test_why_a_robot_could_not_be_prepared_is_said(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, expected: type[KinoptError], words: str
) -> None:
    def fail(robot: RobotModel) -> None:
        raise raised

    robot = one_link()
    with pytest.raises(NotReadyError):
        readiness.check_ready(robot)
    monkeypatch.setattr(readiness, "_prepare", fail)
    with pytest.raises(type(raised)):
        readiness.prepare_collisions(robot)
    for _ in range(2):
        with pytest.raises(expected, match=words):
            readiness.check_ready(robot)
    monkeypatch.setattr(readiness, "_prepare", lambda robot: None)
    readiness.prepare_collisions(robot)
    readiness.check_ready(robot)


def test_shapes_are_made_ready_for_a_robot_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("coal")
    from kinopt_ros.collision import judge

    seen: list[Shape] = []
    monkeypatch.setattr(judge, "prepare", seen.append)
    monkeypatch.setattr(readiness, "_prepare", lambda robot: None)
    robot, box = one_link(), Box(0.1, 0.2, 0.3)
    shapes = [PlacedShape(box, np.eye(4))]
    readiness.prepare_shapes(robot, shapes)
    assert not seen
    readiness.prepare_collisions(robot)
    readiness.prepare_shapes(robot, shapes)
    assert seen == [box]
    readiness.prepare_scene(robot, Scene(objects={"box": SceneObject("box", tuple(shapes), np.eye(4))}))
    assert seen == [box, box]


def test_a_robot_that_could_not_be_prepared_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(robot: RobotModel) -> None:
        raise MissingPackageError("coal")

    monkeypatch.setattr(readiness, "_prepare", fail)
    robot = one_link()
    with pytest.raises(MissingPackageError):
        readiness.prepare_collisions(robot)
    seen = ref(robot)
    del robot
    gc.collect()
    assert seen() is None


def test_a_robot_without_shapes_can_be_prepared() -> None:
    bare = robot_from_urdf(
        """<robot name="bare"><link name="a"/><link name="b"/>
        <joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
    )
    readiness.prepare_collisions(bare)
    readiness.check_ready(bare)
    assert check_collisions(bare, EMPTY_SCENE, bare.default_q[None]).free.all()


IN_SERVICE = """
import numpy as np
from support.types_of_kernels import compiled_twice, entry_points

from kinopt_ros.collision.nearby import FEWEST
from kinopt_ros.geometry.shapes import Box, HeightMap, Mesh, Octomap, PlacedShape, PointCloud, Sphere
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject
from kinopt_ros.solvers.readiness import prepare_collisions, prepare_scene
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.collision import check_collisions, clearance_of
from kinopt_ros.verification.sweep import first_contact, free_segment, least_clearance

robot = load_robot("panda")
prepare_collisions(robot)
prepared = entry_points()
assert prepared

hand = np.eye(4)
hand[:3, 3] = 0.3, 0.0, 0.6
ground = np.eye(4)
ground[2, 3] = 0.1
points = np.zeros((FEWEST, 3))
points.flags.writeable = False
corners = np.array([[0.0, 0.0, 0.0], [0.4, 0.0, 0.0], [0.0, 0.4, 0.0], [0.0, 0.0, 0.4]])
mesh = Mesh(corners, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
shapes = {
    "box": (Box(0.1, 0.1, 0.1), hand), "ball": (Sphere(0.1), hand), "mesh": (mesh, hand),
    "cloud": (PointCloud(points, 0.05), hand), "octomap": (Octomap(points, np.full(FEWEST, 0.1)), hand),
    "ground": (HeightMap(np.zeros((3, 3)), 0.5), ground),
}
scenes = [
    Scene(objects={name: SceneObject(name, (PlacedShape(shape, np.eye(4)),), T)})
    for name, (shape, T) in shapes.items()
]
scenes.append(Scene(objects={str(k): SceneObject(str(k), (PlacedShape(Box(0.1, 0.1, 0.1), np.eye(4)),), hand)
                             for k in range(2 * FEWEST)}))
scenes += [
    Scene(attached={"tool": AttachedObject("tool", (PlacedShape(shape, np.eye(4)),), "panda_hand", np.eye(4),
                                           frozenset({"panda_hand"}))})
    for shape, _ in shapes.values() if not isinstance(shape, HeightMap)
]
names = robot.group("panda_arm").joints
variables = np.array([robot.variable_index[name] for name in names])
still = np.zeros((2, len(names)))
fixed = robot.default_q.copy()
fixed.flags.writeable = False
for scene in scenes:
    prepare_scene(robot, scene)
    for q in (fixed, fixed.copy()):
        position = np.stack([q[variables], q[variables] + 0.1])
        motion = JointTrajectory(names, np.array([0.0, 1.0]), position, still, still.copy())
        check_collisions(robot, scene, q[None])
        clearance_of(robot, scene, q)
        first_contact(robot, scene, q, variables, motion)
        least_clearance(robot, scene, q, variables, motion)
        free_segment(robot, scene, q, q + 0.1)
assert entry_points() == prepared, entry_points() - prepared
assert compiled_twice() == []
"""


def test_no_scene_waits_for_a_compiler_where_a_robot_is_prepared() -> None:
    """A wall that came in the midst of a motion, with many small boxes, was driven through: its first look waited."""
    pytest.importorskip("coal")
    tests = Path(__file__).parents[2]
    code = f"import sys; sys.path.insert(0, {str(tests)!r})\n{IN_SERVICE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
