"""Collision checks are prepared before anybody with a deadline uses them; if that fails, everybody is told why."""

import gc
from weakref import ref

import pytest

from kinopt_ros.errors import KinoptError, MissingPackageError, NotReadyError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers import clear


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
        clear.check_ready(robot)
    monkeypatch.setattr(clear, "_prepare", fail)
    with pytest.raises(type(raised)):
        clear.prepare_collisions(robot)
    for _ in range(2):
        with pytest.raises(expected, match=words):
            clear.check_ready(robot)
    monkeypatch.setattr(clear, "_prepare", lambda robot: None)
    clear.prepare_collisions(robot)
    clear.check_ready(robot)


def test_a_robot_that_could_not_be_prepared_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(robot: RobotModel) -> None:
        raise MissingPackageError("coal")

    monkeypatch.setattr(clear, "_prepare", fail)
    robot = one_link()
    with pytest.raises(MissingPackageError):
        clear.prepare_collisions(robot)
    seen = ref(robot)
    del robot
    gc.collect()
    assert seen() is None
