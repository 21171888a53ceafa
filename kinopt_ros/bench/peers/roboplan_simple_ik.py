"""RoboPlan's SimpleIk: damped pseudoinverse of the Jacobian, random restarts, in C++; its defaults but for tolerance,
restarts and time."""

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.peers import Peer
from kinopt_ros.bench.peers.roboplan_scene import GROUP, roboplan_scene
from kinopt_ros.bench.targets import IkTask

TOLERANCE = 5e-7
"""Tolerance of position (m) and orientation (rad)."""
RESTARTS = 50
SECONDS = 0.1
"""Most time of a target, s."""


def build(task: IkTask) -> Peer:
    """Seeds are the middle of the joint ranges: the interface takes no pose alone."""
    scene, version = roboplan_scene(task, "simple_ik")
    from roboplan import core, simple_ik

    options = simple_ik.SimpleIkOptions(
        group_name=GROUP,
        max_time=SECONDS,
        max_restarts=RESTARTS,
        max_linear_error_norm=TOLERANCE,
        max_angular_error_norm=TOLERANCE,
        check_collisions=False,
    )
    solver = simple_ik.SimpleIk(scene, options)
    solver.setRngSeed(0)
    middle = core.JointConfiguration(list(task.names), 0.5 * (task.lower + task.upper))
    failed = np.full(len(task.variables), np.nan)

    def solve(T_base_target: Float64) -> Float64:
        goal = core.CartesianConfiguration(task.base_link, task.tip_link, np.asfortranarray(T_base_target))
        found = core.JointConfiguration(middle.joint_names, middle.positions)
        return np.array(found.positions) if solver.solveIk(goal, middle, found) else failed

    return Peer("roboplan_simple_ik", version, 1, solve)
