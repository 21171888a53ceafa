"""Tests of who waits for the compiler, and who does not."""

import threading
import time

import pytest

from kinopt_ros.errors import NotReadyError
from kinopt_ros.solvers.hjcd.chain import ChainShape
from kinopt_ros.solvers.hjcd.loading import Kernels

SHAPE, OTHER = ChainShape(7, 7, True), ChainShape(6, 6, True)


class Slow:
    """Compiles when it is told to."""

    def __init__(self) -> None:
        self.loaded: list[ChainShape] = []
        self.begun = threading.Event()
        self.may_go_on = threading.Event()
        self.failure: Exception | None = None

    def load(self, shape: ChainShape) -> None:
        self.begun.set()
        assert self.may_go_on.wait(10.0)
        if self.failure is not None:
            raise self.failure
        self.loaded.append(shape)


def test_who_may_wait_does_and_only_once_per_shape() -> None:
    slow = Slow()
    slow.may_go_on.set()
    kernels = Kernels(slow)
    for shape in (SHAPE, OTHER, SHAPE):
        kernels.need(shape, may_wait=True)
    kernels.need(OTHER, may_wait=False)
    assert slow.loaded == [SHAPE, OTHER]


def test_others_are_told_at_once_and_served_later() -> None:
    slow = Slow()
    kernels = Kernels(slow)
    for _ in range(3):
        with pytest.raises(NotReadyError, match="7 variables"):
            kernels.need(SHAPE, may_wait=False)
    slow.may_go_on.set()
    kernels.wait()
    kernels.need(SHAPE, may_wait=False)
    assert slow.loaded == [SHAPE]


def test_a_compiler_that_fails_is_told_and_tried_again() -> None:
    slow = Slow()
    slow.failure = RuntimeError("no space left")
    slow.may_go_on.set()
    kernels = Kernels(slow)
    with pytest.raises(NotReadyError):
        kernels.need(SHAPE, may_wait=False)
    kernels.wait()
    with pytest.raises(RuntimeError, match="no space left"):
        kernels.need(SHAPE, may_wait=False)
    slow.failure = None
    end = time.monotonic() + 10.0
    while not slow.loaded:
        assert time.monotonic() < end
        with pytest.raises(NotReadyError):
            kernels.need(SHAPE, may_wait=False)
        kernels.wait()
    kernels.need(SHAPE, may_wait=False)


def test_what_nobody_waits_for_is_not_compiled_after_the_end() -> None:
    slow = Slow()
    kernels = Kernels(slow)
    shapes = [ChainShape(variables, variables, True) for variables in range(1, 20)]
    for shape in shapes:
        with pytest.raises(NotReadyError):
            kernels.need(shape, may_wait=False)
    assert slow.begun.wait(10.0)
    kernels.stop()
    slow.may_go_on.set()
    kernels.wait()
    assert slow.loaded == shapes[:1]
