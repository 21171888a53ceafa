"""RoboPlan's OInK: steps by a quadratic program within the position limits, in C++, in the loop that its examples have
in Python; random restarts."""

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.peers import Peer
from kinopt_ros.bench.peers.roboplan_scene import GROUP, roboplan_scene
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.kinematics.se3 import pose_error

RESTARTS = 50
STEPS = 60
TOLERANCE = 5e-7
"""Tolerance of position (m) and orientation (rad)."""
DAMPING = 1e-3
"""Levenberg-Marquardt damping of the task, by which RoboPlan multiplies the squared error."""


def build(task: IkTask) -> Peer:
    """The base of the chain must be still: tasks are given in the world."""
    scene, version = roboplan_scene(task, "optimal_ik")
    from roboplan import core, optimal_ik

    settings = optimal_ik.OinkSettings()
    settings.eps_abs = 1e-9
    oink = optimal_ik.Oink(scene, GROUP, settings)
    start = scene.getCurrentJointPositions()
    T_world_base = scene.forwardKinematics(start, task.base_link)
    indices = scene.getJointPositionIndices(list(task.names))
    goal = core.CartesianConfiguration("", task.tip_link, np.asfortranarray(np.eye(4)))
    frame = optimal_ik.FrameTask(oink, scene, goal, optimal_ik.FrameTaskOptions(lm_damping=DAMPING))
    limit = optimal_ik.PositionLimit(oink, 1.0)
    step = np.zeros(oink.num_variables)
    random = np.random.default_rng(0)
    middle = 0.5 * (task.lower + task.upper)

    def solve(T_base_target: Float64) -> Float64:
        T_world_target = T_world_base @ T_base_target
        frame.setTargetFrameTransform(np.asfortranarray(T_world_target))
        values = middle
        for _ in range(RESTARTS):
            q = start.copy()
            q[indices] = values
            for _ in range(STEPS):
                distance, angle = pose_error(T_world_target, scene.forwardKinematics(q, task.tip_link))
                if distance < TOLERANCE and angle < TOLERANCE:
                    return np.asarray(np.clip(q[indices], task.lower, task.upper))
                try:
                    oink.solveIk(q, [frame], [limit], step)
                except RuntimeError:  # the program has no solution from here
                    break
                q[indices] = np.clip(q[indices] + step, task.lower, task.upper)
            values = random.uniform(task.lower, task.upper)
        return np.asarray(q[indices])

    return Peer("roboplan_oink", version, 0, solve)
