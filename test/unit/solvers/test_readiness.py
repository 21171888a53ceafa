"""Collision checks are prepared before anybody with a deadline uses them; if that fails, everybody is told why."""

import gc
from weakref import ref

import pytest

from kinopt_ros.errors import KinoptError, MissingPackageError, NotReadyError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE
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
