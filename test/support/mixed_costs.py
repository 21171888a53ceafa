"""Requests of ~/solve_ik with costs, mixed: other kinds of costs, weights, poses, numbers of targets and solvers."""

from __future__ import annotations

from typing import Any

from kinopt_msgs.msg import Cost
from kinopt_msgs.srv import SolveIK
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.messages.conversions import poses_from_matrices

DECLARED = (
    "costs:\n"
    "  - {cost: link_pose, link: panda_link8, base_link: panda_link0, tolerance: [1.0e-4, 1.0e-3],"
    " T_base_target: {xyz: [0.4, 0.1, 0.5]}, label: pose}\n"
    "  - {cost: rest, weight: 0.1}\n"
)
"""A file for ``jax_lm.objectives``: the structure of ``on_jax`` requests."""
KINDS = (
    ("rest", ""),
    ("manipulability", "{link: panda_link8}"),
    ("position_limits", "{margin: 0.1}"),
    ("look_at", "{link: panda_link5, place: [1, 0, 0]}"),
    ("alignment", "{link: panda_link5, axis: [0, 0, 1], direction: [0, 0, 1]}"),
)


def mixed_request(robot: RobotModel, rng: Any, on_jax: bool) -> SolveIK.Request:
    """One request: of ``jax_lm`` one target and a rest posture, of ``cpu`` some of ``KINDS`` and 1 to 5 targets."""
    count = 1 if on_jax else int(rng.integers(1, 6))
    T = forward_kinematics(
        robot, random_configurations(robot, count, int(rng.integers(1 << 31))), ["panda_link8"]
    )[:, 0]
    chosen = [KINDS[0]] if on_jax else [kind for kind in KINDS if rng.random() < 0.5] or [KINDS[0]]
    request = SolveIK.Request(
        poses=poses_from_matrices(T), solver="jax_lm" if on_jax else "cpu", no_fallback=True
    )
    request.costs = [
        Cost(cost=name, parameters=parameters, weight=[float(rng.uniform(0.001, 0.1))])
        for name, parameters in chosen
    ]
    return request
