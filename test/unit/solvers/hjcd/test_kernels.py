"""Kernels on Warp's CPU device against the reference and float64 kinematics."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

wp = pytest.importorskip("warp")

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import matrix_to_quaternion, pose_error
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.solvers.hjcd.chain import kernel_chain
from kinopt_ros.solvers.hjcd.device_chain import DeviceChain, device_chain
from kinopt_ros.solvers.hjcd.kernels.lm import lm_kernels
from kinopt_ros.solvers.hjcd.kernels.pj_ik import PROPOSALS, pj_ik_kernels
from kinopt_ros.solvers.hjcd.kernels.po_ccd import po_ccd_kernels
from kinopt_ros.solvers.hjcd.kernels.screen import keep_best, screen, settle
from kinopt_ros.solvers.hjcd.reference.arm import Arm
from kinopt_ros.solvers.hjcd.reference.noise import normal, uniform
from kinopt_ros.solvers.hjcd.reference.pj_ik import RefineSettings, pj_ik
from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings, po_ccd
from kinopt_ros.solvers.hjcd.reference.residual import norms, residual, score
from kinopt_ros.solvers.hjcd.runtime import start

from .arms import ROBOTS, arm_named, random_q

pytestmark = pytest.mark.slow  # kernels take seconds to compile
SEED = 5


@dataclass(frozen=True, eq=False)
class Bench:
    """An arm in both worlds."""

    arm: Arm
    device: DeviceChain
    order: np.ndarray
    """Places of the kernels' variables among the arm's."""

    @property
    def shape(self) -> Any:
        return self.device.chain.shape

    def to(self, q: Float64, scalar: Any) -> Any:
        """Configurations (L, n) on the device."""
        return wp.array(np.ascontiguousarray(q[:, self.order].T), dtype=scalar, device="cpu")

    def back(self, q: Any) -> Float64:
        values = np.empty((q.shape[1], q.shape[0]))
        values[:, self.order] = q.numpy().T
        return values

    def targets(self, T: Float64, scalar: Any) -> Any:
        return wp.array(self.device.chain.packed_targets(T), dtype=scalar, device="cpu")


def bench(name: str) -> Bench:
    robot = ROBOTS[name]()
    chain = build_chain(robot, robot.root_link, robot.link_names[-1])
    packed = kernel_chain(robot, chain)
    for scalar in (wp.float32, wp.float64):  # both, before either is compiled: they are compiled together
        lm_kernels(packed.shape, scalar)
    order = np.array([chain.variables.tolist().index(v) for v in packed.variables])
    # Started as the plugin does: what is compiled for one of them serves the other.
    return Bench(arm_named(name), device_chain(packed, start("cpu")), order)


def launch(kernel: Any, dim: Any, *inputs: Any) -> None:
    wp.launch(kernel, dim=dim, inputs=list(inputs), device="cpu")


def ints(count: int, value: int = 0) -> Any:
    return wp.full(count, value, dtype=wp.int32, device="cpu")


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize(("scalar", "accuracy"), [("float32", 2e-6), ("float64", 1e-13)])
def test_poses_of_tips(name: str, scalar: str, accuracy: float) -> None:
    b, S = bench(name), getattr(wp, scalar)
    q = random_q(b.arm, 50, 0)
    poses = wp.zeros((7, 50), dtype=S, device="cpu")
    chain = b.device.single if S is wp.float32 else b.device.double
    launch(lm_kernels(b.shape, S).tips, 50, chain, b.to(q, S), poses)
    # What is off is the last fixed rotation, which the targets take over.
    T = b.arm.poses(q)
    T[:, :3, :3] = T[:, :3, :3] @ b.device.chain.R_last.T
    found = poses.numpy().T
    np.testing.assert_allclose(found[:, :3], T[:, :3, 3], atol=accuracy)
    wxyz = matrix_to_quaternion(T[:, :3, :3])
    cosine = np.abs(np.sum(found[:, [6, 3, 4, 5]] * wxyz, axis=1))
    np.testing.assert_allclose(cosine, 1.0, atol=accuracy)


@pytest.mark.parametrize("name", ROBOTS)
def test_damped_least_squares_end_on_the_target_and_say_how_near(name: str) -> None:
    b, S, count = bench(name), wp.float64, 60
    goals = random_q(b.arm, count, 1)
    starts = b.arm.clamped(goals + 0.1)
    q, errors = b.to(starts, S), wp.zeros((2, count), dtype=S, device="cpu")
    steps, T = ints(count), b.arm.poses(goals)
    launch(
        lm_kernels(b.shape, S).descend, count,
        b.device.double, b.targets(T, S), ints(count), 1, 30, 2, 1e-9, np.inf, q, errors, ints(count), steps,
    )  # fmt: skip
    found = b.back(q)
    assert ((b.arm.lower <= found) & (found <= b.arm.upper)).all()
    np.testing.assert_allclose(errors.numpy(), pose_error(T, b.arm.poses(found)), atol=1e-12)
    assert (errors.numpy().max(axis=0) < 1e-9).mean() > 0.9
    assert steps.numpy().max() < 30


def test_lanes_that_are_done_or_hopeless_are_left_alone() -> None:
    b, S = bench("seven_revolute"), wp.float64
    starts = random_q(b.arm, 4, 2)
    T = b.arm.poses(random_q(b.arm, 2, 3))
    errors = wp.array([[0.0, 0.0, 1.0, 0.0], [0.0] * 4], dtype=S, device="cpu")
    strikes = wp.array([0, 0, 0, 2], dtype=wp.int32, device="cpu")
    done = wp.array([0, 0], dtype=wp.int32, device="cpu")
    q, steps = b.to(starts, S), ints(4)
    launch(
        lm_kernels(b.shape, S).descend, 4,
        b.device.double, b.targets(T, S), done, 2, 3, 2, 1e-9, 0.5, q, errors, strikes, steps,
    )  # fmt: skip
    assert (steps.numpy()[:2] > 0).all()
    assert steps.numpy()[2:].tolist() == [0, 0]
    np.testing.assert_array_equal(b.back(q)[2:], starts[2:])


def test_every_lane_takes_the_nearest_of_its_share() -> None:
    b, S, lanes, first = bench("six_revolute"), wp.float32, 5, 1
    starts, goals = random_q(b.arm, 23, 4), random_q(b.arm, 3, 5)
    poses = wp.zeros((7, 23), dtype=S, device="cpu")
    launch(lm_kernels(b.shape, S).tips, 23, b.device.single, b.to(starts, S), poses)
    T = b.arm.poses(goals)
    q = wp.zeros((6, 3 * lanes), dtype=S, device="cpu")
    launch(screen, (3, lanes - first), b.targets(T, S), b.to(starts, S), poses, first, lanes, q)
    found = b.back(q).reshape(3, lanes, 6)
    assert (found[:, :first] == 0.0).all()
    for t in range(3):
        distance, angle = pose_error(T[t], b.arm.poses(starts))
        away = distance**2 + (2.0 * 0.4 * np.sin(0.5 * angle)) ** 2
        for i in range(lanes - first):
            share = np.arange(i, 23, lanes - first)
            np.testing.assert_allclose(found[t, first + i], starts[share[np.argmin(away[share])]], atol=1e-6)


def test_the_best_are_kept_in_order() -> None:
    scores = np.random.default_rng(6).integers(0, 6, 3 * 20).astype(np.float32)  # with ties
    q = np.arange(60.0)[None].repeat(2, axis=0)
    kept = wp.zeros((2, 3 * 4), dtype=wp.float32, device="cpu")
    array = wp.array(scores, dtype=wp.float32, device="cpu")
    launch(keep_best, (3, 20), array, 20, 4, wp.array(q, dtype=wp.float32, device="cpu"), kept)
    for t in range(3):
        wanted = 20 * t + np.argsort(scores[20 * t : 20 * t + 20], kind="stable")[:4]
        np.testing.assert_array_equal(kept.numpy()[0, 4 * t : 4 * t + 4], wanted)


def test_a_target_is_done_when_one_lane_is_near_in_both() -> None:
    errors = np.array([[1.0, 0.1, 1.0, 0.1], [0.1, 1.0, 0.1, 0.1]])
    done = ints(2)
    launch(settle, 2, wp.array(errors, dtype=wp.float32, device="cpu"), 2, 0.5, done)
    assert done.numpy().tolist() == [0, 1]


def test_starts_are_those_of_the_reference() -> None:
    b, S = bench("with_mimic"), wp.float64
    own, q = b.to(random_q(b.arm, 6, 7), S), wp.zeros((6, 6), dtype=S, device="cpu")
    launch(po_ccd_kernels(b.shape, S).draw, 6, b.device.double, wp.uint32(SEED), 3, 1, own, q)
    for lane in range(6):
        if lane % 3 == 0:
            np.testing.assert_array_equal(q.numpy()[:, lane], own.numpy()[:, lane])
            continue
        ranges = b.device.chain.ranges
        wanted = ranges[2] + ranges[3] * uniform(SEED, lane % 3, 0, 6)
        np.testing.assert_allclose(q.numpy()[:, lane], wanted, atol=1e-12)


def coarse(b: Bench, scalar: Any, T: Float64, starts: Float64) -> tuple[Float64, Float64, Float64]:
    """Configurations, scores and iterations of PO-CCD, one start per target."""
    count, s = len(starts), CoarseSettings()
    q, scores, spent = b.to(starts, scalar), wp.zeros(count, dtype=wp.float32, device="cpu"), ints(count)
    launch(
        po_ccd_kernels(b.shape, scalar).po_ccd, count,
        b.device.single if scalar is wp.float32 else b.device.double, b.targets(T, scalar), ints(count), 1,
        s.iterations,
        s.position, s.orientation, s.gain, s.noise, s.turn, wp.uint32(SEED), q, scores, spent,
    )  # fmt: skip
    return b.back(q), scores.numpy(), spent.numpy()


def problems(b: Bench, count: int) -> tuple[Float64, Float64]:
    """Targets, some out of reach, and starts."""
    T = b.arm.poses(random_q(b.arm, count, 8))
    T[-count // 4 :, :3, 3] *= 3.0
    return T, random_q(b.arm, count, 9)


@pytest.mark.parametrize("name", ["continuous_and_prismatic", "with_mimic"])
def test_po_ccd_is_the_reference(name: str) -> None:
    """The noise too: kernels number variables along the chain, and so do these robots."""
    b = bench(name)
    T, starts = problems(b, 16)
    q, scores, spent = coarse(b, wp.float64, T, starts)
    for i in range(16):
        wanted, iterations = po_ccd(b.arm, T[i], starts[i], CoarseSettings(), SEED, 0)
        assert spent[i] == iterations
        np.testing.assert_allclose(q[i], wanted, atol=1e-9)
        np.testing.assert_allclose(scores[i], score(residual(T[i], b.arm.poses(wanted))), rtol=1e-5)


def test_po_ccd_in_float32_follows_until_a_choice_is_close() -> None:
    """Rounding decides few of the choices; those lanes go elsewhere, not wrong."""
    b = bench("continuous_and_prismatic")
    T, starts = problems(b, 40)
    single, single_scores, _ = coarse(b, wp.float32, T, starts)
    double, double_scores, _ = coarse(b, wp.float64, T, starts)
    assert (np.abs(single - double).max(axis=1) < 1e-4).mean() > 0.6
    assert np.median(single_scores) == pytest.approx(np.median(double_scores), rel=0.2)
    slack = 1e-6
    assert ((b.arm.lower - slack <= single) & (single <= b.arm.upper + slack)).all()


def refined(b: Bench, T: Float64, starts: Float64, s: RefineSettings, period: int) -> tuple[Float64, Float64]:
    """The best configurations and iterations of PJ-IK, one candidate per target, so many iterations per launch."""
    S, count = wp.float64, len(starts)
    q = b.to(starts, S)
    best = wp.zeros_like(q)
    damping = wp.full(count, s.damping, dtype=S, device="cpu")
    scores = wp.full(count, np.inf, dtype=S, device="cpu")
    errors, spent = wp.zeros((2, count), dtype=S, device="cpu"), ints(count)
    for begin in range(0, s.iterations + 1, period):
        launch(
            pj_ik_kernels(b.shape, S).pj_ik, count,
            b.device.double, b.targets(T, S), ints(count), 1, begin, begin + period, s.iterations, s.position,
            s.orientation, s.radius, s.noise, wp.uint32(SEED), PROPOSALS, q, damping, best, scores, errors, spent,
        )  # fmt: skip
    found = b.back(best)
    for i in range(count):
        np.testing.assert_allclose(
            errors.numpy()[:, i], norms(residual(T[i], b.arm.poses(found[i]))), atol=1e-12
        )
    return found, spent.numpy()


@pytest.mark.parametrize("name", ["continuous_and_prismatic", "with_mimic"])
@pytest.mark.parametrize("iterations", [1, 8])
def test_pj_ik_is_the_reference(name: str, iterations: int) -> None:
    """Few iterations: later ones multiply rounding, above all where nothing helps and noise is added."""
    b, s = bench(name), RefineSettings(iterations=iterations)
    T, starts = problems(b, 16)
    q, spent = refined(b, T, starts, s, 100)
    agree = 0
    for i in range(16):
        wanted, made = pj_ik(b.arm, T[i], starts[i], s, SEED, 0)
        assert spent[i] == made
        agree += np.abs(q[i] - wanted).max() < 1e-6
    assert agree >= 15


def test_pj_ik_in_pieces_is_pj_ik() -> None:
    b, s = bench("continuous_and_prismatic"), RefineSettings()
    T, starts = problems(b, 30)
    whole, spent = refined(b, T, starts, s, 100)
    pieces, spent_in_pieces = refined(b, T, starts, s, 11)
    np.testing.assert_array_equal(whole, pieces)
    np.testing.assert_array_equal(spent, spent_in_pieces)


def test_the_first_copies_are_the_kept_ones_and_others_have_the_noise_of_the_reference() -> None:
    b, S, keep, copies = bench("continuous_and_prismatic"), wp.float64, 2, 3
    kept = random_q(b.arm, 2 * keep, 10)
    q = wp.zeros((7, 2 * keep * copies), dtype=S, device="cpu")
    launch(
        pj_ik_kernels(b.shape, S).replicate, 2 * keep * copies,
        b.device.double, b.to(kept, wp.float32), keep, copies, 0.15, wp.uint32(SEED), q,
    )  # fmt: skip
    found = b.back(q).reshape(2, copies, keep, 7)
    for t in range(2):
        for copy in range(copies):
            for k in range(keep):
                noise = 0.15 * b.arm.span * normal(SEED, copy * keep + k, 0, 7) if copy else 0.0
                wanted = b.arm.clamped(kept[t * keep + k] + noise)
                np.testing.assert_allclose(found[t, copy, k], wanted, atol=1e-6)
