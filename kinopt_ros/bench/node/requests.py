"""`kinopt bench ros`: what a request costs from another process, beside the cheapest service there is."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from std_srvs.srv import Trigger

from kinopt_msgs.srv import SolveIK
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.isolation import isolate
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.messages.conversions import poses_from_matrices
from kinopt_ros.ros.robot.bundled import bundled_parameters
from kinopt_ros.status import Status

_REPEATS = 20
"""Calls with a whole batch."""


def measure(calls: int, batch: int) -> dict[str, Any]:
    """``requests``, how many of them were ``solved``, and ``rows`` with one record per kind of call (ms).

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

            rows = [
                # In turn, call by call, so that whatever else the machine does falls on both alike.
                *_times_in_turn(
                    {
                        "std_srvs/Trigger": lambda i: client.call("ready", Trigger.Request()),
                        "solve_ik, 1 target": lambda i: solve([poses[i]]),
                    },
                    calls,
                ),
                *_times_in_turn({f"solve_ik, {batch} targets": lambda i: solve(poses[:batch])}, _REPEATS),
            ]
        finally:
            client.close()
            rclpy.try_shutdown()
    return {"requests": len(solved), "solved": sum(solved), "rows": _records(rows)}


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


def _records(rows: list[tuple[str, Float64]]) -> list[dict[str, Any]]:
    reference = float(np.median(rows[0][1]))
    return [
        {
            "call": name,
            "calls": len(times),
            "p50_ms": float(np.median(times)) * 1e3,
            "p99_ms": float(np.quantile(times, 0.99)) * 1e3,
            "max_ms": float(times.max()) * 1e3,
            "p50_over_trigger": float(np.median(times)) / reference,
        }
        for name, times in rows
    ]
