"""Algorithm 1."""

import numpy as np

from kinopt_ros.solvers.hjcd.reference.ccd import ccd

from ..arms import arm_named, between, planar_robot, random_q


def test_a_planar_arm_gets_there_within_fifty_sweeps() -> None:
    arm = between(planar_robot(), "l0", "l4")
    for goal, start in zip(random_q(arm, 10, 0), random_q(arm, 10, 1), strict=True):
        p = arm.poses(goal)[:3, 3]
        q, sweeps = ccd(arm, start, p, 1e-3, 50)
        assert np.linalg.norm(p - arm.poses(q)[:3, 3]) < 1e-3
        assert sweeps <= 50


def test_more_sweeps_are_never_worse_and_limits_are_kept() -> None:
    arm = arm_named("continuous_and_prismatic")
    start, p = random_q(arm, 1, 2)[0], np.array([3.0, 0.0, 0.2])  # too far away
    distances = []
    for sweeps in range(5):
        q, made = ccd(arm, start, p, 1e-6, sweeps)
        assert made == sweeps
        assert ((arm.lower <= q) & (q <= arm.upper)).all()
        distances.append(np.linalg.norm(p - arm.poses(q)[:3, 3]))
    assert (np.diff(distances) <= 1e-12).all()
