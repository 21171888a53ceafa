"""Rounds that are replayed end as those whose kernels are launched one by one: on Warp's CPU device, and on a GPU."""

from typing import Any

import numpy as np
import pytest

wp = pytest.importorskip("warp")

from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.solvers.hjcd.chain import kernel_chain
from kinopt_ros.solvers.hjcd.device_chain import device_chain
from kinopt_ros.solvers.hjcd.paper import PaperSearch, PaperSettings
from kinopt_ros.solvers.hjcd.portion import Portion
from kinopt_ros.solvers.hjcd.reference.pj_ik import RefineSettings
from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings
from kinopt_ros.solvers.hjcd.screened import ScreenedSearch, ScreenSettings

from .arms import ROBOTS

pytestmark = pytest.mark.slow  # kernels take seconds to compile


def searches(device: Any, algorithm: str) -> list[Any]:
    """One that launches kernels one by one, and one that replays."""
    if algorithm == "screened_lm":
        return [ScreenedSearch(ScreenSettings(128, 8, 16), device, graphs) for graphs in (False, True)]
    settings = PaperSettings(20, CoarseSettings(), RefineSettings())
    return [PaperSearch(settings, device, graphs) for graphs in (False, True)]


@pytest.mark.parametrize("algorithm", ["screened_lm", "hjcd_ik"])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_replay_equals_eager(device: str, algorithm: str) -> None:
    if device != "cpu" and wp.get_cuda_device_count() == 0:
        pytest.skip("no CUDA device here: replay on GPUs is untested")
    robot = ROBOTS["six_revolute"]()
    packed = kernel_chain(robot, build_chain(robot, robot.root_link, robot.link_names[-1]))
    there = wp.get_device(device)
    chain = device_chain(packed, there)
    eager, replayed = searches(there, algorithm)
    eager.load(packed.shape)
    T = forward_kinematics(robot, random_configurations(robot, 20, 1), links=(robot.link_names[-1],))[:, 0]
    targets = packed.packed_targets(T)
    own = random_configurations(robot, 20, 2)[:, None, packed.variables]
    solved = 0
    # 3 after 16 and 1: fewer targets in the same graph; lanes of before must not shine through.
    for count, every_lane in ((16, False), (3, False), (1, False), (3, False), (20, True), (2, True)):
        rows = slice(20 - count, 20)
        portion = Portion(targets[rows], own[rows, 0], own[rows], 0, 7, every_lane, (1e-6, 1e-6), 3e-3)
        expected, found = eager.run(chain, portion), replayed.run(chain, portion)
        np.testing.assert_array_equal(found.q, expected.q)
        np.testing.assert_array_equal(found.errors, expected.errors)
        np.testing.assert_array_equal(found.steps, expected.steps)
        solved += int((found.errors.max(axis=2).min(axis=1) < 1e-6).sum())
    assert solved > 30
    assert len(replayed._rounds) == 4  # 16 or 3; 1; 20; 2, with every lane
