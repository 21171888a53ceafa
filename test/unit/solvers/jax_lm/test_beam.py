"""Tests of what goes on from a beam, and when it ends."""

from functools import partial

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.model import RobotModel

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("compiled_once")


@pytest.mark.parametrize("keep", [1, 8, 9])
def test_the_lanes_of_least_cost_go_on(keep: int) -> None:
    from kinopt_ros.solvers.jax_lm.beam import FLOAT32_DONE, _kept

    rng = np.random.default_rng(keep)
    starts, targets = 16, 6
    cost = rng.random((starts, targets)).astype(np.float32)
    cost[3:6, 1] = cost[9, 1] = 0.01  # equal ones: the first goes on
    cost[:, 2] = 0.5 * FLOAT32_DONE * cost[:, 2]  # as good as equal
    cost[5:, 3] = np.nan
    cost[2:, 4] = np.inf
    q = rng.random((2, starts, targets))
    judged = np.where(np.isfinite(cost), np.maximum(cost, FLOAT32_DONE), 3e38)
    expected = np.argsort(judged, axis=0, kind="stable")[:keep]
    with jax.enable_x64(True):
        kept = _kept(tuple(jax.numpy.asarray(x.reshape(-1)) for x in q), jax.numpy.asarray(cost), keep)
    for x, found in zip(q, kept, strict=True):
        np.testing.assert_array_equal(
            np.asarray(found).reshape(keep, targets), np.take_along_axis(x, expected, axis=0)
        )


@pytest.mark.slow
def test_a_call_ends_when_every_target_has_a_lane_that_is_where_it_should_be(planar_arm: RobotModel) -> None:
    from kinopt_ros.solvers.jax_lm.beam import beam, constants
    from kinopt_ros.solvers.jax_lm.chain import lane_chain
    from kinopt_ros.solvers.jax_lm.seeds import start_table
    from kinopt_ros.solvers.jax_lm.shapes import BeamShape, RowShape

    chain = lane_chain(planar_arm, build_chain(planar_arm, "l0", "l4"))
    rows = RowShape(free_position=(False, False, True), free_orientation=(True, True, True))
    size = BeamShape(num_seeds=8, keep=2, init_steps=1, total_steps=4, polish_steps=20)
    q = random_configurations(planar_arm, 4, 2)
    poses = forward_kinematics(planar_arm, q, links=("l4",))[:, 0, :3].reshape(4, 12)
    own = np.concatenate([q[:1], np.zeros((3, 3))])  # the first target is where it begins
    program = jax.jit(partial(beam, chain.shape, rows, size))

    def run(which: slice) -> Float64:
        count = len(poses[which])
        with jax.enable_x64(True):
            found = program(
                constants(chain, np.array([[1e-4] * 6, [1e-9] * 6, [0.0] * 6])),
                chain.ranges32,
                np.concatenate([poses[which], 0.0 * q[which], own[which]], axis=1),
                np.repeat(start_table(chain, 0, 8, 0), count, axis=1),
            )
        return np.asarray(found)

    together = run(slice(None))
    alone = np.concatenate([run(slice(k, k + 1)) for k in range(4)], axis=1)
    np.testing.assert_allclose(together[:-1], alone[:-1], rtol=1e-6, atol=1e-9)
    steps = alone[-1]
    assert steps[0] <= 2 < steps.max() < size.init_steps + size.more_steps
    assert (together[-1] == steps.max()).all()
