"""Arms of the paper."""

import numpy as np
import pytest

from kinopt_ros.bench.hjcd.arms import arm
from kinopt_ros.bench.hjcd.fetch import fetch
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.sampling import halton_configurations
from kinopt_ros.robot.model import JointType


@pytest.mark.parametrize(("name", "joints"), [("panda", 7), ("fetch", 7), ("panda_12", 12), ("panda_24", 24)])
def test_joints_and_targets(name: str, joints: int) -> None:
    here = arm(name, 5, 3)
    assert len(here.chain.variables) == joints
    q = halton_configurations(here.robot, 5, 3)[:, here.chain.variables]
    np.testing.assert_allclose(chain_pose(here.chain, q), here.T_base_target, atol=1e-12)


def test_the_fetch_stands_as_it_should() -> None:
    """Stretched forwards at zero: the sum of the lengths along the arm."""
    robot = fetch()
    types = [joint.type for joint in robot.joints if joint.is_active]
    assert types.count(JointType.CONTINUOUS) == 3
    assert types.count(JointType.PRISMATIC) == 1
    here = arm("fetch", 1, 0)
    T = chain_pose(here.chain, np.zeros(7))
    np.testing.assert_allclose(T[:3, 3], [1.048525, 0.0, 0.40858], atol=1e-9)
    np.testing.assert_allclose(T[:3, :3], np.eye(3), atol=1e-12)
