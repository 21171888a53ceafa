"""Robotics Toolbox for Python: Levenberg-Marquardt in C++ with random restarts (Chan's damping, 0.1).

It ends when half the squared error, metres and radians together, is below its tolerance. The default of 1e-6 leaves
1.4 mm. The usual setting for a micrometre is 1e-12, which is |error| < 1.41e-6: some of its answers miss the
benchmark's 1e-6 by that. ``rtb_ik_lm_tight`` asks for 1e-6.
"""

from importlib import import_module
from typing import Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.peers import Peer, require, require_plain_chain
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.robot.chain import Motion

TOLERANCE = 1e-12
"""Half of the squared error, m^2 and rad^2."""


def build(task: IkTask, name: str = "rtb_ik_lm", tolerance: float = TOLERANCE) -> Peer:
    """An elementary transform sequence from our chain: one constant and one joint transform per motion."""
    version = require("roboticstoolbox", "roboticstoolbox-python")
    require_plain_chain(task)
    rtb: Any = import_module("roboticstoolbox")

    chain = task.chain
    sequence = rtb.ETS()
    before = np.eye(4)
    half_turns = np.where(np.isfinite(task.upper - task.lower), 0.0, np.pi)
    lower = np.where(half_turns > 0.0, -half_turns, task.lower)
    upper = np.where(half_turns > 0.0, half_turns, task.upper)
    for i, column in enumerate(chain.column):
        turned = _z_to(chain.axis[i] * chain.multiplier[i])
        sequence *= rtb.ET.SE3(before @ chain.T_fixed[i] @ turned)
        joint = rtb.ET.Rz if chain.motion[i] == Motion.ROTATION else rtb.ET.tz
        sequence *= joint(qlim=np.array([lower[column], upper[column]]), jindex=int(column))
        before = turned.T
    sequence *= rtb.ET.SE3(before @ chain.T_fixed[-1])

    def solve(T_base_target: Float64) -> Float64:
        q: Float64 = sequence.ik_LM(T_base_target, tol=tolerance, k=0.1, method="chan").q
        return q

    return Peer(name, version, 0, solve)


def _z_to(axis: Float64) -> Float64:
    """A rotation that turns z to a unit axis."""
    helper = np.eye(3)[int(np.argmin(abs(axis)))]
    x = np.cross(helper, axis)
    x /= np.linalg.norm(x)
    T = np.eye(4)
    T[:3, :3] = np.stack([x, np.cross(axis, x), axis], axis=1)
    return T
