"""The loop that people write around Pinocchio in Python: Levenberg-Marquardt on log6, clipping, random restarts."""

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.judge import Judge
from kinopt_ros.bench.peers import Peer, require, require_plain_chain
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.robot.chain import build_chain

RESTARTS = 50
STEPS = 40
TOLERANCE = 5e-7
"""Tolerance of the logarithm of the pose error, m and rad."""


def build(task: IkTask) -> Peer:
    """Damped steps in the tip frame, damping proportional to the squared error."""
    version = require("pinocchio", "pin")
    require_plain_chain(task)
    import pinocchio as pin

    above = build_chain(task.robot, task.robot.root_link, task.base_link)
    if set(above.variables.tolist()) & set(task.variables.tolist()):
        raise UnsupportedFeatureError("cannot take a chain whose base moves with it")
    judge = Judge(task)
    model, data = judge.model, judge.data
    velocities = [model.joints[model.getJointId(name)].idx_v for name in task.names]
    bounded = np.isfinite(task.upper - task.lower)
    low, high = np.where(bounded, task.lower, -np.pi), np.where(bounded, task.upper, np.pi)
    random = np.random.default_rng(0)
    pin.framesForwardKinematics(model, data, judge.configuration(0.5 * (low + high), task.variables))
    world_base = data.oMf[judge.base].copy()

    def solve(T_base_target: Float64) -> Float64:
        goal = world_base * pin.SE3(T_base_target)
        q = 0.5 * (low + high)
        for _ in range(RESTARTS):
            for _ in range(STEPS):
                full = judge.configuration(q, task.variables)
                pin.computeJointJacobians(model, data, full)
                pin.updateFramePlacement(model, data, judge.tip)
                error = pin.log6(data.oMf[judge.tip].actInv(goal))
                e = error.vector
                if np.linalg.norm(e[:3]) < TOLERANCE and np.linalg.norm(e[3:]) < TOLERANCE:
                    return q
                J = pin.getFrameJacobian(model, data, judge.tip, pin.LOCAL)[:, velocities]
                damping = 0.05 * float(e @ e) + 1e-9
                step = J.T @ np.linalg.solve(J @ J.T + damping * np.eye(6), e)
                q = np.clip(q + np.clip(step, -1.0, 1.0), task.lower, task.upper)
            q = random.uniform(low, high)
        return q

    return Peer("pinocchio_lm", version, 0, solve)
