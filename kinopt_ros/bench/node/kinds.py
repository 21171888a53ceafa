"""Kinds of requests of the load test, and how their answers are judged: by forward kinematics of this process."""

import math
from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, ClassVar

import numpy as np
from std_msgs.msg import Header

from kinopt_msgs.srv import ComputeFK, SolveIK
from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import inverse, pose_error
from kinopt_ros.problems.ik import ORIENTATION_TOLERANCE, POSITION_TOLERANCE
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.messages.conversions import flat_array, matrices_from_poses, poses_from_matrices
from kinopt_ros.status import Status

TIP = "panda_link8"
_ARM = 7
"""The Panda's arm is the first variables of its q."""
_DIFFERENT = 100
"""Requests of a client before it begins again with the first."""
_ROUNDING = 1e-9
"""Largest difference between our forward kinematics and the node's, m and rad."""
_REFUSALS = (Status.QUEUE_FULL, Status.TIMED_OUT, Status.ROBOT_STATE_STALE)


class Outcome(Enum):
    """Value of an answer."""

    RIGHT = "right"
    WRONG = "wrong"
    """A success that is none, a failure that cannot be, or not the answer to this question."""
    REFUSED = "refused"
    """QUEUE_FULL, TIMED_OUT, or ROBOT_STATE_STALE where a busy machine keeps joint states back."""
    UNSOLVED = "unsolved"
    """A target that can be reached was not."""


class Kind(ABC):
    """Requests of one client. ``timeout`` (s) is what they ask for."""

    name: ClassVar[str]
    service: ClassVar[str]
    timeout: ClassVar[float] = 1.0

    @abstractmethod
    def request(self, i: int) -> Any:
        """The i-th request."""

    @abstractmethod
    def judge(self, i: int, answer: Any) -> tuple[Outcome, str]:
        """Return what the answer to the i-th request is worth, and why it is wrong if it is."""


class ReachableTargets(Kind):
    """One or many reachable targets in a request; every client has its own."""

    service = "solve_ik"
    timeout = 5.0

    def __init__(self, client: str, seed: int, batch: int) -> None:
        self._robot = load_robot("panda")
        count = _DIFFERENT if batch == 1 else 3
        q = random_configurations(self._robot, count * batch, seed)
        self._T = forward_kinematics(self._robot, q, links=(TIP,)).reshape(count, batch, 4, 4)
        self._requests = [
            _solve_ik(poses_from_matrices(T), client, self.timeout, 0 if batch == 1 else i)
            for i, T in enumerate(self._T)
        ]

    def request(self, i: int) -> Any:
        """The i-th request."""
        return self._requests[i % len(self._requests)]

    def judge(self, i: int, answer: Any) -> tuple[Outcome, str]:
        """Every solution must reach its target inside the limits."""
        T = self._T[i % len(self._T)]
        if answer.status.code in _REFUSALS and not len(answer.positions):
            return Outcome.REFUSED, answer.status.message
        codes = np.array(answer.codes)
        if len(codes) != len(T):
            return Outcome.WRONG, f"{len(codes)} codes for {len(T)} targets: {answer.status.message}"
        positions = np.array(answer.positions).reshape(-1, _ARM)
        solved = codes == Status.SUCCESS
        if len(positions) != (len(T) if solved.any() else 0):
            return Outcome.WRONG, f"{len(positions)} rows of positions for {len(T)} targets"
        if solved.any():
            wrong = _wrong(self._robot, positions[solved], T[solved])
            if wrong:
                return Outcome.WRONG, wrong
        if solved.all():
            if answer.status.code != Status.SUCCESS:
                return Outcome.WRONG, f"all targets solved, but code {answer.status.code}"
            return Outcome.RIGHT, ""
        if set(codes[~solved].tolist()) <= set(map(int, _REFUSALS)):
            return Outcome.REFUSED, answer.status.message
        return Outcome.UNSOLVED, answer.status.message


class Single(ReachableTargets):
    """One target."""

    name = "single"

    def __init__(self, client: str, seed: int) -> None:
        super().__init__(client, seed, 1)


class Batch(ReachableTargets):
    """A thousand targets."""

    name = "batch"
    timeout = 30.0

    def __init__(self, client: str, seed: int) -> None:
        super().__init__(client, seed, 1000)


class Unreachable(Kind):
    """Poses for four of the arm's joints, which meet hardly any: the solver tries hard, and must fail.

    That they are inside the reach keeps it from seeing that at once. In turn so few that the node gives them a quick
    try first, and so many that it does not.
    """

    name = "unreachable"
    service = "solve_ik"
    timeout = 2.0
    _BASE = "panda_link3"
    _SIZES = (5, 100)

    def __init__(self, client: str, seed: int) -> None:
        robot = load_robot("panda")
        q = random_configurations(robot, max(self._SIZES), seed)
        T = forward_kinematics(robot, q, links=(self._BASE, TIP))
        T = inverse(T[:, 0]) @ T[:, 1]
        T[:, 1, 3] += 0.03  # the wrist cannot leave the plane of the elbow so far
        poses = poses_from_matrices(T)
        self._requests = [
            _solve_ik(poses[:size], client, self.timeout, 0, self._BASE) for size in self._SIZES
        ]

    def request(self, i: int) -> Any:
        """The i-th request."""
        return self._requests[i % len(self._requests)]

    def judge(self, i: int, answer: Any) -> tuple[Outcome, str]:
        """No positions, and a code that says why."""
        del i
        if len(answer.positions) or answer.status.code == Status.SUCCESS:
            return Outcome.WRONG, "a target that cannot be reached was solved"
        if answer.status.code in (Status.QUEUE_FULL, Status.ROBOT_STATE_STALE):
            return Outcome.REFUSED, answer.status.message
        if answer.status.code in (Status.NO_IK_SOLUTION, Status.TIMED_OUT):
            return Outcome.RIGHT, ""
        return Outcome.WRONG, f"code {answer.status.code}: {answer.status.message}"


class ForwardKinematics(Kind):
    """Ten states."""

    name = "fk"
    service = "compute_fk"

    def __init__(self, client: str, seed: int) -> None:
        del client  # the request has no field for it
        robot = load_robot("panda")
        q = random_configurations(robot, 10 * _DIFFERENT, seed)
        self._T = forward_kinematics(robot, q, links=(TIP,)).reshape(_DIFFERENT, 10, 4, 4)
        self._requests = [
            ComputeFK.Request(
                links=[TIP],
                joint_names=list(robot.variable_names[:_ARM]),
                positions=flat_array(rows),
            )
            for rows in q[:, :_ARM].reshape(_DIFFERENT, 10, _ARM)
        ]

    def request(self, i: int) -> Any:
        """The i-th request."""
        return self._requests[i % _DIFFERENT]

    def judge(self, i: int, answer: Any) -> tuple[Outcome, str]:
        """The poses that this process computes."""
        if answer.status.code in _REFUSALS:
            return Outcome.REFUSED, answer.status.message
        if answer.status.code != Status.SUCCESS or len(answer.poses) != 10:
            return Outcome.WRONG, f"code {answer.status.code}, {len(answer.poses)} poses"
        distance, angle = pose_error(self._T[i % _DIFFERENT], matrices_from_poses(answer.poses))
        if max(distance.max(), angle.max()) > 1e-6:
            return Outcome.WRONG, f"a pose off by {distance.max():.1e} m, {angle.max():.1e} rad"
        return Outcome.RIGHT, ""


KINDS: dict[str, type[Any]] = {kind.name: kind for kind in (Single, Batch, Unreachable, ForwardKinematics)}


def _solve_ik(
    poses: list[Any], client: str, timeout: float, random_seed: int, base: str = "panda_link0"
) -> Any:
    return SolveIK.Request(
        header=Header(frame_id=base),
        poses=poses,
        base_link=base,
        tip_link=TIP,
        client=client,
        timeout=timeout,
        random_seed=random_seed,
    )


def _wrong(robot: RobotModel, positions: Float64, T: Float64) -> str:
    """Return why a claimed solution is none; empty if all are good."""
    if not np.isfinite(positions).all():
        return "a solution that is not finite"
    q = np.repeat(robot.default_q[None], len(positions), axis=0)
    q[:, :_ARM] = positions
    distance, angle = pose_error(T, forward_kinematics(robot, q, links=(TIP,))[:, 0])
    if distance.max() > POSITION_TOLERANCE + _ROUNDING or angle.max() > ORIENTATION_TOLERANCE + _ROUNDING:
        return f"a solution off by {distance.max():.1e} m, {angle.max():.1e} rad"
    beyond = np.maximum(robot.limits.lower[:_ARM] - positions, positions - robot.limits.upper[:_ARM]).max()
    return f"a solution {beyond:.1e} rad beyond a limit" if beyond > 0.0 or math.isnan(beyond) else ""
