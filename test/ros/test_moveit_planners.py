"""Planners and their parameters, as MoveIt's clients ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.ros_requests import StartNode

from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.process import NodeProcess

pytestmark = pytest.mark.timeout(600)
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def node(
    moveit: Any, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> tuple[NodeProcess, Client]:
    return start_shared_node("kinopt_planners", panda_parameters)


@pytest.fixture(scope="module")
def ask(node: tuple[NodeProcess, Client], moveit: Any) -> Iterator[Ask]:
    """Sends a request of some fields to one of the three services."""
    client = node[1]
    types = {
        "query_planner_interface": moveit.srv.QueryPlannerInterfaces,
        "get_planner_params": moveit.srv.GetPlannerParams,
        "set_planner_params": moveit.srv.SetPlannerParams,
    }
    clients = {name: client.node.create_client(kind, name) for name, kind in types.items()}

    def call(name: str, **fields: Any) -> Any:
        assert client.spin_until(clients[name].service_is_ready, 60.0), f"{name} is not there"
        for _ in range(10):  # an answer is lost if the node has not found this client yet
            future = clients[name].call_async(types[name].Request(**fields))
            if client.spin_until(future.done, 5.0):
                return future.result()
        raise AssertionError(f"{name} does not answer")

    yield call
    for each in clients.values():
        client.node.destroy_client(each)


def values(ask: Ask, **fields: Any) -> dict[str, str]:
    params = ask("get_planner_params", **fields).params
    assert len(params.keys) == len(params.values) == len(params.descriptions)
    return dict(zip(params.keys, params.values, strict=True))


def test_the_planners_are_those_of_this_node(ask: Ask) -> None:
    [found] = ask("query_planner_interface").planner_interfaces
    assert (found.name, found.pipeline_id) == ("kinopt_ros", "kinopt")
    assert {"cpu", "LIN", "PTP"} <= set(found.planner_ids)


def test_parameters_of_planners_can_be_read_and_set(ask: Ask, moveit: Any) -> None:
    before = values(ask)
    assert float(before["trajectory.timeout"]) == 30.0
    assert not any(name.startswith("cpu.") for name in before)
    assert "cpu.max_restarts" in values(ask, pipeline_id="kinopt", planner_config="cpu")
    given = moveit.msg.PlannerParams(keys=["trajectory.timeout"], values=["7"])
    ask("set_planner_params", params=given)
    assert float(values(ask)["trajectory.timeout"]) == 7.0
    given = moveit.msg.PlannerParams(keys=["trajectory.clearance"], values=["0.01"])
    ask("set_planner_params", params=given, replace=True)  # all others as at first
    after = values(ask)
    assert float(after["trajectory.clearance"]) == 0.01
    assert float(after["trajectory.timeout"]) == 5.0
    ask("set_planner_params", params=moveit.msg.PlannerParams(keys=[*before], values=[*before.values()]))
    assert values(ask) == before


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"keys": ["range"], "values": ["1"]}, "'range' is no parameter of this planner"),
    "read-only": ({"keys": ["trajectory.threads"], "values": ["9"]}, "trajectory.threads"),
    "of another": ({"keys": ["cpu.max_restarts"], "values": ["9"]}, "cpu.max_restarts"),
    "value": ({"keys": ["trajectory.timeout"], "values": ["-1"]}, "trajectory.timeout"),
    "text": ({"keys": ["trajectory.timeout"], "values": ["{"]}, "trajectory.timeout"),
    "fewer values": ({"keys": ["trajectory.timeout"], "values": []}, "1 keys and 0 values"),
    "long": ({"keys": ["trajectory.timeout"], "values": ["1" * 20_000]}, "20000 characters"),
    "long together": (
        {"keys": ["trajectory.timeout", "trajectory.clearance"], "values": ["1" * 9_000] * 2},
        "18000 characters",
    ),
    "twice": ({"keys": ["trajectory.timeout"] * 2, "values": ["1"] * 2}, "a key twice"),
    "no YAML": ({"keys": ["trajectory.timeout"], "values": ["*a"]}, "'*a', which is no value of a parameter"),
    "of another kind": (
        {"keys": ["trajectory.timeout"], "values": ["!!bool x"]},
        "'!!bool x', which is no value of a parameter",
    ),
    "many digits": ({"keys": ["trajectory.timeout"], "values": ["9" * 9_000]}, "is no value of a parameter"),
    "large": ({"keys": ["trajectory.timeout"], "values": ["9" * 30]}, "integers of 64 bits"),
    "nested": ({"keys": ["trajectory.timeout"], "values": ["[" * 5_000]}, "nested too deeply"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_set_is_logged_and_nothing_is(
    name: str, ask: Ask, moveit: Any, node: tuple[NodeProcess, Client]
) -> None:
    fields, words = BAD[name]
    process, client = node
    before = values(ask)
    client.spin(1.1)  # each sentence once a second
    logged = len(process.log_text())
    ask("set_planner_params", params=moveit.msg.PlannerParams(**fields))
    assert client.spin_until(lambda: words in process.log_text()[logged:], 60.0), process.log_text()[logged:]
    assert values(ask) == before


def test_other_pipelines_have_no_parameters(ask: Ask) -> None:
    assert not values(ask, pipeline_id="ompl")
    assert not values(ask, planner_config="RRTConnect")
