"""The packed, refolded chain says the same as the reference forward kinematics."""

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.se3 import quaternion_to_matrix
from kinopt_ros.robot.chain import KinematicChain
from kinopt_ros.solvers.cpu.chain import PackedChain, pack_chain
from kinopt_ros.solvers.cpu.kernels.plain import tip_poses
from kinopt_ros.solvers.cpu.seeds import scrambled_halton


def random_rotation(generator: np.random.Generator) -> np.ndarray:
    """Uniform over all rotations."""
    q, r = np.linalg.qr(generator.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q if np.linalg.det(q) > 0 else -q


def random_chain(generator: np.random.Generator, motions: int, variables: int) -> KinematicChain:
    """Rotations and translations in any direction; some variables drive several motions, as with mimic joints."""
    variables = min(motions, variables)
    T = np.repeat(np.eye(4)[None], motions + 1, axis=0)
    for i in range(motions + 1):
        T[i, :3, :3] = random_rotation(generator)
        T[i, :3, 3] = generator.uniform(-0.4, 0.4, 3)
    axis = generator.normal(size=(motions, 3))
    column = np.concatenate([np.arange(variables), generator.integers(0, variables, motions - variables)])
    return KinematicChain(
        base_link="base",
        tip_link="tip",
        T_fixed=T,
        motion=(generator.random(motions) < 0.3).astype(np.int64),
        axis=axis / np.linalg.norm(axis, axis=1, keepdims=True),
        column=generator.permutation(column).astype(np.int64),
        multiplier=np.where(generator.random(motions) < 0.5, 1.0, generator.uniform(-2.0, 2.0, motions)),
        offset=np.where(generator.random(motions) < 0.5, 0.0, generator.uniform(-1.0, 1.0, motions)),
        variables=np.arange(variables),
    )


def limits_of(chain: KinematicChain) -> tuple[np.ndarray, np.ndarray]:
    """+-2.5 for every variable."""
    n = len(chain.variables)
    return np.full(n, -2.5), np.full(n, 2.5)


def packed_pose(packed: PackedChain, q: np.ndarray) -> np.ndarray:
    """Tip pose by the kernel, put back into the chain's base and tip frames."""
    poses = np.empty((7, 1))
    tip_poses(packed.numbers, packed.shape, q[None].copy(), poses)
    base = packed.numbers[:21]
    R_first, R_last = base[3:12].reshape(3, 3).T, base[12:21].reshape(3, 3).T
    T = np.eye(4)
    T[:3, :3] = R_first @ quaternion_to_matrix(poses[3:, 0]) @ R_last
    T[:3, 3] = R_first @ (poses[:3, 0] - base[:3])
    return T


@pytest.mark.parametrize("seed", range(30))
def test_kernel_agrees_with_the_reference(seed: int) -> None:
    generator = np.random.default_rng(seed)
    chain = random_chain(generator, motions=1 + seed % 12, variables=1 + seed % 7)
    packed = pack_chain(chain, *limits_of(chain), 0, table_size=4)
    for _ in range(5):
        q = generator.uniform(-3.0, 3.0, len(chain.variables))
        np.testing.assert_allclose(packed_pose(packed, q), chain_pose(chain, q), atol=2e-14)


AXES = [(0, 0, 1), (0, 0, -1), (1, 0, 0), (0, -1, 0), (1e-6, 0, -1), (3e-7, -5e-7, -1), (-1e-9, 1e-9, -1)]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-7, 1e-3])
def test_parallel_and_nearly_parallel_axes(axis: tuple[float, float, float], tilt: float) -> None:
    unit = np.array(axis) / np.linalg.norm(axis)
    T = np.repeat(np.eye(4)[None], 4, axis=0)
    T[:, :3, 3] = 0.3, -0.2, 0.5
    c, s = np.cos(tilt), np.sin(tilt)
    T[1, :3, :3] = [[1, 0, 0], [0, c, -s], [0, s, c]]
    chain = KinematicChain(
        "a", "b", T, np.zeros(3, int), np.tile(unit, (3, 1)), np.arange(3),
        np.ones(3), np.zeros(3), np.arange(3),
    )  # fmt: skip
    packed = pack_chain(chain, *limits_of(chain), 0, table_size=4)
    q = np.array([0.3, -1.2, 2.2])
    np.testing.assert_allclose(packed_pose(packed, q), chain_pose(chain, q), atol=2e-14)


def test_large_angles_stay_accurate() -> None:
    chain = random_chain(np.random.default_rng(1), motions=3, variables=3)
    packed = pack_chain(chain, *limits_of(chain), 0, table_size=4)
    q = np.array([1000.0, -333.3, 52.0])
    np.testing.assert_allclose(packed_pose(packed, q), chain_pose(chain, q), atol=1e-12)


def test_table_covers_the_unit_cube_evenly() -> None:
    points = scrambled_halton(256, 64)
    assert points.shape == (256, 64)
    assert ((points >= 0.0) & (points < 1.0)).all()
    np.testing.assert_allclose(points.mean(axis=0), 0.5, atol=0.08)
    correlation = np.corrcoef(points.T) - np.eye(64)
    assert abs(correlation).max() < 0.4
    assert scrambled_halton(256, 64) is points  # drawn once, and so
    assert not points.flags.writeable
