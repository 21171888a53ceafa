"""Objectives of one configuration of the arm with two hands, by a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.position_limits import PositionLimits
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem
from kinopt_ros.robot.model import RobotModel

PLANE = (1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
JOINTS = ("j0", "j1", "j2", "j3")


def place(x: float, y: float) -> np.ndarray:
    T = np.eye(4)
    T[:2, 3] = x, y
    return T


def reach(rng: np.random.Generator, least: float, most: float) -> np.ndarray:
    angle, distance = rng.uniform(-2.0, 2.0), rng.uniform(least, most)
    return place(distance * np.cos(angle), distance * np.sin(angle))


def held(rng: np.random.Generator) -> Objective:
    at = reach(rng, 0.3, 0.85)
    return Objective(
        [LinkPose(link="hand", T_base_target=at, weight=PLANE, tolerance=1e-6), Rest(weight=0.3)]
    )


def weighed(rng: np.random.Generator) -> Objective:
    first, second = reach(rng, 0.3, 1.5), reach(rng, 0.3, 1.5)
    return Objective(
        [
            LinkPose(link="hand", T_base_target=first, weight=PLANE),
            LinkPose(link="other_hand", T_base_target=second, weight=PLANE),
            Rest(weight=0.1),
        ]
    )


def together(rng: np.random.Generator) -> Objective:
    T = reach(rng, 0.1, 0.3)
    return Objective(
        [
            RelativePose(link_a="hand", link_b="other_hand", T_a_b=T, weight=PLANE, tolerance=1e-6),
            Rest(weight=0.3),
        ]
    )


def margin(rng: np.random.Generator) -> Objective:
    at = reach(rng, 0.3, 1.5)
    return Objective(
        [
            LinkPose(link="hand", T_base_target=at, weight=PLANE),
            PositionLimits(margin=1.5, tolerance=1e-6),
            Rest(weight=0.1),
        ]
    )


def asked(arm: RobotModel, make: Callable[[np.random.Generator], Objective], seed: int) -> ObjectiveProblem:
    return objective_problem(arm, make(np.random.default_rng(seed)), joints=JOINTS, random_seed=seed)
