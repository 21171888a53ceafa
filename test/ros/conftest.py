"""Real nodes in processes of their own, on this machine only and in a domain of this run's own."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.ros.main import missing
from kinopt_ros.solvers.registry import create_solver

_MISSING = missing()
if _MISSING is not None:
    collect_ignore_glob = ["test_*.py"]
else:
    import rclpy
    from support.forked_nodes import ForkedNode, end_forking, share_first_nodes
    from support.ros_requests import StartNode, stand

    from kinopt_ros.ros.client.client import Client
    from kinopt_ros.ros.client.isolation import isolate
    from kinopt_ros.ros.client.process import NodeProcess
    from kinopt_ros.ros.robot.bundled import bundled_parameters


def pytest_report_header() -> str | None:
    """Return why the tests of the node are skipped, if they are."""
    return None if _MISSING is None else f"tests of the node are skipped: {_MISSING}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(item.fspath).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.ros)


_nodes: dict[str, NodeProcess] = {}
"""Nodes of the tests that run, by name."""
_PATIENCE = 120.0
"""Longest time that tests wait for an answer, s: on a busy machine a cloud of a million points takes half a minute."""
_LOG = 6000
"""Characters of a node's log that are shown with a test that failed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with a test that failed what its nodes have printed, and how those ended that did."""
    report = yield
    if report.failed:
        for name, process in _nodes.items():
            report.sections.append((f"node {name}, {_state(process)}", process.log_text()[-_LOG:]))
    return report


def _state(process: NodeProcess) -> str:
    ended = process.wait(0.0)
    if ended is None:
        return "running"
    return f"ended with {ended}" if ended >= 0 else f"ended by {signal.Signals(-ended).name}"


@pytest.fixture(scope="session")
def ros(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An initialised rclpy, in a domain of this run's own, as are the nodes that it starts."""
    isolate()
    if "PYTEST_XDIST_WORKER" in os.environ:
        share_first_nodes(tmp_path_factory.getbasetemp().parent / "first_nodes")
    # Compile here what a node would compile after it is ready, answering NOT_READY meanwhile.
    solver = create_solver("cpu", load_robot("panda"))
    solver.warm_up()
    solver.close()
    rclpy.init(args=[])
    yield
    rclpy.try_shutdown()
    end_forking()


@pytest.fixture(scope="module")
def control_msgs(interface_packages: None) -> None:
    """The package control_msgs, for this process and those that it starts."""


@pytest.fixture(scope="session")
def panda_texts() -> tuple[str, str]:
    """URDF and SRDF of the bundled Panda."""
    urdf, srdf = find_robot("panda")
    assert srdf is not None
    return urdf.read_text(), srdf.read_text()


@pytest.fixture(scope="session")
def panda_parameters() -> dict[str, object]:
    """Parameters of a node for the Panda.

    Requests have more time than usual, and joint states may be older, as tests share slow machines.
    """
    more_time = {"ik.timeout": 30.0, "trajectory.timeout": 30.0, "state_timeout": 30.0}
    return {**bundled_parameters("panda"), "default_group": "panda_arm", **more_time}


@pytest.fixture(scope="module")
def process(
    ros: None, panda_parameters: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeProcess]:
    """A node for the Panda, alive until the end of the module."""
    log = tmp_path_factory.mktemp("node") / "node.log"
    with ForkedNode(panda_parameters, log) as running:
        _nodes["kinopt"] = running
        yield running
        _nodes.pop("kinopt", None)
        assert running.running, f"the node died, {_state(running)}:\n{running.log_text()}"
        assert running.stop() == 0, running.log_text()
        assert "internal error" not in running.log_text(), running.log_text()  # said at its end, too


@pytest.fixture(scope="module")
def client(process: NodeProcess) -> Iterator[Client]:
    """A client of that node, which is ready and sees a robot standing at READY."""
    connected = Client(patience=_PATIENCE)
    connected.wait_until_ready(600.0, lambda: process.running)
    stand(connected)
    yield connected
    connected.close()


@pytest.fixture
def start_node(ros: None) -> Iterator[StartNode]:
    """Starts nodes of a name and parameters of the test's own; gives their process and a client."""
    yield from _starter()


@pytest.fixture(scope="module")
def start_shared_node(ros: None) -> Iterator[StartNode]:
    """Starts nodes that several tests of a module share, since each start costs seconds; gives process and client."""
    yield from _starter()


def _starter() -> Iterator[StartNode]:
    with ExitStack() as ends:

        def start(
            name: str, parameters: dict[str, object], ready: bool = True, forked: bool = True
        ) -> tuple[NodeProcess, Client]:
            kind = ForkedNode if forked else NodeProcess
            _nodes[name] = process = ends.enter_context(kind(parameters, name=name))
            client = Client(f"{name}_client", name, _PATIENCE)
            ends.callback(_ended, name, process, client)
            if ready:
                client.wait_until_ready(600.0, lambda: process.running)
            return process, client

        yield start


def _ended(name: str, process: NodeProcess, client: Client) -> None:
    _nodes.pop(name, None)
    client.close()
    state = _state(process)
    process.stop()
    log = process.log_text()
    assert " by SIG" not in state, f"the node died, {state}:\n{log}"
    assert "internal error" not in log, log
    assert "Traceback" not in log, log
