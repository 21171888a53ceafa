"""Large shapes are prepared beside the requests, which wait no longer than their deadlines."""

import threading
import time

import numpy as np
import pytest

from kinopt_ros.errors import KinoptError, NotReadyError
from kinopt_ros.geometry.shapes import Box, PlacedShape, PointCloud, Shape
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.solvers import readiness, scene_ready
from kinopt_ros.solvers.scene_ready import LARGE, ORDINARY, PAIRS, wait_for_scene


def scene_of(shape: Shape) -> Scene:
    return Scene(objects={"it": SceneObject("it", (PlacedShape(shape, np.eye(4)),), np.eye(4))})


def cloud(count: int) -> Scene:
    return scene_of(PointCloud(np.random.default_rng(0).random((count, 3)), 0.01))


def boxes(count: int) -> Scene:
    one = (PlacedShape(Box(0.1, 0.1, 0.1), np.eye(4)),)
    return Scene(objects={f"box {k}": SceneObject(f"box {k}", one, np.eye(4)) for k in range(count)})


@pytest.fixture
def robot() -> RobotModel:
    return robot_from_urdf('<robot name="r"><link name="a"/></robot>')


@pytest.mark.parametrize(
    "scene", [cloud(LARGE), boxes(LARGE // ORDINARY)], ids=["large shape", "many shapes"]
)
def test_a_large_scene_is_prepared_once_beside_the_requests(
    robot: RobotModel, monkeypatch: pytest.MonkeyPatch, scene: Scene
) -> None:
    go, asked = threading.Event(), []

    def slow(robot: RobotModel, scene: Scene) -> None:
        asked.append(scene)
        assert go.wait(60.0)

    monkeypatch.setattr(scene_ready, "prepare_scene", slow)
    for _ in range(3):
        with pytest.raises(NotReadyError, match="prepare_scene"):
            wait_for_scene(robot, scene, time.monotonic())
    go.set()
    wait_for_scene(robot, scene, time.monotonic() + 60.0)
    wait_for_scene(robot, scene, time.monotonic() - 1.0)  # it is ready
    assert asked == [scene]


def test_small_scenes_wait_for_nobody(robot: RobotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(robot: RobotModel, scene: Scene) -> None:
        raise AssertionError

    monkeypatch.setattr(scene_ready, "prepare_scene", never)
    for scene in (scene_of(Box(1.0, 1.0, 1.0)), cloud(LARGE - 1), boxes(LARGE // ORDINARY - 1)):
        wait_for_scene(robot, scene, time.monotonic())


def test_for_a_robot_of_many_shapes_any_scene_is_prepared_beside_the_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first answer in an empty scene came 0.3 s late for a robot of 300 links."""
    go = threading.Event()

    def slow(robot: RobotModel, scene: Scene) -> None:
        assert go.wait(60.0)

    def robot_of(count: int) -> RobotModel:
        ball = '<collision><geometry><sphere radius="0.01"/></geometry></collision>'
        links = "".join(f'<link name="{name}">{count * ball}</link>' for name in "abc")
        joints = "".join(
            f'<joint name="{a}{b}" type="continuous"><parent link="{a}"/><child link="{b}"/></joint>'
            for a, b in ("ab", "bc")
        )
        srdf = (
            '<robot name="r"><disable_collisions link1="a" link2="b"/></robot>'  # so that nothing is sampled
        )
        return robot_from_urdf(f'<robot name="r">{links}{joints}</robot>', srdf)

    monkeypatch.setattr(scene_ready, "prepare_scene", slow)
    count = int(np.sqrt(PAIRS * LARGE)) + 1
    with pytest.raises(NotReadyError, match="prepare_scene"):
        wait_for_scene(robot_of(count), EMPTY_SCENE, time.monotonic())
    wait_for_scene(robot_of(count // 2), EMPTY_SCENE, time.monotonic())
    with pytest.raises(NotReadyError, match="prepare_scene"):
        wait_for_scene(robot_of(count // 2), boxes(LARGE // ORDINARY // 2), time.monotonic())
    go.set()


def test_who_has_prepared_it_need_not_wait(robot: RobotModel) -> None:
    scene = cloud(LARGE)
    readiness.prepare_collisions(robot)
    readiness.prepare_scene(robot, scene)
    wait_for_scene(robot, scene, time.monotonic() - 1.0)


def test_a_failure_is_left_to_the_request(robot: RobotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(robot: RobotModel, scene: Scene) -> None:
        raise KinoptError("it cannot be had")

    monkeypatch.setattr(scene_ready, "prepare_scene", fails)
    wait_for_scene(robot, cloud(LARGE), time.monotonic() + 60.0)
