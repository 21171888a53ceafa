"""Nodes of tests, forked from a process that has loaded what they need: starting one anew takes four seconds of a core.

All else is as with ``NodeProcess``: a process of its own, which runs the same program to its end. Tests of how a node
starts use ``NodeProcess``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from kinopt_ros.ros.client.process import NodeProcess, Started

_PROGRAM = Path(__file__).with_name("node_starter.py")
_READ_LATE = ("ROS_", "RMW_", "FAST", "SKIP_DEFAULT_XML", "XLA_", "JAX_", "PYTEST_")
"""Beginnings of variables that nothing has read yet when a node is forked."""
_STARTED_ANEW = 60.0
"""Longest time until a forked process is there, s."""


class ForkedNode(NodeProcess):
    """A node that starts quickly, in the environment that this process has now."""

    def _start(self, module: str, arguments: Sequence[str], output: IO[bytes]) -> Started:
        starter = _starter_for(dict(os.environ))
        if starter is None:
            return super()._start(module, arguments, output)
        return starter.start(module, arguments, output)


class _ForkedProcess:
    """What ``subprocess.Popen`` offers, for a process that another one has started."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self._code: int | None = None

    def poll(self) -> int | None:
        return self._ended(0.0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(["node"], timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self._code is None:
            waiting = select.poll()
            waiting.register(self._status, select.POLLIN)
            if waiting.poll(None if timeout is None else 1e3 * timeout):
                said = os.read(self._status, 16)
                os.close(self._status)
                if not said:
                    raise RuntimeError(f"nobody knows how process {self.pid} ended: its starter has gone")
                self._code = int(said)
        return self._code


class _Starter:
    """The process that forks nodes."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._lock = threading.Lock()
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(_PROGRAM), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        if self._requests.recv(100) != b"loaded":
            raise RuntimeError("the process that forks nodes has not begun; what it said is above")

    def start(self, module: str, arguments: Sequence[str], output: IO[bytes]) -> _ForkedProcess:
        """Fork a process that runs a module."""
        request = {
            "environment": dict(os.environ),
            "folder": os.getcwd(),
            "module": module,
            "arguments": list(arguments),
        }
        ours, theirs = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._requests, [json.dumps(request).encode()], [output.fileno(), theirs])
                pid = int(self._requests.recv(100))
        finally:
            os.close(theirs)
        return _ForkedProcess(pid, ours)

    def close(self) -> None:
        """End it; nodes that still run go on."""
        self._requests.close()
        self._process.wait(_STARTED_ANEW)


_MOST = 2
"""Number of environments that nodes are forked for at a time."""
_lock = threading.Lock()
_starters: list[_Starter] = []
_seen: list[dict[str, str]] = []


def _starter_for(environment: Mapping[str, str]) -> _Starter | None:
    """Return a process that has loaded what it would load in an environment; None if that is a single test's."""
    wanted = _of_a_beginning(environment)
    with _lock:
        found = next((s for s in _starters if _of_a_beginning(s.environment) == wanted), None)
        if found is None:
            if wanted not in _seen:
                _seen.append(wanted)
                return None
            if len(_starters) == _MOST:
                _starters.pop(0).close()
            found = _Starter(environment)
            _starters.append(found)
    return found


def begin() -> None:
    """Let nodes be forked in the environment that this process has now."""
    with _lock:
        _seen.append(_of_a_beginning(os.environ))


def close() -> None:
    """End the processes that fork nodes."""
    with _lock:
        while _starters:
            _starters.pop().close()


def _of_a_beginning(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if not name.startswith(_READ_LATE)}
