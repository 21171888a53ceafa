"""Conversions of messages to arrays and back, as pure functions. Only here and in rotations.py quaternions change
order.

ROS writes quaternions xyzw; everything inside is wxyz or a matrix.
"""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point, Pose, Quaternion, Transform
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory as JointTrajectoryMsg
from trajectory_msgs.msg import JointTrajectoryPoint

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.array import Float64
from kinopt_ros.errors import (
    InvalidGoalError,
    InvalidRequestError,
    InvalidStateError,
    KinoptError,
    UnknownJointError,
    quoted,
    shortened,
)
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.stamps import nanoseconds
from kinopt_ros.solvers.readiness import PreparingError
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

_QUATERNION_TOLERANCE = 0.01
"""Accepted deviation of a quaternion's length from 1: typed by hand to three digits, say. It is normalised."""
FOLLOWS = 1e-3
"""Distance by which a mimic joint that is to be somewhere may be elsewhere, rad or m: people round, and sensors do."""
_XYZW = [1, 2, 3, 0]


def status_message(status: Status, message: str = "") -> StatusMsg:
    """Return the message of a status code and its sentence."""
    return StatusMsg(code=int(status), message=message)


def said(*sentences: str) -> str:
    """Join the sentences that are not empty."""
    return "; ".join(filter(None, sentences))


def sentence_of(error: KinoptError) -> str:
    """Return an exception's text, with a remedy for the node's clients instead of one for users of the library."""
    if isinstance(error, PreparingError):
        return f"{error.what}; ~/ready says when that is done"
    return str(error)


def error_message(error: KinoptError) -> StatusMsg:
    """Return the status message of an exception."""
    sentence = str(error)
    if isinstance(error, PreparingError):  # whose own remedy is one for users of the library
        sentence = (
            f"{error.what}, for longer than this request's timeout allows; ~/ready says when that is done: ask again "
            "then, or allow more time"
        )
    return status_message(error.status, sentence)


def matrices_from_poses(
    poses: Sequence[Pose], what: str = "poses", error: Callable[[str], KinoptError] = InvalidGoalError
) -> Annotated[Float64, "B 4 4"]:
    """Return the transforms of B poses.

    Raises:
        KinoptError: of the type given, if a number is not finite or a quaternion is not of unit length.
    """
    # Plain floats: for one pose ten times as quick as arrays, for a thousand as quick.
    rows = [_matrix(pose, what, index, error) for index, pose in enumerate(poses)]
    return np.array(rows, dtype=np.float64).reshape(-1, 4, 4)


def pose_of_transform(transform: Transform) -> Pose:
    """Return a transform as a pose."""
    p = transform.translation
    return Pose(position=Point(x=p.x, y=p.y, z=p.z), orientation=transform.rotation)


def poses_from_matrices(T: Annotated[Float64, "B 4 4"]) -> list[Pose]:
    """Return the poses of B transforms; NaN transforms give NaN poses."""
    quaternions = np.full((len(T), 4), np.nan)
    finite = np.isfinite(T).all(axis=(1, 2))
    quaternions[finite] = matrix_to_quaternion(T[finite, :3, :3])[:, _XYZW]
    return [
        Pose(position=Point(x=p[0], y=p[1], z=p[2]), orientation=Quaternion(x=q[0], y=q[1], z=q[2], w=q[3]))
        for p, q in zip(T[:, :3, 3].tolist(), quaternions.tolist(), strict=True)
    ]


def flat_array(values: Float64) -> "array[float]":
    """Return row-major numbers in the type that message fields take without copying one by one."""
    result = array("d")
    result.frombytes(np.ascontiguousarray(values, dtype=np.float64).tobytes())
    return result


def configuration_from_joint_state(
    message: JointState, robot: RobotModel, base: Annotated[Float64, "nq"]
) -> Annotated[Float64, "nq"]:
    """Return ``base`` with the positions that a joint state names.

    Names are variables of the robot; fixed and mimic joints are accepted and skipped, since their values follow
    from the others. Any order, any subset.

    Raises:
        InvalidStateError: lengths differ, a value is not finite, a name is given twice.
        UnknownJointError: a name that the robot does not have.
    """
    if len(message.name) != len(message.position):
        raise InvalidStateError(
            f"joint state has {len(message.name)} names and {len(message.position)} positions; they must be equal"
        )
    return _placed(message.name, message.position, robot, base)


def configuration_to_reach(
    message: JointState, robot: RobotModel, base: Annotated[Float64, "nq"]
) -> Annotated[Float64, "nq"]:
    """Return what ``configuration_from_joint_state`` does, of a joint state that is wanted: what it says of mimic and
    fixed joints must hold, too.

    Raises:
        InvalidStateError: it does not; else as there.
        UnknownJointError: as there.
    """
    q = configuration_from_joint_state(message, robot, base)
    for name, value in zip(message.name, message.position, strict=True):
        if name in robot.variable_index:
            continue
        joint = robot.joint_by_name[name]
        at = 0.0 if joint.mimics is None else joint.multiplier * q[joint.first_variable] + joint.offset
        if not abs(value - at) <= FOLLOWS:
            why = (
                "is fixed: leave it out"
                if joint.mimics is None
                else f"follows {joint.mimics!r}, which takes it to {at:.6g}: give {joint.mimics!r} alone"
            )
            raise InvalidStateError(f"{name!r} is to be at {value:.6g}, but it {why}")
    return q


def trajectory_message(trajectory: JointTrajectory, frame_id: str) -> JointTrajectoryMsg:
    """Return the message of a trajectory; stamp 0, which controllers take as now."""
    message = JointTrajectoryMsg(joint_names=list(trajectory.joint_names))
    message.header.frame_id = frame_id
    for t, q, v, a in zip(
        trajectory.time.tolist(),
        trajectory.position,
        trajectory.velocity,
        trajectory.acceleration,
        strict=True,
    ):
        message.points.append(
            JointTrajectoryPoint(
                positions=flat_array(q),
                velocities=flat_array(v),
                accelerations=flat_array(a),
                time_from_start=duration_message(t),
            )
        )
    return message


def trajectory_from_message(message: JointTrajectoryMsg) -> JointTrajectory:
    """Return the trajectory of a message whose points carry positions, velocities and accelerations."""
    points = message.points
    return JointTrajectory(
        tuple(message.joint_names),
        np.array([seconds(point.time_from_start) for point in points]),
        *(
            np.array([getattr(point, name) for point in points], dtype=np.float64)
            for name in ("positions", "velocities", "accelerations")
        ),
    )


def longer(time: Duration, more: int) -> Duration:
    """Return a ROS duration that is so many ns longer."""
    sec, nanosec = divmod(nanoseconds(time) + more, 10**9)
    return Duration(sec=sec, nanosec=nanosec)


def duration_message(seconds: float) -> Duration:
    """Return a ROS duration, rounded to whole nanoseconds.

    Raises:
        InvalidRequestError: more than its 32 bits of seconds can say (68 years).
    """
    sec, nanosec = divmod(round(seconds * 1e9), 10**9)
    if sec >= 2**31:
        raise InvalidRequestError(f"a motion of {seconds:.3g} s is longer than a message can say")
    return Duration(sec=sec, nanosec=nanosec)


def seconds(duration: Duration) -> float:
    """Return the seconds of a ROS duration."""
    return float(duration.sec + duration.nanosec * 1e-9)


def nonnegative(value: float, what: str, error: Callable[[str], KinoptError], default: float) -> float:
    """Return ``value``, or the default where a request leaves it 0.

    Raises:
        KinoptError: of the type given, if it is negative or not finite.
    """
    if not (math.isfinite(value) and value >= 0.0):
        raise error(
            f"{what} is {value}; allowed is a finite number above 0, or 0 for the default {default:g}"
        )
    return value if value > 0.0 else default


def _matrix(pose: Pose, what: str, index: int, error: Callable[[str], KinoptError]) -> tuple[float, ...]:
    """Return the sixteen numbers of a pose's transform."""
    p, q = pose.position, pose.orientation
    px, py, pz = p.x, p.y, p.z
    x, y, z, w = q.x, q.y, q.z, q.w
    square = x * x + y * y + z * z + w * w
    if not (math.isfinite(px) and math.isfinite(py) and math.isfinite(pz) and math.isfinite(square)):
        raise error(
            f"{what}[{index}] has a number that is not finite: position ({px:g}, {py:g}, {pz:g}), "
            f"orientation ({x:g}, {y:g}, {z:g}, {w:g})"
        )
    length = math.sqrt(square)
    if abs(length - 1.0) > _QUATERNION_TOLERANCE:
        raise error(
            f"{what}[{index}].orientation has length {length:.6g}; allowed is 1 within {_QUATERNION_TOLERANCE} "
            "(w is 1 where a message does not give it)"
        )
    f = 2.0 / square  # twice the inverse of the square: normalises
    xx, yy, zz = f * x * x, f * y * y, f * z * z
    xy, xz, yz = f * x * y, f * x * z, f * y * z
    wx, wy, wz = f * w * x, f * w * y, f * w * z
    return (
        *(1.0 - yy - zz, xy - wz, xz + wy, px),
        *(xy + wz, 1.0 - xx - zz, yz - wx, py),
        *(xz - wy, yz + wx, 1.0 - xx - yy, pz),
        *(0.0, 0.0, 0.0, 1.0),
    )


def _placed(names: Sequence[str], values: Sequence[float], robot: RobotModel, base: Float64) -> Float64:
    if len(set(names)) != len(names):
        twice = [quoted(name) for name, count in Counter(names).items() if count > 1]
        raise InvalidStateError(f"joint state names {shortened(twice)} twice")
    q = base.copy()
    index: Mapping[str, int] = robot.variable_index
    for name, value in zip(names, values, strict=True):
        if name in index:
            if not math.isfinite(value):
                raise InvalidStateError(f"position of joint {name!r} is {value}; it must be finite")
            q[index[name]] = value
            continue
        joint = robot.joint_by_name.get(name)
        if joint is None:
            raise UnknownJointError(name, robot.variable_names)
        if joint.is_active:
            own = ", ".join(robot.variable_names[i] for i in robot.variables_of(name))
            raise InvalidStateError(f"joint {name!r} has several variables: name {own}")
    return q
