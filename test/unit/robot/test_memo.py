"""Tests that what follows from a robot is computed once, and forgotten with it."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf


def robot_of(name: str) -> RobotModel:
    return robot_from_urdf(f'<robot name="{name}"><link name="base"/></robot>')


def test_each_result_is_computed_once_per_robot() -> None:
    calls = []

    @remembered
    def shout(robot: RobotModel, what: str, times: int = 1) -> tuple[str, ...]:
        calls.append((robot.name, what, times))
        return (f"{robot.name} {what}",) * times

    a, b = robot_of("a"), robot_of("b")
    assert shout(a, "hey") == ("a hey",)
    assert shout(a, "hey") is shout(a, "hey")
    assert shout(b, "hey") == ("b hey",)
    assert shout(a, "hey", times=2) == ("a hey", "a hey")
    assert calls == [("a", "hey", 1), ("b", "hey", 1), ("a", "hey", 2)]
    assert shout.__name__ == "shout"


def test_errors_are_not_remembered() -> None:
    calls = []

    @remembered
    def read(robot: RobotModel, file: str) -> str:
        calls.append(file)
        if len(calls) == 1:
            raise OSError(file)
        return Path(file).name

    robot = robot_of("a")
    with pytest.raises(OSError, match="it"):
        read(robot, "it")
    assert read(robot, "it") == read(robot, "it") == "it"
    assert len(calls) == 2


def test_it_ends_with_the_robot_and_the_next_one_starts_anew() -> None:
    @remembered
    def name_of(robot: RobotModel) -> str:
        return robot.name

    places = set()
    for k in range(50):
        robot = robot_of(f"robot{k}")
        places.add(id(robot))
        assert name_of(robot) == f"robot{k}"
        gone = weakref.ref(robot)
        del robot
        gc.collect()
        assert gone() is None, "nothing that is remembered keeps the robot"
    assert len(places) < 50, "identities came back: that is what is tested here"


def test_threads_get_the_same_result() -> None:
    @remembered
    def thing(robot: RobotModel) -> list[str]:
        return [robot.name]

    robot = robot_of("a")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: thing(robot), range(64)))
    assert all(each == ["a"] for each in found)
    assert thing(robot) is thing(robot)
