"""Chains as kernels take them."""

import numpy as np
import pytest

from kinopt_ros.robot.chain import build_chain
from kinopt_ros.solvers.hjcd.chain import LOWER, UPPER, ChainShape, kernel_chain

from .arms import ROBOTS


@pytest.mark.parametrize("name", ROBOTS)
def test_variables_are_in_the_order_in_which_they_move_the_chain(name: str) -> None:
    """Also from the tip to the root, where the robot's order is the reverse."""
    robot = ROBOTS[name]()
    root, tip = robot.root_link, robot.link_names[-1]
    for base, end in ((root, tip), (tip, root)):
        chain = build_chain(robot, base, end)
        packed = kernel_chain(robot, chain)
        assert packed.column[0] == 0
        assert (np.diff(np.maximum.accumulate(packed.column)) <= 1).all()
        np.testing.assert_array_equal(packed.variables[packed.column], chain.variables[chain.column])
        np.testing.assert_array_equal(packed.ranges[LOWER], robot.limits.lower[packed.variables])
        np.testing.assert_array_equal(packed.ranges[UPPER], robot.limits.upper[packed.variables])


def test_chains_of_equal_size_share_kernels_and_mimic_joints_have_their_own() -> None:
    shapes = {}
    for name, factory in ROBOTS.items():
        robot = factory()
        shapes[name] = kernel_chain(robot, build_chain(robot, robot.root_link, robot.link_names[-1])).shape
    assert shapes["seven_revolute"] == shapes["continuous_and_prismatic"] == ChainShape(7, 7, True)
    assert shapes["with_mimic"] == ChainShape(7, 6, False)
