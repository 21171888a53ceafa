"""A node with the plugin hjcd: served by it on the CPU, and by another solver where its device is not there."""

import pytest
from support.ros_requests import READY, StartNode, ik, pose

from kinopt_msgs.srv import ListSolvers
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
    client.pretend_robot(READY)
    client.spin(0.3)
    answer = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4)))
    assert answer.status.code == Status.SUCCESS
    assert (answer.solver_used, answer.fallback_reason) == ("hjcd", "")
    several = client.call("solve_ik", ik(pose(0.45, 0.1, 0.4), num_solutions=5))
    assert several.num_found[0] == 5
    assert several.solver_used == "hjcd"


def test_a_device_that_is_not_there_is_said_and_nothing_is_lost(
    start_node: StartNode, panda_parameters: dict[str, object]
) -> None:
    parameters = {"solver": "hjcd", "hjcd.device": "cuda:99"}
    _, client = start_node("hjcd_nowhere", {**panda_parameters, **parameters})
    client.pretend_robot(READY)
    client.spin(0.3)
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
