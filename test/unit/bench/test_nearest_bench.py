"""kinopt bench nearest: answers of two arms of five joints beside scipy's."""

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("pinocchio")
pytest.importorskip("scipy.optimize")
from kinopt_ros.bench import nearest
from kinopt_ros.bench.targets import ik_task
from kinopt_ros.kinematics.se3 import is_pose
from kinopt_ros.robot.sources import robot_names


@pytest.mark.skipif("so101" not in robot_names(), reason="example-robot-data is not installed")
def test_arms_of_five_joints_come_as_near_as_scipy() -> None:
    row, other = nearest.run_nearest_bench(
        "so101", *nearest.ARMS["so101"], ((1.0, 0.1), (1.0, 1.0)), targets=15, starts=6
    )
    assert row.targets == other.targets == 15
    assert min(row.as_near, other.as_near) >= 14 / 15
    assert row.farther >= 1.0
    assert row.us_per_call > 0.0


def test_targets_are_poses_and_two_of_three_are_elsewhere() -> None:
    task = ik_task("panda", "panda_link0", "panda_link8", 9, "random", 0)
    hard = nearest.hard_targets(task, 1)
    assert is_pose(hard.T_base_target, 1e-9).all()
    moved = np.linalg.norm((hard.T_base_target - task.T_base_target)[:, :3, 3], axis=1)
    assert (moved[::3] == 0.0).all()
    assert (np.delete(moved, slice(None, None, 3)) > 0.0).all()
