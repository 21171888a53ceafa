"""Nothing is compiled after the node is ready: whatever costs ``cpu`` is asked for, and ``jax_lm`` in declared
structures."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support.mixed_costs import DECLARED, mixed_request

from kinopt_msgs.srv import SolveIK
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.status import Status

pytest.importorskip("jaxls")
pytestmark = pytest.mark.slow  # compilers take seconds

NAME = "mixed_node"
HERE = Path(__file__).resolve().parents[1]


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A file with a line for whatever the node compiles."""
    return tmp_path / "compiled.txt"


@pytest.fixture
def client(
    ros: None,
    panda_parameters: dict[str, object],
    record: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Client]:
    """Client of a node that counts what it compiles."""
    declared = tmp_path / "rest.yaml"
    declared.write_text(DECLARED)
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    own = {"solver": "jax_lm", "jax_lm.objectives": str(declared), "jax_lm.groups": ""}
    with NodeProcess(
        {**panda_parameters, **own}, name=NAME, module="support.counted_node", words=(str(record),)
    ) as process:
        connected = Client(f"{NAME}_client", NAME, 60.0)
        connected.wait_until_ready(600.0, lambda: process.running)
        yield connected
        connected.close()
        assert "Traceback" not in process.log_text(), process.log_text()


def answered(client: Client, request: SolveIK.Request) -> SolveIK.Response:
    """The answer, once the solver is ready that is not the node's own."""
    end = time.monotonic() + 300.0
    while True:
        response: SolveIK.Response = client.call("solve_ik", request)
        if response.status.code != Status.NOT_READY or time.monotonic() > end:
            return response
        time.sleep(0.2)


def test_nothing_is_compiled_for_requests(client: Client, record: Path) -> None:
    robot, rng = load_robot("panda"), np.random.default_rng(0)
    answered(client, mixed_request(robot, rng, on_jax=False))
    before = record.read_text() if record.exists() else ""
    for number in range(40):
        on_jax = number % 4 == 0
        request = mixed_request(robot, rng, on_jax)
        response = client.call("solve_ik", request)
        assert response.solver_used == ("jax_lm" if on_jax else "cpu"), response.status.message
        assert response.status.code in (Status.SUCCESS, Status.NO_IK_SOLUTION), response.status.message
        assert len(response.cost_values) == len(request.poses) * (1 + len(request.costs))
    assert (record.read_text() if record.exists() else "") == before
