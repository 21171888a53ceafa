"""Random problems of every kind that the library can be asked."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import inverse, pose, so3_exp
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem

KINDS = {
    "plain": 40,
    "unreachable": 2,
    "at limits": 6,
    "singular": 4,
    "tight": 8,
    "loose": 6,
    "free axes": 10,
    "per axis": 6,
    "tool": 6,
    "locked": 6,
    "several solutions": 2,
    "preference": 2,
    "several tips": 4,
    "state outside": 4,
    "seeds": 4,
    "own states": 4,
}
"""Kinds and how often each comes, in parts of all requests."""
_BATCHES = {"several solutions": 20, "preference": 20, "unreachable": 30}
"""Largest batches of the kinds that take long."""
_AXES = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, eq=False)
class Drawn:
    """A problem, and what the judge has to know besides."""

    kind: str
    problem: IkProblem
    locked: dict[str, Float64]
    """Variables that must keep their state."""


def draw(subject: Subject, rng: np.random.Generator, most: int, kind: str) -> Drawn:
    """Draw a random problem of a kind, of at most ``most`` requests."""
    robot = subject.robot
    B = int(rng.integers(1, min(_BATCHES.get(kind, 500), most) + 1))
    seed = int(rng.integers(2**31))
    q = random_configurations(robot, B, seed)
    tips = subject.tips if kind == "several tips" and len(subject.tips) > 1 else subject.tips[:1]
    options: dict[str, Any] = {"random_seed": seed}
    state = robot.default_q
    locked: dict[str, Float64] = {}
    if kind == "at limits":
        lower, upper = robot.limits.lower, robot.limits.upper
        side = rng.random(q.shape)
        q = np.where((side < 0.3) & np.isfinite(lower), lower, q)
        q = np.where((side > 0.7) & np.isfinite(upper), upper, q)
    elif kind == "singular":
        still = rng.random(q.shape[1]) < 0.5
        q[:, still] = np.clip(0.0, robot.limits.lower[still], robot.limits.upper[still])
    T_root = forward_kinematics(robot, q, links=(subject.base, *tips))
    T = inverse(T_root[:, :1]) @ T_root[:, 1:]
    if kind == "unreachable":
        T[..., :3, 3] *= rng.uniform(0.0, 2.5, (B, 1, 1))
        T[..., :3, :3] = so3_exp(rng.normal(size=(B, 1, 3)) * 2.0)
    elif kind == "tight":
        tolerance = 10.0 ** rng.uniform(-9.0, -6.0)
        options |= {"position_tolerance": tolerance, "orientation_tolerance": tolerance}
    elif kind == "loose":
        options |= {
            "position_tolerance": 10.0 ** rng.uniform(-3.0, -0.7),
            "orientation_tolerance": 10.0 ** rng.uniform(-2.0, 0.6),
        }
    elif kind == "free axes":
        count = int(rng.integers(1, 6))
        options["free_axes"] = [str(axis) for axis in rng.choice(_AXES, count, replace=False)]
    elif kind == "per axis":
        options |= {
            "position_tolerance": tuple((10.0 ** rng.uniform(-6.0, -1.0, 3)).tolist()),
            "orientation_tolerance": tuple((10.0 ** rng.uniform(-5.0, 0.0, 3)).tolist()),
        }
    elif kind == "tool":
        tool = pose(so3_exp(rng.normal(size=3)), rng.normal(size=3) * 0.2)
        options["T_link_tool"] = tool
        T = T @ tool
    elif kind == "locked":
        problem = ik_problem(robot, T[0, 0], base_link=subject.base, tip_link=tips[0])
        names = rng.choice(
            problem.joints, int(rng.integers(1, max(2, len(problem.joints) // 2))), replace=False
        )
        state = q.copy()
        options["locked_joints"] = [str(name) for name in names]
        locked = {str(name): state[:, robot.variable_index[str(name)]] for name in names}
    elif kind == "several solutions":
        options |= {"num_solutions": int(rng.integers(2, 17)), "turns": bool(rng.random() < 0.3)}
    elif kind == "preference":
        options["prefer"] = str(rng.choice(["closest", "rest", "mid_range"]))
        if options["prefer"] == "rest":
            options["rest"] = random_configurations(robot, 1, seed + 1)[0]
    elif kind == "state outside":
        state = robot.default_q + rng.normal(size=robot.nq) * 3.0
    elif kind == "seeds":
        n = len(ik_problem(robot, T[0, 0], base_link=subject.base, tip_link=tips[0]).variables)
        options["seeds"] = rng.normal(size=(int(rng.integers(1, 5)), n)) * 2.0
    elif kind == "own states":
        state = random_configurations(robot, B, seed + 2)
    if len(tips) == 1:
        T = T[:, 0]
    problem = ik_problem(
        robot,
        T,
        base_link=subject.base,
        tip_link=tips if len(tips) > 1 else tips[0],
        state=state,
        **options,
    )
    return Drawn(kind, problem, locked)
