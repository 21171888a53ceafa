"""A node with plugins of other makers: what one of them does must not keep others from being answered."""

import os
from pathlib import Path

import pytest
from support.ros_requests import StartNode, ik, pose

from kinopt_ros.ros.client.client import Client, NodeTimeoutError
from kinopt_ros.status import Status

AT = pose(0.45, 0.1, 0.4)
_MODULE = """
import time

import numpy as np

from kinopt_ros.robot.model import JointType
from kinopt_ros.solvers.base import Capabilities, Solver


class Panic(BaseException):
    "What plugins written in Rust raise."


class Hangs(Solver):
    name, version, capabilities = "hangs", "1", Capabilities(frozenset(JointType))

    def _configure(self, robot, options): ...

    def _solve_ik(self, problem):
        while problem.random_seed == 1:  # all others are answered, as the node wants while it starts
            time.sleep(0.1)
        raise RuntimeError("nothing found")


class Panics(Hangs):
    name = "panics"

    def _solve_ik(self, problem):
        raise Panic("no licence")


def broken(): ...
"""
_ENTRY_POINTS = """
[kinopt_ros.solvers]
hangs = foreign_plugins:Hangs
panics = foreign_plugins:Panics
broken = foreign_plugins:broken
"""


def ask(client: Client, solver: str) -> tuple[Status, str]:
    request = ik(AT, solver=solver, no_fallback=True)
    status = client.call("solve_ik", request).status
    return Status(status.code), status.message


def until_prepared(client: Client, solver: str) -> tuple[Status, str]:
    for _ in range(1000):
        status, message = ask(client, solver)
        if status is not Status.NOT_READY:
            break
        client.spin(0.1)
    return status, message


def test_no_plugin_keeps_others_from_being_answered(
    start_node: StartNode,
    panda_parameters: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "foreign_plugins.py").write_text(_MODULE)
    info = tmp_path / "foreign_plugins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign_plugins\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(_ENTRY_POINTS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    process, client = start_node("foreign_plugins_node", panda_parameters)

    assert until_prepared(client, "panics") == (
        Status.SOLVER_UNAVAILABLE,
        "solver 'panics' failed: Panic: no licence",
    )
    assert ask(client, "broken")[0] is Status.SOLVER_UNAVAILABLE
    assert "nothing found" in until_prepared(client, "hangs")[1]
    # A lone request, which may be answered on the thread that takes all others in.
    with pytest.raises(NodeTimeoutError):
        client.call("solve_ik", ik(AT, solver="hangs", random_seed=1, no_fallback=True), timeout=2.0)
    assert ask(client, "cpu") == (Status.SUCCESS, "")
    process.interrupt()
    assert process.wait(30.0) == 0, process.log_text()
