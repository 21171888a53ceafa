"""Tests that what a robot needs is prepared after it serves, and given up when the next one does."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.robot import loader as robot_loader
from kinopt_ros.ros.robot.loader import RobotLoader
from kinopt_ros.wanted import check_wanted

LONG = 20.0
"""Time that no test waits unless it fails, s."""


def robot(name: str) -> RobotModel:
    return robot_from_urdf(f"<robot name='{name}'><link name='a'/></robot>")


def test_the_preparation_of_a_robot_that_was_replaced_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = {name: threading.Event() for name in ("old", "new")}
    ended: list[str] = []

    def prepare_collisions(model: RobotModel) -> None:
        begun[model.name].set()
        end = time.monotonic() + LONG
        try:
            while model.name == "old" and time.monotonic() < end:
                check_wanted()
                time.sleep(0.001)
        finally:
            ended.append(model.name)

    monkeypatch.setattr(robot_loader, "_prepare", lambda pool, name, ik=True: [])
    monkeypatch.setattr(robot_loader, "prepare_collisions", prepare_collisions)
    said: list[tuple[str, KinoptError | None]] = []
    loader = RobotLoader(lambda sentence, error: said.append((sentence, error)))
    try:
        loader.load(lambda: robot("old"), {}, "cpu", ())
        assert begun["old"].wait(LONG)
        old = loader.loaded
        assert old.pool.must_wait(True, False, float("inf"))
        # One that cannot be used changes nothing.
        loader.load(lambda: robot_from_urdf("<robot/>"), {}, "cpu", ())
        loader.load(lambda: robot("new"), {}, "cpu", ())
        assert begun["new"].wait(LONG / 2.0)
        assert ended[0] == "old"
        assert loader.loaded.model.name == "new"
        assert not old.pool.must_wait(True, False, float("inf"))
        assert not any("given up" in sentence for sentence, _ in said)
    finally:
        loader.close()


@pytest.mark.parametrize("prepared", [True, False])
def test_nothing_is_asked_for_that_is_not_to_be_compiled(prepared: bool) -> None:
    """A node with ``jax_lm.groups: ""`` had its programs for plain poses compiled all the same, 14 s of computing."""
    asked: list[str] = []
    solver = SimpleNamespace(name="slow", solves_ik=lambda: True, is_prepared_for=lambda group: prepared)
    pool: Any = SimpleNamespace(
        robot=load_robot("panda"),
        prepare=lambda name: solver,
        solve_ik=lambda problem, name, allow_fallback: asked.append(name),
    )
    said = robot_loader._prepare(pool, "slow")
    assert asked == (["slow"] * 2 if prepared else [])
    assert len(said) == (not prepared)  # so that others are prepared before the robot serves
    assert all("'slow' compiles" in sentence and "'panda_arm'" in sentence for sentence in said)


def test_it_is_said_when_all_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, done = threading.Event(), threading.Event()
    said: list[str] = []

    def report(sentence: str, error: KinoptError | None) -> None:
        said.append(sentence)
        if "all is prepared" in sentence:
            done.set()

    monkeypatch.setattr(robot_loader, "_prepare", lambda pool, name, ik=True: [])
    monkeypatch.setattr(robot_loader, "prepare_collisions", lambda model: go_on.wait(LONG))
    missing = property(lambda pool: () if go_on.is_set() else ("collision checks",))
    monkeypatch.setattr(robot_loader.SolverPool, "missing", missing)
    loader = RobotLoader(report)
    try:
        loader.load(lambda: robot("one"), {}, "cpu", ())
        end = time.monotonic() + LONG
        while not loader.is_ready and time.monotonic() < end:
            time.sleep(0.001)
        assert loader.is_ready
        assert not done.is_set()
        go_on.set()
        assert done.wait(LONG)
        assert said.count("robot 'one': all is prepared") == 1
    finally:
        go_on.set()
        loader.close()


def test_who_keeps_what_belongs_to_a_robot_learns_of_it_before_requests_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came: list[tuple[str, str]] = []
    both = threading.Event()

    def comes(model: RobotModel) -> None:
        came.append((model.name, loader.loaded.model.name if loader.is_ready else "none"))

    def report(sentence: str, error: KinoptError | None) -> None:
        if sentence.startswith("ready: robot 'new'"):
            both.set()

    monkeypatch.setattr(robot_loader, "_prepare", lambda pool, name, ik=True: [])
    monkeypatch.setattr(robot_loader, "prepare_collisions", lambda model: None)
    loader = RobotLoader(report, comes)
    try:
        loader.load(lambda: robot("old"), {}, "cpu", ())
        end = time.monotonic() + LONG
        while not loader.is_ready and time.monotonic() < end:
            time.sleep(0.001)
        loader.load(lambda: robot_from_urdf("<robot/>"), {}, "cpu", ())
        loader.load(lambda: robot("new"), {}, "cpu", ())
        assert both.wait(LONG)
        assert came == [("old", "none"), ("new", "old")]
    finally:
        loader.close()


def test_a_solver_that_does_not_close_keeps_no_node_from_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    def close(pool: SolverPool) -> None:
        assert go_on.wait(LONG)
        closed.set()

    monkeypatch.setattr(robot_loader, "_prepare", lambda pool, name, ik=True: [])
    monkeypatch.setattr(robot_loader, "prepare_collisions", lambda model: None)
    monkeypatch.setattr(SolverPool, "close", close)
    loader = RobotLoader(lambda sentence, error: loaded.set())
    loader.load(lambda: robot("arm"), {}, "cpu", ())
    assert loaded.wait(LONG)
    loader.close()
    assert not closed.is_set()
    with pytest.raises(KinoptError, match="shutting down"):
        _ = loader.loaded
    go_on.set()
    assert closed.wait(LONG)


def test_robots_that_were_replaced_do_not_wait_to_be_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler may be at work for a minute, and each of a stream of descriptions takes megabytes."""
    go_on = threading.Event()
    begun: list[str] = []

    def prepare_collisions(model: RobotModel) -> None:
        begun.append(model.name)
        go_on.wait(LONG)

    monkeypatch.setattr(robot_loader, "_prepare", lambda pool, name, ik=True: [])
    monkeypatch.setattr(robot_loader, "prepare_collisions", prepare_collisions)
    loader = RobotLoader(lambda sentence, error: None)
    replaced: list[weakref.ref[RobotModel]] = []

    def load(name: str) -> None:
        loader.load(lambda: robot(name), {}, "cpu", ())
        end = time.monotonic() + LONG
        while not (loader.is_ready and loader.loaded.model.name == name and begun):
            assert time.monotonic() < end
            time.sleep(0.001)

    try:
        load("first")
        for number in range(5):
            load(f"robot {number}")
            replaced.append(weakref.ref(loader.loaded.model))
        load("last")
        gc.collect()
        assert [one() for one in replaced] == [None] * 5
        go_on.set()
        end = time.monotonic() + LONG
        while begun[-1] != "last" and time.monotonic() < end:
            time.sleep(0.001)
        assert begun == ["first", "last"]
    finally:
        go_on.set()
        loader.close()


def test_a_solver_that_hangs_keeps_no_other_one_waiting_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others still take turns, and who is not wanted any more goes."""
    monkeypatch.setattr(robot_loader, "_HANGS_SECONDS", 0.05)
    monkeypatch.setattr(robot_loader, "_LOOK_SECONDS", 0.01)
    loader = RobotLoader(lambda sentence, error: None)
    try:
        hangs = loader._turn(lambda: True)
        assert hangs is not None
        assert loader._turn(lambda: False) is None
        turn = loader._turn(lambda: True)
        assert turn is not None
        assert turn is not hangs
        turn.release()
        again = loader._turn(lambda: True)
        assert again is turn
        assert again.locked()
        again.release()
    finally:
        loader.close()


def test_what_is_prepared_on_demand_is_given_up_with_its_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    """One at a time, on threads that the end of a process waits for: a compiler at work aborts it else."""
    begun: list[str] = []
    at_work: set[str] = set()
    most, daemons, ended = [0], [False], [threading.Event(), threading.Event()]

    def prepare(pool: SolverPool, name: str, ik: bool = True) -> list[str]:
        if name not in ("jax_lm", "hjcd"):
            return []
        at_work.add(name)
        most[0] = max(most[0], len(at_work))
        daemons.append(threading.current_thread().daemon)
        begun.append(f"{name} of {pool.robot.name}")
        end = time.monotonic() + LONG
        try:
            while pool.robot.name == "old" and time.monotonic() < end:
                check_wanted()
                time.sleep(0.001)
        except KinoptError as error:
            return [str(error)]
        finally:
            at_work.discard(name)
            ended[pool.robot.name == "new"].set()
        return ["done"]

    monkeypatch.setattr(robot_loader, "_prepare", prepare)
    monkeypatch.setattr(robot_loader, "prepare_collisions", lambda model: None)
    monkeypatch.setattr(SolverPool, "warm_up_trajectories", lambda pool: None)
    said: list[str] = []
    loader = RobotLoader(lambda sentence, error: said.append(sentence))

    def asked_as_daemon(pool: SolverPool, *names: str) -> None:
        for name in names:
            asking = threading.Thread(target=loader._prepare_later, args=(pool, name), daemon=True)
            asking.start()
            asking.join(LONG)

    def serves(name: str) -> None:
        end = time.monotonic() + LONG
        while not (loader.is_ready and loader.loaded.model.name == name):
            assert time.monotonic() < end
            time.sleep(0.001)

    try:
        loader.load(lambda: robot("old"), {}, "cpu", ())
        serves("old")
        asked_as_daemon(loader.loaded.pool, "jax_lm", "hjcd", "jax_lm")
        end = time.monotonic() + LONG
        while not begun and time.monotonic() < end:
            time.sleep(0.001)
        loader.load(lambda: robot("new"), {}, "cpu", ())
        serves("new")
        assert ended[0].wait(LONG)
        asked_as_daemon(loader.loaded.pool, "jax_lm")
        assert ended[1].wait(LONG)
        assert begun == ["jax_lm of old", "jax_lm of new"]
        assert most == [1]
        assert not any(daemons)
        assert not any("given up" in sentence for sentence in said)
    finally:
        loader.close()
