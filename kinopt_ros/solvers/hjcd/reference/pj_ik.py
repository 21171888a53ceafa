"""Algorithm 4: PJ-IK, damped least squares with three ways out where that fails (Sec. IV-B)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.solvers.hjcd.reference.arm import Arm
from kinopt_ros.solvers.hjcd.reference.noise import normal
from kinopt_ros.solvers.hjcd.reference.residual import norms, residual, score

ALPHAS = (1.0, 0.5, 0.25, 0.125)
"""Range of the line search, eq. (13)."""
ROW_FLOOR, SCALE_FLOOR, PSEUDO = 1e-3, 1e-6, 1e-6
"""Least norm of a row of J, least entry of D, damping of the Gauss-Newton step: J may lack rank."""
LEAST_DAMPING, LARGEST_DAMPING = 1e-12, 1e6
NOTHING, DAMPED, DOGLEG, SINGLE = range(4)
"""Kinds of steps."""


@dataclass(frozen=True)
class RefineSettings:
    """Parameters of Algorithm 4; the paper gives no numbers, these are what the authors are known to use, R aside."""

    iterations: int = 40
    position: float = 1e-8
    """Position error at which it ends, epsilon, m."""
    orientation: float = 1e-8
    """Orientation error at which it ends, nu, rad."""
    radius: float = 0.3
    """R: largest change of each variable per step, rad or m."""
    damping: float = 5e-3
    """lambda of the first step."""
    noise: float = 0.015
    """Standard deviation of the perturbation, as a part of each variable's range."""


@dataclass(frozen=True, eq=False)
class Linear:
    """The problem around a configuration, rows weighted."""

    A: Annotated[Float64, "6 n"]
    """W J."""
    e: Annotated[Float64, "6"]
    """W r."""
    D: Annotated[Float64, "n"]
    """Diagonal of J' J, with a floor."""
    W: Annotated[Float64, "6"]

    @property
    def gradient(self) -> Annotated[Float64, "n"]:
        """Direction of steepest descent of |W r|^2 / 2, as r falls along +J."""
        return np.asarray(self.A.T @ self.e)

    def cost(self, r: Annotated[Float64, "6"]) -> float:
        """Compute |W r|^2 / 2 with these weights."""
        return 0.5 * float(np.sum((self.W * r) ** 2))

    def expected_gain(self, step: Annotated[Float64, "n"]) -> float:
        """Return how much less the cost would be if the problem were linear."""
        moved = self.A @ step
        return float(self.e @ moved - 0.5 * moved @ moved)


def linearized(arm: Arm, q: Annotated[Float64, "n"], r: Annotated[Float64, "6"]) -> Linear:
    """Linearize the problem: W makes the rows of J equally long; D scales the damping."""
    J = arm.jacobian(q)
    W = 1.0 / np.maximum(np.linalg.norm(J, axis=1), ROW_FLOOR)
    return Linear(W[:, None] * J, W * r, np.sum(J * J, axis=0) + SCALE_FLOOR, W)


def damped_step(linear: Linear, damping: float) -> Annotated[Float64, "n"]:
    """Eq. (12): (J' W' W J + lambda D) step = J' W' W r. The sign of eq. (12) fits J of the residual; (4), (7) and this
    use J of the pose."""
    return np.asarray(np.linalg.solve(linear.A.T @ linear.A + damping * np.diag(linear.D), linear.gradient))


def dogleg_step(linear: Linear, radius: float) -> Annotated[Float64, "n"]:
    """Eqs. (14), (15): tau times the steepest-descent step plus (1 - tau) times the Gauss-Newton step, with the least
    tau in [0, 1] that keeps the step's length within the radius."""
    g = linear.gradient
    curvature = float(np.sum((linear.A @ g) ** 2))
    descent = g * (float(g @ g) / curvature) if curvature > 0.0 else g
    damped = linear.A @ linear.A.T + PSEUDO * np.eye(6)
    newton = linear.A.T @ np.linalg.solve(damped, linear.e)
    if np.linalg.norm(newton) <= radius:
        return np.asarray(newton)
    length = float(np.linalg.norm(descent))
    if length >= radius:
        return descent * (radius / length)
    # |newton + tau (descent - newton)| = radius; the smaller root is the one nearer to Gauss-Newton.
    way = descent - newton
    a, b, c = float(way @ way), float(newton @ way), float(newton @ newton) - radius**2
    tau = (-b - np.sqrt(max(b * b - a * c, 0.0))) / a
    return np.asarray(newton + min(max(tau, 0.0), 1.0) * way)


def coordinate_step(linear: Linear, radius: float) -> Annotated[Float64, "n"]:
    """Eq. (16): the variable with the largest gradient alone, to its minimum, at most R far."""
    g = linear.gradient
    i = int(np.argmax(np.abs(g)))
    step = np.zeros(len(g))
    step[i] = np.clip(g[i] / max(float(np.sum(linear.A[:, i] ** 2)), SCALE_FLOOR), -radius, radius)
    return step


def pj_ik(
    arm: Arm,
    T_target: Annotated[Float64, "4 4"],
    q: Annotated[Float64, "n"],
    settings: RefineSettings,
    seed: int = 0,
    lane: int = 0,
) -> tuple[Annotated[Float64, "n"], int]:
    """Refine one candidate. Steps are made only if they lower |W r|, W of where they begin; if nothing does, the
    candidate is perturbed. The best configuration seen is kept.

    Args:
        arm: the chain and its limits.
        T_target: pose of its tip in its base.
        q: the candidate (rad, m); brought inside the limits.
        settings: see there.
        seed: of the perturbations.
        lane: number of this candidate; every one has its own perturbations.

    Returns:
        The best configuration by ``residual.score``, and how many iterations were made.
    """
    q = arm.clamped(q)
    best, best_score = q, np.inf
    damping = settings.damping
    for k in range(settings.iterations + 1):
        r = residual(T_target, arm.poses(q))
        if (now := float(score(r))) < best_score:
            best, best_score = q, now
        distance, angle = norms(r)
        if k == settings.iterations or (distance < settings.position and angle < settings.orientation):
            return best, k
        linear = linearized(arm, q, r)
        moved, kind = _first_better(arm, T_target, q, linear, linear.cost(r), damping, settings.radius)
        if kind == NOTHING:
            moved = arm.clamped(q + settings.noise * arm.span * normal(seed, lane, k, len(q)))
        gain = linear.cost(r) - linear.cost(residual(T_target, arm.poses(moved)))
        damping = _next_damping(damping, kind, gain, linear.expected_gain(moved - q))
        q = moved
    return best, settings.iterations


def _first_better(
    arm: Arm, T_target: Float64, q: Float64, linear: Linear, cost: float, damping: float, radius: float
) -> tuple[Annotated[Float64, "n"], int]:
    """Return the first proposal that lowers the cost, and its kind; q and NOTHING if there is none."""
    for kind, step in _proposals(arm, q, linear, damping, radius):
        moved = arm.clamped(q + step)
        if linear.cost(residual(T_target, arm.poses(moved))) < cost:
            return moved, kind
    return q, NOTHING


def _proposals(
    arm: Arm, q: Float64, linear: Linear, damping: float, radius: float
) -> Iterator[tuple[int, Annotated[Float64, "n"]]]:
    """Steps to try, in order, with the number of their kind: damped ones, dogleg, single variable either way."""
    damped = damped_step(linear, damping)
    # A variable at its limit cannot go on; the others need not wait for it.
    blocked = ((q <= arm.lower) & (damped < 0.0)) | ((q >= arm.upper) & (damped > 0.0))
    damped = np.clip(np.where(blocked, 0.0, damped), -radius, radius)
    for alpha in ALPHAS:
        yield DAMPED, alpha * damped
    yield DOGLEG, dogleg_step(linear, radius)
    single = coordinate_step(linear, radius)
    for alpha in (*ALPHAS, *(-alpha for alpha in ALPHAS)):
        yield SINGLE, alpha * single


def _next_damping(damping: float, kind: int, gain: float, expected: float) -> float:
    """Lower the damping where the linear problem told the truth; raise it where it did not, or where another way was
    needed."""
    if kind != DAMPED or gain < 0.25 * expected:
        damping *= 3.0
    elif gain > 0.9 * expected:
        damping *= 0.3
    elif gain > 0.5 * expected:
        damping *= 0.5
    return min(max(damping, LEAST_DAMPING), LARGEST_DAMPING)
