"""People who wait for the compiler are told so, once, and on stderr if they set up no logging."""

import logging
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

numba = pytest.importorskip("numba", reason="numba is not installed")

import kinopt_ros.numba_cache  # noqa: F401  (has it said)
from kinopt_ros.compiler_notice import CompilerNotice
from kinopt_ros.numba_notice import NumbaListener


class Time:
    """A clock that tests move on, and timers that go off by it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []

    def timer(self, delay: float, call: Callable[[], None]) -> Any:
        entry = (self.now + delay, call)
        return SimpleNamespace(start=lambda: self.due.append(entry), cancel=lambda: self._end(entry))

    def _end(self, entry: tuple[float, Callable[[], None]]) -> None:
        if entry in self.due:
            self.due.remove(entry)

    def passes(self, duration: float) -> None:
        self.now += duration
        for entry in [entry for entry in self.due if entry[0] <= self.now]:
            self._end(entry)
            entry[1]()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def notice(time: Time) -> NumbaListener:
    return NumbaListener(CompilerNotice("it is kept here", lambda: time.now, time.timer))


def compiling(module: str | None) -> Any:
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


OURS, OTHERS, NOBODYS = (compiling(name) for name in ("kinopt_ros.collision.kernels.near", "numba.np", None))


def test_a_long_wait_is_said_once(
    notice: NumbaListener, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        notice.on_start(OURS)
        time.passes(1.9)
        notice.on_start(OTHERS)  # what it calls
        time.passes(10.0)
        notice.on_end(OTHERS)
        notice.on_end(OURS)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.name.startswith("kinopt_ros.")
    assert "compiling kinopt_ros.collision.kernels.near" in record.getMessage()
    assert record.getMessage().endswith("it is kept here")


def test_what_is_quick_is_not_said(
    notice: NumbaListener, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    notice.on_start(OURS)
    time.passes(1.9)
    notice.on_end(OURS)
    time.passes(100.0)  # nobody waits
    assert not caplog.records


def test_many_short_waits_are_a_long_one(
    notice: NumbaListener, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        assert not caplog.records
        notice.on_start(OURS)
        time.passes(0.9)
        notice.on_end(OURS)
    assert len(caplog.records) == 1


def test_code_of_others_is_their_affair(
    notice: NumbaListener, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    for event in (OTHERS, NOBODYS):
        notice.on_start(event)
        time.passes(100.0)
        notice.on_end(event)
    assert not caplog.records
    assert not time.due


def test_it_is_seen_where_no_logging_is_set_up() -> None:
    script = """
from types import SimpleNamespace
import numba
from kinopt_ros.compiler_notice import CompilerNotice
from kinopt_ros.numba_notice import NumbaListener

at_once = lambda delay, call: SimpleNamespace(start=call, cancel=lambda: None)
numba.core.event.register("numba:compile", NumbaListener(CompilerNotice("it is kept here", timer=at_once)))

def function(x):
    return x

function.__module__ = "kinopt_ros.example"
numba.njit("float64(float64)")(function)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.count("compiling kinopt_ros.example") == 1
    assert not done.stdout


def test_two_that_are_compiled_beside_each_other_are_one_wait(
    time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    notice = CompilerNotice("it is kept here", lambda: time.now, time.timer)
    with notice.compiling("one"), notice.compiling("another"):
        time.passes(1.9)
        assert not caplog.records
        time.passes(0.2)
    (record,) = caplog.records
    assert "compiling one and" in record.getMessage()


def test_this_process_says_it() -> None:
    listeners = numba.core.event._registered["numba:compile"]
    assert sum(isinstance(listener, NumbaListener) for listener in listeners) == 1
