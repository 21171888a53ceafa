"""Nodes in processes of their own, forked from one that has imported and loaded what all of them need.

They take 0.7 s of computing instead of 3 to start and to end. The first one of each environment, of all processes of a
run of the tests, is started as users start it, as is every ``NodeProcess``: tests of the start itself, and of what is
not loaded yet, take that.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from support.forking import Wanted

from kinopt_ros.ros.client.process import NodeProcess

_PROGRAM = Path(__file__).with_name("forking.py")
_SUBREAPER = 36
"""prctl's PR_SET_CHILD_SUBREAPER."""
_LATE = ("ROS_", "RMW_", "PYTEST_", "XDG_CACHE_HOME")
"""How variables begin that make no other environment: they are looked up after a fork."""
_begun: set[frozenset[tuple[str, str]]] = set()
"""Environments that a node was started in."""
_marks: list[Path] = []
"""Folder in which processes that share a run of the tests write down these environments, if there are several."""
_forking: dict[frozenset[tuple[str, str]], subprocess.Popen[bytes]] = {}
"""Processes that fork, by environment."""


class ForkedNode(NodeProcess):
    """A node that is forked, or another program of the package."""

    def _start(self, module: str, words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        environment = frozenset(item for item in os.environ.items() if not item[0].startswith(_LATE))
        if _is_first(environment):
            return super()._start(module, words, log)
        wanted = Wanted(
            module=module, words=list(words), environment=dict(os.environ), folder=os.getcwd(), log=str(log)
        )
        forking = _forking_process(environment)
        assert forking.stdin is not None
        assert forking.stdout is not None
        forking.stdin.write(json.dumps(wanted).encode() + b"\n")
        forking.stdin.flush()
        number = forking.stdout.readline()
        assert number, f"what forks nodes has ended with {forking.wait()}: its errors are above"
        return _Left(int(number))


def share_first_nodes(folder: Path) -> None:
    """Start one node of each environment for all processes that share this folder, not for each of them."""
    folder.mkdir(exist_ok=True)
    _marks[:] = [folder]


def _is_first(environment: frozenset[tuple[str, str]]) -> bool:
    """Whether no node was started in an environment before; from now on one was."""
    if environment in _begun:
        return False
    _begun.add(environment)
    name = sha256(repr(sorted(environment)).encode()).hexdigest()
    try:
        for folder in _marks:
            (folder / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _forking_process(environment: frozenset[tuple[str, str]]) -> subprocess.Popen[bytes]:
    """Return the process that forks nodes of an environment, which is this one's; start it, if there is none."""
    if environment not in _forking:
        if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "processes are not left to this one")
        _forking[environment] = subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    return _forking[environment]


def end_forking() -> None:
    """End the processes that fork."""
    for process in _forking.values():
        process.communicate()
    _forking.clear()


class _Left(subprocess.Popen[bytes]):
    """A process that was left to this one, which has not started it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | Any = None
        self._ended = os.pidfd_open(pid)

    def poll(self) -> int | None:
        return self._status(0.0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("a node", timeout or 0.0)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _status(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._ended)
        return self.returncode
