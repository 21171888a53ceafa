"""Whatever is thrown at a real node: every request gets one answer with a known code and a sentence, nothing is
published that was not asked for, no internal error shows, and the node goes on serving."""

import math
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Twist, Vector3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
from sensor_msgs.msg import JointState
from support.ros_requests import READY, ik, pose
from support.trajectory_goals import until_prepared

from kinopt_msgs.msg import CollisionObject, PoseAlong, SceneOperation, Shape, StraightLine, Waypoint
from kinopt_msgs.srv import (
    ApplyScene,
    CheckState,
    ComputeCartesianPath,
    ComputeFK,
    GetJacobian,
    GetScene,
    PlanTrajectory,
    SolveIK,
    TwistToJointVelocity,
)
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.status import Status

ROBOT = load_robot("panda")
CODES = {int(status) for status in Status}
FUZZ = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

odd_floats = st.sampled_from([0.0, -1.0, 1.0, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, 1e-9])
floats = st.one_of(odd_floats, st.floats(-2.0, 2.0), st.floats())
names = st.one_of(
    st.sampled_from(
        [*ROBOT.link_names, *ROBOT.joint_by_name, *ROBOT.groups, "", "world", "base", "tip", "tf"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
)
few = st.integers(0, 3)


def lists(of: st.SearchStrategy[Any], most: int = 8) -> st.SearchStrategy[list[Any]]:
    return st.lists(of, max_size=most)


points = st.builds(Point, x=floats, y=floats, z=floats)
quaternions = st.one_of(
    st.sampled_from([(0.0, 0.0, 0.0, 1.0), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)]).map(
        lambda q: Quaternion(x=q[0], y=q[1], z=q[2], w=q[3])
    ),
    st.builds(Quaternion, x=floats, y=floats, z=floats, w=floats),
)
poses = st.builds(Pose, position=points, orientation=quaternions)
good_poses = st.tuples(st.floats(-0.7, 0.7), st.floats(-0.7, 0.7), st.floats(0.0, 0.9)).map(
    lambda p: pose(*p)
)
joint_states = st.builds(JointState, name=lists(names), position=lists(floats), velocity=lists(floats, 2))


def sometimes(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly left out, so that some requests have one thing wrong and not ten."""
    return st.one_of(st.none(), st.none(), st.none(), st.none(), strategy)


def requests(kind: Any, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def build(values: dict[str, Any]) -> Any:
        request = kind()
        for name, value in values.items():
            if value is None:
                continue
            if name == "frame_id":
                request.header.frame_id = value
            else:
                setattr(request, name, value)
        return request

    return st.fixed_dictionaries(fields).map(build)


common = {
    "group": sometimes(names),
    "base_link": sometimes(names),
    "tip_link": sometimes(names),
    "tool": sometimes(poses),
    "state": sometimes(joint_states),
    "locked_joints": sometimes(lists(names, 3)),
}
SOLVE = requests(
    SolveIK.Request,
    **common,
    frame_id=sometimes(names),
    poses=lists(st.one_of(good_poses, good_poses, poses), 4),
    tip_links=sometimes(lists(names, 3)),
    base_pose=sometimes(st.lists(poses, max_size=1)),
    unlocked_groups=sometimes(lists(names, 2)),
    locked_groups=sometimes(lists(names, 2)),
    seeds=sometimes(lists(floats, 15)),
    num_seeds=sometimes(few),
    avoid_collisions=sometimes(st.booleans()),
    clearance=sometimes(floats),
    position_tolerance=sometimes(floats),
    orientation_tolerance=sometimes(floats),
    position_tolerances=sometimes(lists(floats, 4)),
    orientation_tolerances=sometimes(lists(floats, 4)),
    free_axes=sometimes(lists(st.one_of(st.sampled_from(["x", "y", "z", "rx", "ry", "rz"]), names), 6)),
    num_solutions=sometimes(st.sampled_from([0, 1, 3, 20, 1001, 2**32 - 1])),
    min_separation=sometimes(floats),
    turns=sometimes(st.booleans()),
    prefer=sometimes(
        st.one_of(st.sampled_from(["any", "closest", "rest", "mid_range", "manipulability"]), names)
    ),
    manipulability_weight=sometimes(floats),
    rest=sometimes(joint_states),
    timeout=sometimes(st.one_of(odd_floats, st.floats(1e-6, 0.3))),
    random_seed=sometimes(st.integers(0, 2**64 - 1)),
    solver=sometimes(st.one_of(st.sampled_from(["cpu", "auto"]), names)),
    no_fallback=sometimes(st.booleans()),
    client=sometimes(names),
)
FK = requests(
    ComputeFK.Request,
    frame_id=sometimes(names),
    links=lists(names, 3),
    joint_names=sometimes(lists(names, 8)),
    positions=sometimes(lists(floats, 16)),
)
JACOBIAN = requests(GetJacobian.Request, **common, frame=sometimes(names))
vectors = st.builds(Vector3, x=floats, y=floats, z=floats)
TWIST = requests(
    TwistToJointVelocity.Request,
    **common,
    frame=sometimes(names),
    twist=st.builds(Twist, linear=vectors, angular=vectors),
    velocity_scaling=sometimes(floats),
)
shapes = requests(
    Shape,
    type=st.one_of(
        st.sampled_from(
            [
                "box",
                "sphere",
                "cylinder",
                "cone",
                "capsule",
                "plane",
                "mesh",
                "height_map",
                "point_cloud",
                "octomap",
            ]
        ),
        names,
    ),
    pose=sometimes(poses),
    dimensions=st.one_of(lists(st.floats(0.01, 2.0), 3), lists(floats, 4)),
    points=sometimes(lists(floats, 13)),
    triangles=sometimes(lists(st.integers(0, 5), 12)),
    heights=sometimes(lists(floats, 6)),
    rows=sometimes(few),
    resource=sometimes(
        st.one_of(st.sampled_from(["package://a/b.stl", "file:///", "file://a", "package://"]), names)
    ),
    scale=sometimes(vectors),
)
ids = st.one_of(st.sampled_from(["a", "b", "c"]), names)
objects = requests(
    CollisionObject, id=ids, frame_id=sometimes(names), pose=sometimes(poses), shapes=lists(shapes, 2)
)
operations = requests(
    SceneOperation,
    operation=st.one_of(
        st.sampled_from(
            ["add", "add", "move", "remove", "attach", "detach", "allow", "disallow", "pad", "clear"]
        ),
        names,
    ),
    object=st.one_of(st.builds(CollisionObject, id=ids), objects, objects),
    replace=sometimes(st.booleans()),
    link=sometimes(names),
    touch_links=sometimes(lists(names, 2)),
    names=sometimes(lists(ids, 3)),
    padding=sometimes(floats),
)
APPLY = requests(
    ApplyScene.Request,
    operations=lists(operations, 3),
    expected_version=sometimes(st.integers(0, 2**64 - 1)),
    state=sometimes(joint_states),
)
CHECK = requests(
    CheckState.Request,
    joint_names=sometimes(lists(names, 8)),
    positions=sometimes(lists(floats, 16)),
    clearance=sometimes(floats),
    contacts_only=sometimes(st.booleans()),
)

three_or_so = lists(st.one_of(st.floats(0.01, 1.0), st.just(math.inf), floats), 4)
motion_fields = {
    "frame_id": sometimes(names),
    "group": sometimes(names),
    "tool": sometimes(poses),
    "state": sometimes(joint_states),
    # Mostly ignored, which is quick; what is wrong shows all the same.
    "ignore_collisions": st.sampled_from([True, True, True, False]),
    "clearance": sometimes(floats),
    "velocity_scaling": sometimes(floats),
    "acceleration_scaling": sometimes(floats),
    "timeout": st.one_of(st.floats(0.05, 0.3), st.floats(0.05, 0.3), odd_floats.filter(lambda t: t != 0.0)),
    "solver": sometimes(st.one_of(st.sampled_from(["cpu", "auto", "jax_lm"]), names)),
    "no_fallback": sometimes(st.booleans()),
    "client": sometimes(names),
}
good_joints = st.floats(-2.0, 2.0).map(lambda q: JointState(name=["panda_joint1"], position=[q]))
waypoints = requests(
    Waypoint, joints=st.one_of(st.none(), good_joints, joint_states), poses=sometimes(lists(poses, 2))
)
PLAN = requests(
    PlanTrajectory.Request,
    **motion_fields,
    joint_goals=lists(st.one_of(good_joints, good_joints, joint_states), 2),
    poses=lists(st.one_of(good_poses, poses), 2),
    tip_link=sometimes(names),
    tip_links=sometimes(lists(names, 3)),
    position_tolerance=sometimes(floats),
    orientation_tolerance=sometimes(floats),
    position_tolerances=sometimes(three_or_so),
    orientation_tolerances=sometimes(three_or_so),
    free_axes=sometimes(lists(st.one_of(st.sampled_from(["x", "rx", "rz"]), names), 3)),
    waypoints=sometimes(lists(waypoints, 3)),
    along=sometimes(
        lists(
            requests(
                PoseAlong,
                link=sometimes(names),
                tool=sometimes(poses),
                pose=sometimes(st.lists(poses, max_size=1)),
                position_tolerances=sometimes(three_or_so),
                orientation_tolerances=three_or_so,
            ),
            2,
        )
    ),
    straight_lines=sometimes(
        lists(requests(StraightLine, link=sometimes(names), point=sometimes(points), tolerance=floats), 2)
    ),
    duration=sometimes(floats),
    costs=sometimes(lists(st.one_of(st.sampled_from(["smoothness", "jerk", "rest"]), names), 3)),
    weights=sometimes(lists(floats, 3)),
    rest=sometimes(joint_states),
    num_points=sometimes(st.sampled_from([0, 1, 8, 64, 513, 2**32 - 1])),
    random_seed=sometimes(st.integers(0, 2**64 - 1)),
)
PATH = requests(
    ComputeCartesianPath.Request,
    **motion_fields,
    waypoints=lists(st.one_of(good_poses, good_poses, poses), 3),
    keep_orientation=sometimes(st.booleans()),
    link=sometimes(names),
    max_step=sometimes(floats),
    max_angle=sometimes(floats),
    tolerance=sometimes(floats),
    max_revolute_jump=sometimes(floats),
    max_prismatic_jump=sometimes(floats),
    jump_factor=sometimes(floats),
)


def answered(client: Client, service: str, request: Any) -> Any:
    answer = client.call(service, request, timeout=30.0)
    assert answer.status.code in CODES
    if answer.status.code != Status.SUCCESS:
        assert len(answer.status.message) > 10
        assert "internal error" not in answer.status.message
    assert not client.trajectories[seen(client) :]
    return answer


_published: dict[int, int] = {}


def seen(client: Client) -> int:
    return _published.setdefault(id(client), len(client.trajectories))


@FUZZ
@given(request=SOLVE)
def test_solve_ik(client: Client, request: SolveIK.Request) -> None:
    answer = answered(client, "solve_ik", request)
    n = len(answer.joint_names)
    for positions in np.array(answer.positions).reshape(-1, n) if n and answer.positions else ():
        if np.isnan(positions).any():
            continue
        for name, value in zip(answer.joint_names, positions, strict=True):
            i = ROBOT.variable_index[name]
            assert ROBOT.limits.lower[i] <= value <= ROBOT.limits.upper[i]


@FUZZ
@given(at=good_poses, axes=st.sets(st.sampled_from(["rx", "ry", "rz"])), few=st.integers(0, 4))
def test_good_requests_are_answered_right(client: Client, at: Pose, axes: set[str], few: int) -> None:
    request = ik(at, free_axes=sorted(axes), num_solutions=few, timeout=0.5)
    answer = answered(client, "solve_ik", request)
    assert Status(answer.status.code) in (Status.SUCCESS, Status.NO_IK_SOLUTION, Status.TIMED_OUT)
    for positions in np.array(answer.positions).reshape(-1, 7):
        if np.isnan(positions).any():
            continue
        q = ROBOT.default_q.copy()
        q[:7] = positions
        reached = forward_kinematics(ROBOT, q, links=("panda_link8",))[0]
        assert np.linalg.norm(reached[:3, 3] - matrices_from_poses([at])[0, :3, 3]) <= 1e-4 + 1e-9


@FUZZ
@given(request=FK)
def test_compute_fk(client: Client, request: ComputeFK.Request) -> None:
    answered(client, "compute_fk", request)


@FUZZ
@given(request=JACOBIAN)
def test_get_jacobian(client: Client, request: GetJacobian.Request) -> None:
    answer = answered(client, "get_jacobian", request)
    assert np.isfinite(answer.jacobian).all()


@FUZZ
@given(request=TWIST)
def test_twist_to_joint_velocity(client: Client, request: TwistToJointVelocity.Request) -> None:
    answer = answered(client, "twist_to_joint_velocity", request)
    assert np.isfinite(answer.velocities).all()


@settings(FUZZ, max_examples=150)
@given(request=APPLY)
def test_apply_scene(client: Client, request: ApplyScene.Request) -> None:
    before = client.call("get_scene", GetScene.Request()).scene
    answer = answered(client, "apply_scene", request)
    after = client.call("get_scene", GetScene.Request()).scene
    assert answer.version == after.version
    if answer.status.code == Status.SUCCESS:
        assert after.version == before.version + 1
    else:
        assert after == before


@settings(FUZZ, max_examples=40)
@given(request=CHECK)
def test_check_state(client: Client, request: CheckState.Request) -> None:
    """The scene is whatever the test before has left."""
    pytest.importorskip("coal")
    answer = answered(client, "check_state", request)
    assert len(answer.valid) == len(answer.codes) == len(answer.messages)
    assert [code == Status.SUCCESS for code in answer.codes] == list(answer.valid)
    assert all(bool(message) != valid for message, valid in zip(answer.messages, answer.valid, strict=True))


def motion_is_sound(message: Any) -> None:
    """Check a trajectory that a controller may get: finite, inside the limits, in order of time, at rest at the end."""
    times = [point.time_from_start.sec * 10**9 + point.time_from_start.nanosec for point in message.points]
    assert times == sorted(set(times))
    for point in message.points:
        assert np.isfinite([*point.positions, *point.velocities, *point.accelerations]).all()
    if message.points:
        q = np.array([point.positions for point in message.points])
        index = [ROBOT.variable_index[name] for name in message.joint_names]
        slack = 1e-3 + 1e-8  # a start may be outside by that much
        assert (q >= ROBOT.limits.lower[index] - slack).all()
        assert (q <= ROBOT.limits.upper[index] + slack).all()
        assert np.abs(message.points[-1].velocities).max() <= 1e-7


@pytest.fixture(scope="module")
def plans(client: Client) -> None:
    """The optimizer is prepared."""
    pytest.importorskip("coal")
    until_prepared(client)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("plans")
@FUZZ
@given(request=PLAN)
def test_plan_trajectory(client: Client, request: PlanTrajectory.Request) -> None:
    answer = answered(client, "plan_trajectory", request)
    assert (answer.status.code == Status.SUCCESS) == bool(answer.trajectory.points)
    motion_is_sound(answer.trajectory)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("plans")
@FUZZ
@given(request=PATH)
def test_compute_cartesian_path(client: Client, request: ComputeCartesianPath.Request) -> None:
    answer = answered(client, "compute_cartesian_path", request)
    assert 0.0 <= answer.fraction <= 1.0
    assert (answer.fraction > 0.0) == bool(answer.trajectory.points)
    assert (answer.status.code == Status.SUCCESS) == (answer.fraction == 1.0)
    motion_is_sound(answer.trajectory)


@FUZZ
@given(message=joint_states)
def test_joint_states(client: Client, message: JointState) -> None:
    client.publish_joint_state(message)
    client.spin(0.005)
    client.publish_joint_state(JointState(name=list(READY), position=list(READY.values())))


@settings(FUZZ, max_examples=25)
@given(frame=names, at=poses)
def test_target_pose_moves_nothing_that_it_should_not(client: Client, frame: str, at: Pose) -> None:
    reports = len(client.reports)
    message = PoseStamped(pose=at)
    message.header.frame_id = frame
    client.publish_target(message)
    assert client.spin_until(lambda: len(client.reports) > reports, 60.0)
    report = client.reports[-1]
    assert report.status.code in CODES
    if report.status.code == Status.SUCCESS:  # by chance a target that can be reached
        client.spin_until(lambda: len(client.trajectories) > seen(client), 60.0)
    else:
        assert len(report.status.message) > 10
    assert len(client.trajectories) - seen(client) == (report.status.code == Status.SUCCESS)
    _published[id(client)] = len(client.trajectories)


values = st.one_of(
    st.booleans().map(lambda v: ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=v)),
    st.integers(-(2**63), 2**63 - 1).map(
        lambda v: ParameterValue(type=ParameterType.PARAMETER_INTEGER, integer_value=v)
    ),
    floats.map(lambda v: ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=v)),
    names.map(lambda v: ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=v)),
    lists(names, 3).map(
        lambda v: ParameterValue(type=ParameterType.PARAMETER_STRING_ARRAY, string_array_value=v)
    ),
    st.just(ParameterValue(type=ParameterType.PARAMETER_NOT_SET)),
)
PARAMETERS = (
    "robot_description", "robot_description_semantic", "solver", "ik.solver", "allow_fallback", "default_group",
    "ik.timeout", "ik.max_timeout", "ik.position_tolerance", "ik.orientation_tolerance", "ik.avoid_collisions",
    "ik.clearance", "max_batch", "state_timeout",
    "velocity_scaling", "acceleration_scaling", "start_delay", "start_state_tolerance", "controller_joints",
    "threads", "queue_size", "batching", "fallback_chain", "record_failures", "cpu.max_restarts", "cpu.threads",
)  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(client: Client, name: str) -> None:
    setter = client.node.create_client(SetParameters, "kinopt/set_parameters")
    getter = client.node.create_client(GetParameters, "kinopt/get_parameters")
    assert getter.wait_for_service(60.0)
    present = getter.call_async(GetParameters.Request(names=[name]))
    assert client.spin_until(present.done, 60.0)
    (before,) = present.result().values
    assert setter.wait_for_service(60.0)

    def put(value: ParameterValue) -> Any:
        future = setter.call_async(SetParameters.Request(parameters=[Parameter(name=name, value=value)]))
        assert client.spin_until(future.done, 60.0)
        return future.result().results[0]

    @settings(FUZZ, max_examples=12)
    @given(value=values)
    def fuzz(value: ParameterValue) -> None:
        result = put(value)
        if not result.successful:
            assert len(result.reason) > 5
        else:
            assert put(before).successful  # as it was

    fuzz()
    client.node.destroy_client(setter)
    client.node.destroy_client(getter)
    assert client.wait_until_ready(300.0)
    good = client.call("solve_ik", ik(pose()), timeout=30.0)
    assert good.status.code in (Status.SUCCESS, Status.NOT_READY), good.status.message


def test_and_it_still_serves(client: Client) -> None:
    clear = ApplyScene.Request(operations=[SceneOperation(operation="clear")])
    assert client.call("apply_scene", clear).status.code == Status.SUCCESS
    client.wait_until_ready(300.0)
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS
