"""kinopt bench branches: what counts as a branch, and that nearly all are found."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
from kinopt_ros.bench import branches
from kinopt_ros.bench.targets import ik_task
from kinopt_ros.robot.sources import robot_names


@pytest.mark.skipif("ur5" not in robot_names(), reason="example-robot-data is not installed")
def test_nearly_all_branches_of_the_ur5_are_found() -> None:
    pytest.importorskip("eaik", reason="EAIK is not installed (pip install eaik)")
    row = branches.run_branch_bench("ur5", "base_link", "tool0", 40, seed=1)
    assert row.share >= 0.99
    assert row.branches > 5 * row.poses
    assert row.found_analytic >= 0.999 * row.branches
    assert row.found_eaik > 0.9 * row.branches
    assert 0.0 < row.analytic_inner_us_per_pose < row.analytic_us_per_pose


def test_the_same_branch_at_another_turn_is_no_other_branch() -> None:
    q = np.array([[0.1, 0.2], [0.1 + 2 * np.pi, 0.2], [0.1, 0.2 + 1e-3], [0.5, 0.2]])
    np.testing.assert_array_equal(branches._distinct(q), q[[0, 3]])
    assert branches._distinct(np.empty((0, 2))).shape == (0, 2)


def test_only_answers_that_reach_the_pose_inside_the_limits_count() -> None:
    task = ik_task("panda", "panda_link0", "panda_link8", 1, "random", 0)
    from kinopt_ros.kinematics.forward import chain_pose

    q = 0.5 * (task.lower + task.upper)
    T = chain_pose(task.chain, q)
    claims = np.stack([q, q + 1e-3, np.full(7, np.nan), q + 2 * np.pi])
    good = branches._good(task, T, claims)
    assert len(branches._distinct(good)) == 1
    outside = q.copy()
    outside[0] = task.upper[0] + 0.1
    assert len(branches._good(task, chain_pose(task.chain, outside), outside[None])) == 0
