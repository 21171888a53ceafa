"""Every field of SolveIK, its answers judged by forward kinematics here, and what each refuses."""

from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState
from support.ros_requests import READY, ik, pose

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses, poses_from_matrices
from kinopt_ros.status import Status

PANDA = load_robot("panda")
ARM = [f"panda_joint{i + 1}" for i in range(7)]
STATE = JointState(name=list(READY), position=list(READY.values()))
TOOL = pose(0.0, 0.02, 0.15, (0.0, 0.0, 0.6, 0.8))
INF, NAN = float("inf"), float("nan")
GOAL, REQUEST, ROBOT_STATE = (
    Status.INVALID_GOAL_CONSTRAINTS,
    Status.INVALID_REQUEST,
    Status.INVALID_ROBOT_STATE,
)


def solve(at: Client, /, *poses: Any, frame: str = "", **fields: Any) -> Any:
    """An answer that must be a success, from the ready state."""
    answer = at.call("solve_ik", ik(*poses, frame=frame, **{"state": STATE, **fields}), 30.0)
    assert answer.status.code == Status.SUCCESS, answer.status.message
    return answer


def solutions(answer: Any) -> np.ndarray:
    return np.array(answer.positions).reshape(-1, len(answer.joint_names))


def configurations(answer: Any) -> np.ndarray:
    """Return an answer's configurations of the whole robot, (rows, nq)."""
    rows = solutions(answer)
    q = np.repeat(PANDA.default_q[None], len(rows), axis=0)
    for joint, value in READY.items():
        q[:, PANDA.variable_index[joint]] = value
    q[:, [PANDA.variable_index[name] for name in answer.joint_names]] = rows
    return q


def reached(answer: Any, link: str = "panda_link8") -> np.ndarray:
    """Poses of a link in the root link, (rows, 4, 4)."""
    return np.asarray(forward_kinematics(PANDA, configurations(answer), links=(link,))[:, 0])


def near(T: np.ndarray, target: Any, tolerance: float = 2e-3) -> None:
    wanted = matrices_from_poses([target])[0] if isinstance(target, Pose) else target
    np.testing.assert_allclose(T, np.broadcast_to(wanted, T.shape), atol=tolerance)


def inside_limits(answer: Any) -> None:
    q = configurations(answer)
    assert (q >= PANDA.limits.lower).all()
    assert (q <= PANDA.limits.upper).all()


def test_tool(client: Client) -> None:
    answer = solve(client, pose(), tool=TOOL)
    near(reached(answer) @ matrices_from_poses([TOOL])[0], pose())


def test_tip_links_are_placed_together(client: Client) -> None:
    q = random_configurations(PANDA, 2, 3)
    T = forward_kinematics(PANDA, q, links=("panda_link5", "panda_link8"))
    answer = solve(
        client,
        *poses_from_matrices(T.reshape(-1, 4, 4)),
        tip_links=["panda_link5", "panda_link8"],
        base_link="panda_link0",
        timeout=10.0,
    )
    near(reached(answer, "panda_link5"), T[:, 0])
    near(reached(answer, "panda_link8"), T[:, 1])
    assert list(answer.num_found) == [1, 1]


def test_base_pose(client: Client) -> None:
    T_frame_root = matrices_from_poses([TOOL])[0]
    in_frame = poses_from_matrices((T_frame_root @ matrices_from_poses([pose()])[0])[None])[0]
    answer = solve(client, in_frame, frame="a_table_that_tf_does_not_know", base_pose=[TOOL])
    near(reached(answer), pose())


def test_unlocked_groups_move_as_well(client: Client) -> None:
    answer = solve(client, pose(), group="panda_arm", unlocked_groups=["hand"])
    assert set(answer.joint_names) == {*ARM, "panda_finger_joint1"}
    near(reached(answer), pose())


def test_locked_joints_keep_their_state_to_the_last_bit(client: Client) -> None:
    state = JointState(name=["panda_joint3"], position=[0.123456789])
    answer = solve(client, pose(), state=state, locked_joints=["panda_joint3"])
    assert "panda_joint3" not in answer.joint_names
    q = configurations(answer)
    q[:, PANDA.variable_index["panda_joint3"]] = state.position[0]
    near(forward_kinematics(PANDA, q, links=("panda_link8",))[:, 0], pose())


def test_locked_groups(client: Client) -> None:
    answer = solve(client, pose(), group="panda_arm_hand", tip_link="panda_link8", locked_groups=["hand"])
    assert list(answer.joint_names) == ARM


def test_tolerances_per_axis(client: Client) -> None:
    wide = [0.05, 1e-5, 1e-5]
    answer = solve(client, pose(), position_tolerances=wide, orientation_tolerances=[1e-4, 1e-4, 3.0])
    error = np.linalg.inv(matrices_from_poses([pose()])[0]) @ reached(answer)[0]
    assert (np.abs(error[:3, 3]) <= wide).all()
    assert error[2, 2] > 1.0 - 1e-6


def test_free_axes(client: Client) -> None:
    """Position alone, far too far for the orientation that the request names."""
    upside = pose(0.3, 0.0, 0.9, (0.0, 0.0, 0.0, 1.0))
    answer = solve(client, upside, free_axes=["rx", "ry", "rz"])
    np.testing.assert_allclose(reached(answer)[0, :3, 3], (0.3, 0.0, 0.9), atol=2e-4)
    turned = solve(client, pose(), free_axes=["rz"])
    error = np.linalg.inv(matrices_from_poses([pose()])[0]) @ reached(turned)[0]
    assert error[2, 2] > 1.0 - 1e-5


def test_several_solutions_are_distinct_and_sorted(client: Client) -> None:
    answer = solve(client, pose(), num_solutions=6, min_separation=0.1, timeout=20.0)
    rows = solutions(answer)
    assert rows.shape == (6, 7)
    found = int(answer.num_found[0])
    assert found >= 4
    assert np.isnan(rows[found:]).all()
    for i in range(found):
        for k in range(i):
            assert np.abs(rows[i] - rows[k]).max() > 0.1
    assert (np.diff(np.array(answer.distances)[:found]) >= 0.0).all()
    near(forward_kinematics(PANDA, configurations(answer)[:found], links=("panda_link8",))[:, 0], pose())
    assert len(answer.position_errors) == 6


def test_several_solutions_do_not_depend_on_the_load(client: Client) -> None:
    request = ik(pose(), state=STATE, num_solutions=40, timeout=20.0)
    answers = [client.call("solve_ik", request, 30.0) for _ in range(3)]
    assert {tuple(answer.cut_short) for answer in answers} == {(False,)}
    assert len({np.array(answer.positions).tobytes() for answer in answers}) == 1


def test_the_closest_solution_is_no_farther_than_any_other(client: Client) -> None:
    closest = solve(client, pose(), prefer="closest", timeout=20.0)
    others = solve(client, pose(), num_solutions=20, timeout=20.0)
    ready = np.array([READY[name] for name in ARM])
    found = solutions(others)[: int(others.num_found[0])]
    distance = np.linalg.norm(solutions(closest)[0] - ready)
    assert distance <= np.linalg.norm(found - ready, axis=1).min() + 1e-3
    assert closest.distances[0] == pytest.approx(distance, abs=1e-9)


def test_a_rest_posture_draws_the_elbow(client: Client) -> None:
    elbows = []
    for value in (-1.0, 1.0):
        rest = JointState(name=ARM, position=[value, *list(READY.values())[1:7]])
        answer = solve(client, pose(0.45, 0.0, 0.5), prefer="rest", rest=rest, timeout=20.0)
        near(reached(answer), pose(0.45, 0.0, 0.5))
        expected = np.linalg.norm(solutions(answer)[0] - np.array(rest.position))
        assert answer.distances[0] == pytest.approx(expected, abs=1e-9)
        elbows.append(solutions(answer)[0, 0])
    assert elbows[0] < elbows[1] - 0.2


def test_the_middle_of_the_limits(client: Client) -> None:
    answer = solve(client, pose(), prefer="mid_range", timeout=20.0)
    other = solve(client, pose(), num_solutions=20, prefer="mid_range", timeout=20.0)
    assert answer.distances[0] <= np.nanmin(other.distances) + 1e-3
    inside_limits(answer)


def test_manipulability_is_preferred_by_its_weight(client: Client) -> None:
    last = -INF
    chain = build_chain(PANDA, "panda_link0", "panda_link8")
    for options in (
        {"prefer": "mid_range"},
        {"prefer": "mid_range", "manipulability_weight": 10.0},
        {"prefer": "manipulability"},
    ):
        answer = solve(client, pose(), timeout=20.0, **options)
        near(reached(answer), pose())
        inside_limits(answer)
        J = geometric_jacobian(chain, solutions(answer)[0])
        index = np.sqrt(np.linalg.det(J @ J.T))
        assert index >= last - 1e-9
        last = index
    assert answer.distances[0] == pytest.approx(-last, rel=1e-6)
    refused = client.call("solve_ik", ik(pose(), manipulability_weight=1.0))
    assert refused.status.code == REQUEST
    assert "a weight goes with closest, rest, mid_range" in refused.status.message


def test_turns_are_counted_where_limits_leave_room(client: Client) -> None:
    """The Panda's joints turn less than once: the answer is the same, but it must be an answer."""
    answer = solve(client, pose(), turns=True, num_solutions=3, timeout=20.0)
    inside_limits(answer)
    near(reached(answer)[: int(answer.num_found[0])], pose())


def test_client_and_times(client: Client) -> None:
    answer = solve(client, pose(), client="somebody", timeout=5.0)
    assert 0.0 <= answer.queue_time <= answer.wall_time
    assert answer.solve_time <= answer.wall_time
    assert answer.batched_with == 0
    assert list(answer.cut_short) == [False]


BAD: dict[str, tuple[dict[str, Any], Status, str]] = {
    "tip_link and tip_links": (
        {"tip_link": "panda_link8", "tip_links": ["panda_link5"]},
        REQUEST,
        "tip_links",
    ),
    "unknown tip_links": ({"tip_links": ["panda_link99"]}, Status.INVALID_LINK_NAME, "panda_link99"),
    "poses that do not fit tip_links": ({"tip_links": ["panda_link5", "panda_link8"]}, GOAL, "tip_links"),
    "tool that is no pose": ({"tool": pose(NAN)}, GOAL, "tool"),
    "tool with a bad quaternion": ({"tool": pose(q=(0.0, 0.0, 0.0, 3.0))}, GOAL, "tool"),
    "base_pose that is no pose": ({"base_pose": [pose(INF)]}, GOAL, "base_pose"),
    "several base poses": ({"base_pose": [pose(), pose()], "frame": "a_table"}, REQUEST, "base_pose has 2"),
    "base_pose in a frame of the robot": (
        {"base_pose": [pose()], "frame": "panda_link0"},
        REQUEST,
        "panda_link0",
    ),
    "unknown unlocked group": ({"unlocked_groups": ["arms"]}, Status.INVALID_GROUP_NAME, "arms"),
    "unknown locked group": ({"locked_groups": ["arms"]}, Status.INVALID_GROUP_NAME, "arms"),
    "unknown locked joint": ({"locked_joints": ["elbow"]}, Status.INVALID_JOINT_NAME, "elbow"),
    "everything locked": ({"locked_joints": ARM}, REQUEST, "lock"),
    "two position tolerances": ({"position_tolerances": [0.1, 0.1]}, GOAL, "position_tolerances"),
    "tolerance and tolerances": (
        {"position_tolerances": [0.1, 0.1, 0.1], "position_tolerance": 0.1},
        GOAL,
        "position_tolerance",
    ),
    "negative among tolerances": (
        {"orientation_tolerances": [0.1, -0.1, 0.1]},
        GOAL,
        "orientation_tolerance",
    ),
    "NaN among tolerances": ({"position_tolerances": [0.1, NAN, 0.1]}, GOAL, "position_tolerance"),
    "unknown axis": ({"free_axes": ["roll"]}, GOAL, "roll"),
    "nothing left to reach": ({"free_axes": ["x", "y", "z", "rx", "ry", "rz"]}, GOAL, "free"),
    "too many solutions": ({"num_solutions": 1001}, REQUEST, "num_solutions"),
    "far too many solutions": ({"num_solutions": 2**32 - 1}, REQUEST, "num_solutions"),
    "negative separation": ({"num_solutions": 2, "min_separation": -1.0}, REQUEST, "min_separation"),
    "NaN separation": ({"num_solutions": 2, "min_separation": NAN}, REQUEST, "min_separation"),
    "unknown preference": ({"prefer": "nearest"}, REQUEST, "closest"),
    "rest without its preference": ({"rest": STATE}, REQUEST, "rest"),
    "unknown joint in rest": (
        {"prefer": "rest", "rest": JointState(name=["elbow"], position=[0.0])},
        Status.INVALID_JOINT_NAME,
        "elbow",
    ),
    "NaN in rest": (
        {"prefer": "rest", "rest": JointState(name=["panda_joint1"], position=[NAN])},
        ROBOT_STATE,
        "panda_joint1",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_refused(client: Client, kind: str) -> None:
    fields, code, words = BAD[kind]
    answer = client.call("solve_ik", ik(pose(), **fields))
    assert Status(answer.status.code) is code, answer.status.message
    assert words in answer.status.message
    assert len(answer.status.message) > 20
    assert not len(answer.positions)
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS
