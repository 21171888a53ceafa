"""`kinopt bench ros`: what a request costs from another process, beside the cheapest service there is."""

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from std_srvs.srv import Trigger

from kinopt_msgs.srv import SolveIK
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.isolation import isolate
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.ros.robot.bundled import bundled_parameters
from kinopt_ros.status import Status

_REPEATS = 20
"""Calls with a whole batch."""
_BLOCK, _BLOCKS = 20, 20
"""Calls in a row for the processor time of each kind of call, and how often."""


def measure(calls: int, batch: int) -> dict[str, Any]:
    """``requests``, how many of them were ``solved``, and ``rows`` with one record per kind of call (ms);
    ``node_cpu_ms`` is the processor time that the node takes for one, None where the system does not say.

    MoveIt's ``compute_ik`` is among them where moveit_msgs is installed.

    Raises:
        InvalidRequestError: too few calls, or a batch that the node does not take.
    """
    if calls < 10 or not 1 <= batch <= 10_000:
        raise InvalidRequestError(
            f"--calls is {calls} and --batch {batch}; allowed are 10 or more, and 1 to 10000"
        )
    isolate()
    robot = load_robot("panda")
    T = forward_kinematics(robot, random_configurations(robot, max(calls, batch), 0), links=("panda_link8",))[
        :, 0
    ]
    poses = poses_from_matrices(T)
    with NodeProcess(bundled_parameters("panda")) as process:
        rclpy.init(args=[])
        client = Client()
        try:
            client.wait_until_ready(alive=lambda: process.running)
            solved: list[bool] = []

            def solve(targets: list[Any]) -> None:
                request = SolveIK.Request(poses=targets, tip_link="panda_link8", base_link="panda_link0")
                answer = client.call("solve_ik", request)
                solved.append(answer.status.code == Status.SUCCESS)

            single: dict[str, Callable[[int], Any]] = {
                "std_srvs/Trigger": lambda i: client.call("ready", Trigger.Request()),
                "solve_ik, 1 target": lambda i: solve([poses[i]]),
            }
            if find_spec("moveit_msgs") is not None:
                single["compute_ik, 1 target"] = _compute_ik(client, robot, poses, solved)
            # In turn, call by call, so that whatever else the machine does falls on all alike.
            rows = _times_in_turn(single, calls)
            cpu = _cpu_in_turn(single, calls, process.pid)
            whole = f"solve_ik, {batch} targets"
            rows += _times_in_turn({whole: lambda i: solve(poses[:batch])}, _REPEATS)
        finally:
            client.close()
            rclpy.try_shutdown()
    return {"requests": len(solved), "solved": sum(solved), "rows": _records(rows, cpu)}


def _compute_ik(
    client: Client, robot: RobotModel, poses: list[Any], solved: list[bool]
) -> Callable[[int], Any]:
    """Return a call of MoveIt's service, as a client of MoveIt's makes it: with the state of all joints."""
    kind = import_module("moveit_msgs.srv").GetPositionIK
    client.know("compute_ik", kind)
    states = random_configurations(robot, len(poses), 1)

    def call(i: int) -> None:
        request = kind.Request()
        asked = request.ik_request
        asked.group_name, asked.ik_link_name = "panda_arm", "panda_link8"
        asked.pose_stamped.header.frame_id = "panda_link0"
        asked.pose_stamped.pose = poses[i]
        asked.robot_state.joint_state.name = list(robot.variable_names)
        asked.robot_state.joint_state.position = states[i].tolist()
        solved.append(client.call("compute_ik", request).error_code.val == 1)

    return call


def _times_in_turn(actions: dict[str, Callable[[int], Any]], count: int) -> list[tuple[str, Float64]]:
    """Wall time of each action, s, after a tenth of the calls as warm-up."""
    times = {name: np.empty(count) for name in actions}
    for i in range(-(count // 10 + 1), count):
        for name, action in actions.items():
            start = time.perf_counter()
            action(i)
            if i >= 0:
                times[name][i] = time.perf_counter() - start
    return list(times.items())


def _cpu_in_turn(actions: dict[str, Callable[[int], Any]], count: int, pid: int) -> dict[str, float]:
    """Return the processor time that a process takes for each action, s, what it does afterwards included; the median
    of many blocks of calls. Empty where the system does not say."""
    used: dict[str, list[float]] = {name: [] for name in actions}
    for block in range(_BLOCKS):
        for name, action in actions.items():
            before = _cpu_seconds(pid)
            for i in range(_BLOCK):
                action((block * _BLOCK + i) % count)
            after = _cpu_seconds(pid)
            if before is None or after is None:
                return {}
            used[name].append((after - before) / _BLOCK)
    return {name: float(np.median(seconds)) for name, seconds in used.items()}


def _cpu_seconds(pid: int) -> float | None:
    """Return the processor time that all threads of a process have taken, s; None where the system does not say."""
    try:
        texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    except OSError:  # a thread has ended meanwhile
        return None
    return sum(int(text.split()[0]) for text in texts) * 1e-9 if texts else None


def _records(rows: list[tuple[str, Float64]], cpu: dict[str, float]) -> list[dict[str, Any]]:
    reference = float(np.median(rows[0][1]))
    return [
        {
            "call": name,
            "calls": len(times),
            "p50_ms": float(np.median(times)) * 1e3,
            "p99_ms": float(np.quantile(times, 0.99)) * 1e3,
            "max_ms": float(times.max()) * 1e3,
            "p50_over_trigger": float(np.median(times)) / reference,
            "node_cpu_ms": cpu[name] * 1e3 if name in cpu else None,
        }
        for name, times in rows
    ]
