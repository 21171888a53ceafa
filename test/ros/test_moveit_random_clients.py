"""Random requests under MoveIt's names from eight clients: each is answered, and the node minds none of them."""

from __future__ import annotations

import os
from typing import Any

import pytest
from support.thorough import times

from kinopt_ros.bench.node import moveit_load
from kinopt_ros.bench.node.moveit_load import answered_all, measure_moveit
from kinopt_ros.ros.client.client import NodeTimeoutError

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(1200)  # a compiler may be at work on a new and busy machine

SECONDS = float(os.environ.get("KINOPT_RANDOM_SECONDS", times(3, 6)))
SEED = 4
MORE_MEMORY = 300.0
"""By how much the node may grow in that time, MiB: solvers are prepared and shapes kept meanwhile."""


@pytest.fixture(scope="module")
def result(ros: None, moveit: Any, control_msgs: None) -> dict[str, Any]:
    return measure_moveit(8, SECONDS, SEED)


def test_each_request_is_answered_and_each_goal_ends(result: dict[str, Any]) -> None:
    assert (result["lost"], result["defects"]) == ([], [])
    assert result["node_alive"]
    assert result["internal_errors"] == 0
    assert answered_all(result)


def test_all_names_were_asked(result: dict[str, Any]) -> None:
    assert sum(result["answered"].values()) > 40
    goals = [name for name in result["answered"] if name.endswith(": taken")]
    assert goals
    for name in goals:
        assert result["answered"][name.replace("taken", "result")] == result["answered"][name]
    assert "0" not in result["codes"]  # UNDEFINED


def test_memory_is_bounded(result: dict[str, Any]) -> None:
    memory = result["memory"]
    assert memory["max_mib"] - memory["first_mib"] < MORE_MEMORY
    assert result["threads"]["max"] - result["threads"]["first"] < 64
    assert result["file_descriptors"]["max"] - result["file_descriptors"]["first"] < 64


def test_a_client_that_breaks_off_is_no_success(
    ros: None, moveit: Any, control_msgs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven of eight had, at their begin, and an hour of the eighth counted as one of all."""

    def breaks(self: Any, name: str, request: Any) -> None:
        raise TypeError("no capsule")

    monkeypatch.setattr(moveit_load._Sender, "_ask", breaks)
    with pytest.raises(NodeTimeoutError, match="broke off: TypeError: no capsule"):
        measure_moveit(2, 60.0, SEED)


def test_a_lost_answer_is_no_success() -> None:
    good = {"node_alive": True, "lost": [], "internal_errors": 0}
    assert answered_all(good)
    for bad in ({"node_alive": False}, {"lost": ["client 0: compute_ik"]}, {"internal_errors": 1}):
        assert not answered_all({**good, **bad})
