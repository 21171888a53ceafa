"""Tests of the services' answers, judged by Pinocchio or by each other."""

import numpy as np
import pytest
from sensor_msgs.msg import JointState
from support.ros_requests import ik, pose

from kinopt_msgs.srv import ComputeFK, ListSolvers
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import find_robot, load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses, poses_from_matrices
from kinopt_ros.ros.services.every import SERVICES
from kinopt_ros.ros.serving.service import ImmediateService
from kinopt_ros.status import Status

pin = pytest.importorskip("pinocchio")

PANDA = load_robot("panda")


def pinocchio_pose(q: np.ndarray, link: str) -> np.ndarray:
    model = pin.buildModelFromUrdf(str(find_robot("panda")[0]), mimic=True)
    data = model.createData()
    pin.framesForwardKinematics(model, data, np.append(q, 0.02)[: model.nq])
    return np.asarray(data.oMf[model.getFrameId(link)].homogeneous)


def test_a_pose_typed_by_hand_is_solved(client: Client) -> None:
    answer = client.call("solve_ik", ik(pose()))
    assert answer.status.code == Status.SUCCESS, answer.status.message
    assert list(answer.joint_names) == [f"panda_joint{i + 1}" for i in range(7)]
    reached = pinocchio_pose(np.array(answer.positions), "panda_link8")
    np.testing.assert_allclose(reached, matrices_from_poses([pose()])[0], atol=2e-4)
    assert answer.position_errors[0] <= 1e-4
    assert answer.solver_used == "cpu"
    assert answer.fallback_reason == ""
    assert "target pose" in answer.checks
    assert "world collision" in answer.not_checked
    assert 0.0 < answer.solve_time < answer.wall_time


def test_many_poses_keep_their_order_and_one_failure_stays_alone(client: Client) -> None:
    q = random_configurations(PANDA, 50, 1)
    T = forward_kinematics(PANDA, q, links=("panda_link8",))[:, 0]
    T[20, :3, 3] = 3.0, 0.0, 0.0
    answer = client.call("solve_ik", ik(*poses_from_matrices(T)))
    assert answer.status.code == Status.NO_IK_SOLUTION
    assert "poses[20]" in answer.status.message
    assert [i for i, code in enumerate(answer.codes) if code != Status.SUCCESS] == [20]
    solutions = np.array(answer.positions).reshape(50, 7)
    assert np.isnan(solutions[20]).all()
    full = np.repeat(PANDA.default_q[None], 50, axis=0)
    full[:, :7] = solutions
    full[20] = PANDA.default_q
    reached = forward_kinematics(PANDA, full, links=("panda_link8",))[:, 0]
    np.testing.assert_allclose(np.delete(reached, 20, 0), np.delete(T, 20, 0), atol=2e-4)
    attempts = np.array(answer.attempts).reshape(50, 7)
    assert np.isfinite(attempts[20]).all()
    assert np.isnan(np.delete(attempts, 20, 0)).all()
    assert answer.position_errors[20] > 1.0
    near = answer.attempt_poses[20].position
    assert np.linalg.norm([near.x - 3.0, near.y, near.z]) == pytest.approx(
        answer.position_errors[20], abs=1e-9
    )


def test_out_of_reach_says_so_quickly_and_gives_no_positions(client: Client) -> None:
    answer = client.call("solve_ik", ik(pose(10.0, 10.0, 10.0)))
    assert answer.status.code == -31
    assert "reach" in answer.status.message
    assert list(answer.positions) == []
    assert answer.wall_time < 5.0  # a search goes on for the 30 s that it has


def test_targets_can_be_given_in_any_link(client: Client) -> None:
    """A frame that moves with the joints is taken where it is now: 5 cm ahead of the flange."""
    before = client.call("compute_fk", ComputeFK.Request(links=["panda_link8"])).poses[0]
    answer = client.call("solve_ik", ik(pose(0.0, 0.0, 0.05, (0.0, 0.0, 0.0, 1.0)), frame="panda_link8"))
    assert answer.status.code == Status.SUCCESS
    request = ComputeFK.Request(
        links=["panda_link8"], joint_names=answer.joint_names, positions=answer.positions
    )
    after = client.call("compute_fk", request).poses[0]
    T = matrices_from_poses([before, after])
    np.testing.assert_allclose(
        np.linalg.inv(T[0]) @ T[1], matrices_from_poses([pose(0, 0, 0.05, (0, 0, 0, 1.0))])[0], atol=2e-4
    )


def test_the_virtual_joints_frame_is_the_world(client: Client) -> None:
    in_root = client.call("solve_ik", ik(pose(), random_seed=3))
    in_world = client.call("solve_ik", ik(pose(), frame="world", random_seed=3))
    assert list(in_root.positions) == list(in_world.positions)


def test_a_group_or_a_chain_can_be_named(client: Client) -> None:
    answer = client.call("solve_ik", ik(pose(), group="panda_arm", tip_link="panda_hand_tcp"))
    assert answer.status.code == Status.SUCCESS
    reached = pinocchio_pose(np.array(answer.positions), "panda_hand_tcp")
    np.testing.assert_allclose(reached, matrices_from_poses([pose()])[0], atol=2e-4)
    chain = client.call("solve_ik", ik(pose(0, 0, 0.1), base_link="panda_link3", tip_link="panda_link8"))
    assert list(chain.joint_names) == [f"panda_joint{i}" for i in (4, 5, 6, 7)]


def test_tolerances_are_kept(client: Client) -> None:
    answer = client.call("solve_ik", ik(pose(), position_tolerance=1e-8, orientation_tolerance=1e-8))
    assert answer.status.code == Status.SUCCESS
    assert answer.position_errors[0] <= 1e-8
    assert answer.orientation_errors[0] <= 1e-8


def test_the_given_state_is_the_seed(client: Client) -> None:
    q = random_configurations(PANDA, 1, 5)[0]
    T = forward_kinematics(PANDA, q, links=("panda_link8",))
    state = JointState(name=list(PANDA.variable_names), position=q.tolist())
    answer = client.call("solve_ik", ik(*poses_from_matrices(T), state=state))
    np.testing.assert_allclose(answer.positions, q[:7], atol=1e-3)
    other = client.call("solve_ik", ik(*poses_from_matrices(T), seeds=q[:7].tolist()))
    assert other.status.code == Status.SUCCESS


def test_shuffled_state_gives_the_same_answer(client: Client) -> None:
    q = random_configurations(PANDA, 1, 6)[0]
    names = list(PANDA.variable_names)
    order = [3, 1, 7, 0, 6, 2, 5, 4]
    straight = JointState(name=names, position=q.tolist())
    shuffled = JointState(name=[names[i] for i in order], position=[float(q[i]) for i in order])
    answers = [client.call("solve_ik", ik(pose(), state=state)) for state in (straight, shuffled)]
    assert list(answers[0].positions) == list(answers[1].positions)


def test_same_request_and_seed_give_the_same_answer(client: Client) -> None:
    answers = [client.call("solve_ik", ik(pose(0.3, 0.3, 0.6), random_seed=11)) for _ in range(3)]
    assert len({tuple(answer.positions) for answer in answers}) == 1


def test_fk_of_many_states_agrees_with_pinocchio(client: Client) -> None:
    q = random_configurations(PANDA, 5, 2)
    request = ComputeFK.Request(
        links=["panda_link8", "panda_link3"],
        joint_names=[f"panda_joint{i + 1}" for i in range(7)],
        positions=q[:, :7].ravel().tolist(),
    )
    answer = client.call("compute_fk", request)
    assert answer.status.code == Status.SUCCESS
    T = matrices_from_poses(answer.poses).reshape(5, 2, 4, 4)
    for state, (link8, link3) in zip(q, T, strict=True):
        np.testing.assert_allclose(link8, pinocchio_pose(state[:7], "panda_link8"), atol=1e-9)
        np.testing.assert_allclose(link3, pinocchio_pose(state[:7], "panda_link3"), atol=1e-9)


def test_fk_of_all_links_in_another_frame(client: Client) -> None:
    request = ComputeFK.Request()
    request.header.frame_id = "panda_link4"
    answer = client.call("compute_fk", request)
    assert tuple(answer.link_names) == PANDA.link_names
    own = answer.poses[PANDA.link_names.index("panda_link4")]
    np.testing.assert_allclose(matrices_from_poses([own])[0], np.eye(4), atol=1e-12)


def test_solvers_are_listed(client: Client) -> None:
    answer = client.call("list_solvers", ListSolvers.Request())
    assert answer.status.code == Status.SUCCESS
    cpu = next(info for info in answer.solvers if info.name == "cpu")
    assert cpu.available
    assert {"revolute", "continuous", "prismatic"} <= set(cpu.joint_types)
    assert answer.default_solver == "cpu"
    assert answer.robot == "panda"
    assert answer.groups[0] == "panda_arm"


@pytest.mark.parametrize(
    "name", [service.name for service in SERVICES if issubclass(service, ImmediateService)]
)
def test_no_request_of_a_burst_is_lost(client: Client, name: str) -> None:
    """ROS's usual depth keeps ten of those that come while the node is at another one."""
    kind = next(service.type for service in SERVICES if service.name == name)
    sent = [client.send(name, kind.Request()) for _ in range(100)]
    assert client.spin_until(lambda: all(future.done() for future in sent), 60.0), [f.done() for f in sent]


def test_status_numbers_are_those_of_the_message() -> None:
    from kinopt_msgs.msg import Status as StatusMsg

    assert {name: int(getattr(StatusMsg, name)) for name in Status.__members__} == {
        name: int(status) for name, status in Status.__members__.items()
    }
