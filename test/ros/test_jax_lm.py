"""A node with the plugin jax_lm: served by it, or handed over until it is ready."""

import time
from typing import Any

import pytest
from support.ros_requests import StartNode, ik, pose, stand
from support.trajectory_goals import COMPILER

from kinopt_ros.ros.client.client import Client
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver
from kinopt_ros.status import Status

pytestmark = pytest.mark.skipif(
    JaxLmSolver.unavailable_reason() is not None, reason=str(JaxLmSolver.unavailable_reason())
)


ONE_PROGRAM = {"jax_lm.batch_sizes": "1", "jax_lm.escalation.rounds": 0}
"""Nobody here asks for more than one pose, or for one that a beam does not find."""


def ask(client: Client, **fields: Any) -> Any:
    return client.call("solve_ik", ik(pose(0.45, 0.1, 0.4), **fields))


def asked_until(client: Client, wanted: str, **fields: Any) -> Any:
    """The first answer of a solver; until it is ready others answer, or none."""
    end = time.monotonic() + COMPILER
    while time.monotonic() < end:
        answer = ask(client, **fields)
        if answer.solver_used == wanted:
            assert answer.status.code == Status.SUCCESS
            return answer
        client.spin(0.3)
    pytest.fail(f"still {answer.solver_used!r}: {answer.status.message} {answer.fallback_reason}")


def test_a_node_is_served_by_the_solver_of_its_parameter(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("jax_node", {**panda_parameters, **ONE_PROGRAM, "solver": "jax_lm"})
    stand(client)
    answer = ask(client)
    assert answer.status.code == Status.SUCCESS
    assert (answer.solver_used, answer.fallback_reason) == ("jax_lm", "")
    posture = asked_until(client, "cpu", prefer="closest")  # which it does not offer
    assert "a preferred posture" in posture.fallback_reason
    refused = ask(client, prefer="closest", no_fallback=True)
    assert refused.status.code == Status.UNSUPPORTED_FEATURE
    assert "jax_lm" in refused.status.message


def test_a_solver_is_prepared_when_it_is_asked_for(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    _, client = start_node("cpu_node", {**panda_parameters, **ONE_PROGRAM})
    stand(client)
    first = ask(client, solver="jax_lm")
    assert first.status.code == Status.SUCCESS
    assert first.solver_used == "cpu"
    assert "being prepared" in first.fallback_reason
    asked_until(client, "jax_lm", solver="jax_lm")
