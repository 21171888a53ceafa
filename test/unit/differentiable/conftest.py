"""Robots and precision for tests of differentiable kinematics."""

from functools import lru_cache

import pytest
from support.kept_compilations import kept_compilations

from kinopt_ros.robot.urdf import robot_from_urdf

ORIGIN = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/>'


_once = lru_cache(robot_from_urdf)
"""Loads a description once for all tests, so that what one test compiled serves the next."""


@pytest.fixture(autouse=True, scope="module")
def compiled_once(kept_folder):
    """Most of the time here is XLA's, which it needs but once."""
    pytest.importorskip("jax", reason="differentiable kinematics need jax")
    with kept_compilations(kept_folder / "xla"):
        yield


@pytest.fixture(autouse=True)
def quickly_compiled():
    """Less optimization, the same numbers."""
    jax = pytest.importorskip("jax", reason="differentiable kinematics need jax")
    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture
def double():
    """Double precision for one test; the library never switches it on."""
    import jax

    with jax.enable_x64(True):
        yield


@pytest.fixture
def robot(urdf):
    """Joints of all types, with a mimic joint before and behind its driver."""
    return _once(
        urdf(
            f'm1 prismatic l0 l1 {ORIGIN}<axis xyz="1 2 0"/><mimic joint="d" multiplier="0.5" offset="0.1"/>',
            f"nav floating l1 l2 {ORIGIN}",
            f'd revolute l2 l3 {ORIGIN}<axis xyz="0 0 -1"/>',
            f'slide planar l3 l4 {ORIGIN}<axis xyz="1 -1 2"/>',
            f'p prismatic l4 l5 {ORIGIN}<axis xyz="0 1 0"/>',
            f"f fixed l5 l6 {ORIGIN}",
            f'm2 revolute l6 l7 {ORIGIN}<axis xyz="3 0 4"/><mimic joint="d" multiplier="-2"/>',
            f"c continuous l1 side {ORIGIN}",
        )
    )
