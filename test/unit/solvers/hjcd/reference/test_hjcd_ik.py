"""Algorithm 2."""

from dataclasses import replace

import numpy as np
import pytest

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.free_joint import with_free_joint
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.solvers.hjcd.reference.arm import arm_of
from kinopt_ros.solvers.hjcd.reference.hjcd_ik import HjcdSettings, Selection, hjcd_ik, usual_selection
from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings
from kinopt_ros.solvers.hjcd.reference.residual import norms, residual, score

from ..arms import ROBOTS, arm_named, random_q


@pytest.mark.parametrize(
    ("starts", "candidates"), [(1, 24), (8, 192), (16, 128), (100, 100), (1000, 100), (2000, 100), (4000, 80)]
)
def test_the_schedule_refines_some_hundred_candidates(starts: int, candidates: int) -> None:
    chosen = usual_selection(starts)
    assert chosen.keep * chosen.copies == candidates


def test_no_start_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="number of starts is 0"):
        usual_selection(0)


@pytest.mark.parametrize("name", ROBOTS)
def test_solutions_are_exact_inside_limits_and_sorted(name: str) -> None:
    arm = arm_named(name)
    T = arm.poses(random_q(arm, 1, 0)[0])
    settings = HjcdSettings(starts=12, selection=Selection(3, 2, 0.15))
    found = hjcd_ik(arm, T, settings)
    assert found.shape == (6, len(arm.lower))
    assert ((arm.lower <= found) & (found <= arm.upper)).all()
    assert max(norms(residual(T, arm.poses(found[0])))) < 1e-8
    assert (np.diff(score(residual(T, arm.poses(found)))) >= 0.0).all()


def test_same_seed_same_answer() -> None:
    arm = arm_named("six_revolute")
    T = arm.poses(random_q(arm, 1, 1)[0])
    settings = HjcdSettings(starts=3, selection=Selection(2, 1, 0.15), coarse=CoarseSettings(iterations=5))
    first, again, other = (hjcd_ik(arm, T, settings, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    fewer = hjcd_ik(arm, T, replace(settings, selection=Selection(1, 1, 0.15)), 1)
    assert fewer.shape == (1, 6)


def test_floating_joints_are_refused() -> None:
    robot = with_free_joint(ROBOTS["six_revolute"](), "l0")
    with pytest.raises(InvalidRequestError, match="floating"):
        arm_of(robot, build_chain(robot, robot.root_link, "l6"))
