"""Pink (https://github.com/stephane-caron/pink): steps by a quadratic program on Pinocchio within the position limits,
in the loop that its examples have; random restarts."""

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.judge import Judge
from kinopt_ros.bench.peers import Peer, require, require_plain_chain
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import SolverUnavailableError, UnsupportedFeatureError

RESTARTS = 20
STEPS = 60
TOLERANCE = 5e-7
"""Tolerance of position (m) and orientation (rad)."""
DAMPING = 1e-3
"""Levenberg-Marquardt damping of the task, by which Pink multiplies the squared error."""
SOLVERS = ("daqp", "proxqp", "quadprog", "osqp")
"""Solvers of quadratic programs; the first that is installed is used."""


def build(task: IkTask) -> Peer:
    """Other joints than the chain's are taken out of the model."""
    version = require("pink", "pin-pink")
    require_plain_chain(task)
    import pink
    import pinocchio as pin
    import qpsolvers

    able = [name for name in SOLVERS if name in qpsolvers.available_solvers]
    if not able:
        raise SolverUnavailableError(f"needs a solver of quadratic programs (pip install {SOLVERS[0]})")
    judge = Judge(task)
    whole = judge.model
    others = [whole.getJointId(name) for name in whole.names[1:] if name not in task.names]
    model = pin.buildReducedModel(
        whole, others, judge.configuration(task.robot.default_q, range(task.robot.nq))
    )
    if model.nq != len(task.variables):
        raise UnsupportedFeatureError("takes joints without limits as points of a circle")
    order = [model.joints[model.getJointId(name)].idx_q for name in task.names]
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    world_base = data.oMf[model.getFrameId(task.base_link, pin.FrameType.BODY)].copy()
    tip = model.getFrameId(task.tip_link, pin.FrameType.BODY)
    frame = pink.FrameTask(task.tip_link, position_cost=1.0, orientation_cost=1.0, lm_damping=DAMPING)
    limits = [pink.limits.ConfigurationLimit(model, config_limit_gain=1.0)]
    lower, upper = model.lowerPositionLimit, model.upperPositionLimit
    random = np.random.default_rng(0)

    def solve(T_base_target: Float64) -> Float64:
        goal = world_base * pin.SE3(T_base_target)
        frame.set_target(goal)
        q = 0.5 * (lower + upper)
        for _ in range(RESTARTS):
            for _ in range(STEPS):
                configuration = pink.Configuration(model, data, q, copy_data=False)
                error = pin.log6(data.oMf[tip].actInv(goal)).vector
                if np.linalg.norm(error[:3]) < TOLERANCE and np.linalg.norm(error[3:]) < TOLERANCE:
                    return np.asarray(q[order])
                try:
                    change = pink.solve_ik(configuration, [frame], 1.0, able[0], limits=limits)
                except pink.NoSolutionFound:
                    break
                q = np.clip(q + change, lower, upper)
            q = random.uniform(lower, upper)
        return np.asarray(q[order])

    return Peer("pink", version, 0, solve)
