"""Child process that searches in the plugin's place, and how it is asked."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from kinopt_ros.errors import NotReadyError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.collision_shapes import CollisionModel
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.hjcd.chain import ChainShape
from kinopt_ros.solvers.hjcd.messages import Question, Ready, Refusal, Setup
from kinopt_ros.solvers.result import IkCandidates

START_SECONDS = 300.0
"""Longest time that a child may take to be ready, as it may have to compile, s."""
GRACE = 0.25
"""Time after the deadline of a request within which its answer must be there, s: the search looks at the clock every
some 10 ms."""
_REAP_SECONDS = 5.0
"""Longest wait for a killed process to be gone, s. One that waits for a broken driver may never be."""


class ChildError(RuntimeError):
    """The child process died, hangs, or cannot do it."""


class Child:
    """One process, from its start to its end. May be used from several threads, of which it serves one at a time.

    A new interpreter is started, not a copy of this process, in which CUDA is broken and threads hold locks; nor is it
    ``multiprocessing`` that starts it, which would run the main program's file once more, ROS and all.
    """

    def __init__(self, robot: RobotModel, options: Mapping[str, Any], shapes: tuple[ChainShape, ...]) -> None:
        """Returns at once; ``started`` says when it is ready.

        Raises:
            ChildError: the system starts no process.
        """
        self._lock = threading.Lock()
        self._late = self._over = False
        self._socket, theirs = socket.socketpair()
        self._connection = Connection(os.dup(self._socket.fileno()))
        # As this one was found, the package may be on a path that only this process has.
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", f"{__package__}.child_main", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env={**os.environ, "PYTHONPATH": paths},
                    start_new_session=True,  # Ctrl-C is for this process, which ends its child
                )
        except OSError as error:
            raise ChildError(f"no child process can be started: {error}") from error
        self._finalizer = weakref.finalize(self, _end, self._process, self._socket)
        # Searches look at no shapes, which may be large.
        setup = Setup(
            replace(robot, collision=CollisionModel(), link_spheres={}, warnings=()), dict(options), shapes
        )
        self.started: Future[None] = Future()
        """Future that is done when requests may come, or with a ChildError."""
        threading.Thread(target=self._begin, args=(setup,), name="hjcd child", daemon=True).start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def solve(self, problem: IkProblem, every_lane: bool) -> IkCandidates:
        """Return the answer of its engine; see ``Engine.solve``.

        Raises:
            ChildError: there is none, and there will be none from this child.
            NotReadyError: kernels are being compiled there.
        """
        patience = -1.0 if problem.deadline is None else max(0.0, problem.deadline - time.monotonic())
        if not self._lock.acquire(timeout=min(patience, threading.TIMEOUT_MAX)):
            return _nothing(problem)  # in time: others were before
        try:
            if problem.late:  # it is not the child that is
                return _nothing(problem)
            until = None if problem.deadline is None else problem.deadline + GRACE
            answer = self._ask(Question(problem, every_lane), until)
        finally:
            self._lock.release()
        if isinstance(answer, IkCandidates):
            return answer
        if isinstance(answer, Refusal) and answer.later:
            raise NotReadyError(answer.sentence)
        raise ChildError(_said_no(answer))

    def end(self) -> None:
        """End the process; who waits for its answer gets a ChildError. It may have ended before."""
        self._over = True
        self._finalizer()
        with suppress(subprocess.TimeoutExpired):  # another thread may be at it
            self._process.wait(_REAP_SECONDS)

    def _begin(self, setup: Setup) -> None:
        try:
            with self._lock:
                answer = self._ask(setup, time.monotonic() + START_SECONDS)
            if not isinstance(answer, Ready):
                raise ChildError(_said_no(answer))
        except Exception as error:
            self.end()
            self.started.set_exception(error)
        else:
            self.started.set_result(None)

    def _ask(self, message: Setup | Question, until: float | None) -> object:
        """Return what it says to a message; held by one thread at a time.

        Raises:
            ChildError: nothing, by then.
        """
        try:
            with self._ended_at(until):
                self._connection.send(message)
                return self._connection.recv()
        except (EOFError, OSError) as error:
            raise ChildError(self._fate()) from error

    @contextmanager
    def _ended_at(self, until: float | None) -> Iterator[None]:
        """End the process at a time.

        Then nobody waits for it any longer, be it for an answer or for a message to be taken.
        """
        if until is None:
            yield
            return
        timer = threading.Timer(min(until - time.monotonic(), threading.TIMEOUT_MAX), self._give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _give_up(self) -> None:
        self._late = True
        self._finalizer()

    def _fate(self) -> str:
        """Return why it does not answer."""
        if self._over:
            return "the child process was ended: the solver is closed, or another request failed in it"
        if self._late:
            return f"the child process {self.pid} hung and was ended"
        try:
            status = self._process.wait(_REAP_SECONDS)
        except subprocess.TimeoutExpired:
            return f"the child process {self.pid} has closed its end"
        how = f"was killed by {_signal_name(-status)}" if status < 0 else f"ended with status {status}"
        return f"the child process {self.pid} {how}"


def _end(process: "subprocess.Popen[bytes]", ours: socket.socket) -> None:
    """End the process without depending on it: one that waits for a broken driver outlives a kill."""
    process.kill()
    with suppress(OSError):
        ours.shutdown(socket.SHUT_RDWR)  # wakes who sends or waits
    ours.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_SECONDS)


def _nothing(problem: IkProblem) -> IkCandidates:
    """Return the answer of a request whose deadline came before anything was tried."""
    B, n = problem.batch_size, len(problem.variables)
    attempt = problem.state[:, problem.variables].copy()
    return IkCandidates(
        np.full((B, 1, n), np.nan), attempt, np.zeros(B, dtype=np.int64), np.ones(B, dtype=np.bool_)
    )


def _said_no(answer: object) -> str:
    return f"the child process says {answer.sentence if isinstance(answer, Refusal) else repr(answer)}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
