"""A node with the plugin hjcd: served by it on the CPU, and by another solver where its device is not there."""

import contextlib
import os
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from std_srvs.srv import Trigger
from support.ros_requests import StartNode, ik, pose, stand

from kinopt_msgs.msg import SolverInfo
from kinopt_msgs.srv import ListSolvers
from kinopt_ros.ros.client.client import Client
from kinopt_ros.solvers.hjcd.plugin import HjcdSolver
from kinopt_ros.status import Status

pytestmark = pytest.mark.skipif(
    HjcdSolver.unavailable_reason() is not None, reason=str(HjcdSolver.unavailable_reason())
)


@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
def test_a_node_is_served_by_the_solver_of_its_parameter(
    start_node: StartNode, panda_parameters: dict[str, object], algorithm: str
) -> None:
    parameters = {"solver": "hjcd", "hjcd.device": "cpu", "hjcd.algorithm": algorithm}
    _, client = start_node("hjcd_node", {**panda_parameters, **parameters})
    stand(client)
    answer = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4)))
    assert answer.status.code == Status.SUCCESS
    assert (answer.solver_used, answer.fallback_reason) == ("hjcd", "")
    several = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4), num_solutions=5))
    assert several.num_found[0] == 5
    assert several.solver_used == "hjcd"


LOSES_ITS_DEVICE = """
import sys

if "kinopt_ros.ros.main" in sys.orig_argv:  # the node; not its child process, which finds this file, too
    import os

    import warp

    synchronize_device = warp.synchronize_device

    def lost(device):
        if os.path.exists({flag!r}):
            raise RuntimeError("Failed to synchronize device cuda:0: Warp CUDA error 700: an illegal memory access")
        synchronize_device(device)

    warp.synchronize_device = lost
"""


def test_a_node_whose_device_is_lost_goes_on_in_a_child_process(
    start_node: StartNode,
    panda_parameters: dict[str, object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No request is lost: the next solver answers until the child is ready, which ends with the node."""
    flag = tmp_path / "lost"
    (tmp_path / "sitecustomize.py").write_text(LOSES_ITS_DEVICE.format(flag=str(flag)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    process, client = start_node("hjcd_lost", {**panda_parameters, "solver": "hjcd", "hjcd.device": "cpu"})
    stand(client)

    def listed() -> SolverInfo:
        solvers = client.call("list_solvers", ListSolvers.Request()).solvers
        return next(info for info in solvers if info.name == "hjcd")

    # The solver that takes over is prepared after the robot serves.
    assert client.spin_until(
        lambda: client.call("ready", Trigger.Request()).message.endswith("all is prepared"), 600.0
    )
    before = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4)))
    assert before.solver_used == "hjcd"
    assert (listed().available, listed().reason) == (True, "")
    assert not children(process.pid)
    flag.touch()
    answer = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4)))
    assert answer.status.code == Status.SUCCESS
    assert answer.solver_used == "cpu"
    assert "CUDA error 700" in answer.fallback_reason
    end = time.monotonic() + 600.0
    while answer.solver_used != "hjcd":
        assert time.monotonic() < end
        client.spin(0.1)
        answer = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4)))
        assert answer.status.code == Status.SUCCESS
    assert list(answer.positions) == list(before.positions)
    assert listed().available
    assert "works in a child process" in listed().reason
    if find_spec("diagnostic_msgs") is not None:
        assert "works in a child process" in diagnosed(client)
    (child,) = children(process.pid)
    assert "rclpy" not in Path(f"/proc/{child}/maps").read_text()
    assert process.stop() == 0
    end = time.monotonic() + 60.0
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def diagnosed(client: Client) -> str:
    """Return what /diagnostics says of the solver, next time."""
    from diagnostic_msgs.msg import DiagnosticArray

    said: list[str] = []

    def keep(array: DiagnosticArray) -> None:
        said.extend(status.message for status in array.status if status.name == "hjcd_lost: solver hjcd")

    client.node.create_subscription(DiagnosticArray, "/diagnostics", keep, 10)
    end = time.monotonic() + 60.0
    while not said:
        assert time.monotonic() < end
        client.spin(0.1)
    return said[-1]


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # some end meanwhile
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return found


def test_a_device_that_is_not_there_is_said_and_nothing_is_lost(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    parameters = {"solver": "hjcd", "hjcd.device": "cuda:99"}
    _, client = start_node("hjcd_nowhere", {**panda_parameters, **parameters})
    stand(client)
    answer = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4)))
    assert answer.status.code == Status.SUCCESS
    assert answer.solver_used == "cpu"
    assert "cuda:99" in answer.fallback_reason
    refused = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4), no_fallback=True))
    assert refused.status.code == Status.SOLVER_UNAVAILABLE
    assert "cuda:99" in refused.status.message
    solvers = {info.name: info for info in client.call("list_solvers", ListSolvers.Request()).solvers}
    assert solvers["cpu"].available
    assert not solvers["hjcd"].available
    assert "cuda:99" in solvers["hjcd"].reason
