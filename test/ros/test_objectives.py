"""Costs in requests of the node: SolveIK, PlanTrajectory and OptimizeTrajectory."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest
import yaml
from sensor_msgs.msg import JointState
from support.pages import filled, page
from support.ros_requests import READY, StartNode, ik, pose
from support.trajectory_goals import SUCCEEDED, Goals

from kinopt_msgs.msg import Cost
from kinopt_msgs.srv import PlanTrajectory, SolveIK
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.objective_trajectories import OBJECTIVE
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status

pytest.importorskip("jaxls")
pytestmark = pytest.mark.slow  # compilers take seconds

ARM = [f"panda_joint{k}" for k in range(1, 8)]


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


@pytest.fixture(scope="module")
def client(
    start_shared_node: StartNode,
    panda_parameters: dict[str, object],
    tmp_path_factory: pytest.TempPathFactory,
) -> Client:
    profile = tmp_path_factory.mktemp("objectives") / "rest.yaml"
    # The structure of the requests below: what nobody declares is compiled when it is asked for.
    profile.write_text(
        "costs:\n"
        "  - {cost: link_pose, link: panda_link8, base_link: panda_link0, tolerance: [1.0e-4, 1.0e-3],"
        " T_base_target: {xyz: [0.4, 0.1, 0.5]}, label: pose}\n"
        "  - {cost: rest, weight: 0.1}\n"
    )
    # Nothing here asks for plain poses.
    own = {"solver": "jax_lm", "jax_lm.objectives": str(profile), "jax_lm.groups": ""}
    parameters = {**panda_parameters, **own}
    return start_shared_node("costs_node", parameters)[1]


def answered(client: Client, name: str, request: Any) -> Any:
    """The answer, once programs are compiled: no deadline waits for the compiler."""
    end = time.monotonic() + 300.0
    while True:
        response = client.call(name, request)
        if response.status.code != Status.NOT_READY or time.monotonic() > end:
            return response
        time.sleep(0.2)


def test_a_declared_structure_is_answered_at_once(client: Client, panda: RobotModel) -> None:
    response = client.call("solve_ik", ik(pose(), costs=[Cost(cost="rest", weight=[0.1])]))
    assert response.status.code == Status.SUCCESS, response.status.message
    assert response.solver_used == "jax_lm"
    q = panda.default_q.copy()
    q[[panda.variable_index[name] for name in response.joint_names]] = response.positions
    np.testing.assert_allclose(
        forward_kinematics(panda, q, ["panda_link8"])[0, :3, 3], [0.4, 0.1, 0.5], atol=1e-4
    )
    reached, rest = response.cost_values
    assert (reached.met, len(reached.tolerances), rest.title, list(rest.tolerances)) == (True, 2, "rest", [])
    assert rest.value > 0.0
    assert len(reached.multipliers) == 6


def test_a_heavier_cost_becomes_less(client: Client) -> None:
    """By the solver that compiles nothing: jax_lm would a structure more."""
    request = ik(
        pose(),
        solver="cpu",
        no_fallback=True,
        costs=[
            Cost(cost="rest", weight=[0.1]),
            Cost(cost="manipulability", parameters="{link: panda_link8}"),
        ],
    )
    values = []
    for weight in (0.001, 1.0):
        request.costs[1].weight = [weight]
        response = answered(client, "solve_ik", request)
        assert response.status.code == Status.SUCCESS, response.status.message
        values.append(response.cost_values[2].value / weight**2)
    assert values[1] <= values[0] + 1e-9


def test_what_cannot_be_met_names_the_cost(client: Client) -> None:
    far = ik(pose(x=3.0), costs=[Cost(cost="rest", weight=[0.1])])
    response = client.call("solve_ik", far)
    assert response.status.code == Status.NO_IK_SOLUTION
    assert "panda_link8" in response.status.message
    assert not response.positions
    assert len(response.attempts) == 7
    assert response.position_errors[0] > 1.0


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (Cost(cost="retst"), "rest"),
        (Cost(cost="rest", parameters="{color: 1}"), "color"),
        (Cost(cost="rest", parameters="[1, 2]"), "mapping"),
        (Cost(cost="rest", parameters="{a: &x 1, b: *x}"), "aliases"),
        (Cost(cost="rest", parameters="{weight: 1}"), "weight"),
        (Cost(cost="rest", weight=[float("nan")]), "weight"),
        (Cost(cost="rest", weight=[1.0, 2.0]), "weight"),
        (Cost(cost="look_at", parameters="{link: nose, place: [1, 0, 0]}"), "nose"),
        (Cost(cost="smoothness"), "points"),
        (Cost(cost="rest", points=[7]), "points"),
    ],
)
def test_bad_costs_are_refused_by_name(client: Client, cost: Cost, said: str) -> None:
    response = client.call("solve_ik", ik(pose(), costs=[cost]))
    assert response.status.code < 0
    assert said in response.status.message


def test_a_solver_that_cannot_says_so(client: Client) -> None:
    request = ik(pose(), costs=[Cost(cost="self_collision")], solver="cpu", no_fallback=True)
    response = answered(client, "solve_ik", request)
    assert response.status.code == Status.UNSUPPORTED_FEATURE
    assert "self_collision" in response.status.message
    request = ik(pose(), costs=[Cost(cost="rest", weight=[0.1])], solver="cpu", no_fallback=True)
    response = answered(client, "solve_ik", request)
    assert response.status.code == Status.SUCCESS, response.status.message
    assert response.solver_used == "cpu"
    several = ik(pose(), costs=[Cost(cost="rest")], num_solutions=3)
    assert client.call("solve_ik", several).status.code == Status.UNSUPPORTED_FEATURE


def test_a_motion_for_an_objective(client: Client, panda: RobotModel) -> None:
    request = PlanTrajectory.Request(
        poses=[pose(x=0.4, y=0.3, z=0.5)],
        state=JointState(name=list(READY), position=list(READY.values())),
        objective=[Cost(cost="least_acceleration", weight=[0.01])],
        ignore_collisions=True,
    )
    response = answered(client, "plan_trajectory", request)
    assert response.status.code == Status.SUCCESS, response.status.message
    assert response.solver_used == "jax_lm"
    assert len(response.trajectory.points) > 2
    titles = [value.title for value in response.cost_values]
    assert titles == ["start", "goal of panda_link8", "least_acceleration", "smoothness"]
    q = panda.default_q.copy()
    columns = [panda.variable_index[name] for name in response.trajectory.joint_names]
    q[columns] = response.trajectory.points[-1].positions
    np.testing.assert_allclose(
        forward_kinematics(panda, q, ["panda_link8"])[0, :3, 3], [0.4, 0.3, 0.5], atol=1e-4
    )
    refused = PlanTrajectory.Request(
        poses=[pose(), pose(y=0.2)], objective=request.objective, state=request.state, ignore_collisions=True
    )
    response = client.call("plan_trajectory", refused)
    assert response.status.code == Status.UNSUPPORTED_FEATURE
    assert "several goals" in response.status.message


def test_a_goal_for_an_objective_is_done_and_tells_its_stages(client: Client) -> None:
    request = PlanTrajectory.Request(
        poses=[pose(x=0.4, y=0.3, z=0.5)],
        state=JointState(name=list(READY), position=list(READY.values())),
        objective=[Cost(cost="least_acceleration", weight=[0.01])],
        ignore_collisions=True,
    )
    answered(client, "plan_trajectory", request)  # the program is there from now on
    fields = ("poses", "state", "objective", "ignore_collisions")
    asked = {name: getattr(request, name) for name in fields}
    goals = Goals(client, "costs_node")
    goal = goals.send(**asked)
    state, result = goal.result()
    assert result.status.code == Status.SUCCESS, result.status.message
    assert state == SUCCEEDED
    assert [value.title for value in result.cost_values] == [
        *("start", "goal of panda_link8", "least_acceleration", "smoothness")
    ]
    assert OBJECTIVE in {message.stage for message in goal.feedback}
    goals.close()


def test_the_request_of_the_page_is_answered(client: Client) -> None:
    found = re.search(r'SolveIK "(\{.*\})"', page("objectives"))
    assert found is not None
    request = filled(SolveIK.Request(), yaml.safe_load(found[1]))
    assert request.solver == "jax_lm"
    request.solver = (
        "cpu"  # the other one compiles a minute for this structure, and has answered another one above
    )
    response = answered(client, "solve_ik", request)
    assert response.status.code == Status.SUCCESS, response.status.message
    assert [value.title for value in response.cost_values][1:] == ["rest", "manipulability"]
