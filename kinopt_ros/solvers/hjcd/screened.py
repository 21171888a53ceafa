"""``screened_lm``: the best of many starts by their tips, then damped least squares, float32 and at last float64."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from kinopt_ros.solvers.hjcd.chain import SAMPLE_LOWER, SAMPLE_SPAN, ChainShape
from kinopt_ros.solvers.hjcd.device_chain import DeviceChain
from kinopt_ros.solvers.hjcd.kernels.lm import lm_kernels
from kinopt_ros.solvers.hjcd.kernels.screen import begin, screen, settle, widen
from kinopt_ros.solvers.hjcd.kernels.transfer import choose, spread
from kinopt_ros.solvers.hjcd.portion import (
    Answers,
    Given,
    Outcome,
    Portion,
    capacity_for,
    finish,
    most_targets,
    outcome_of,
)
from kinopt_ros.solvers.hjcd.rounds import Launch, Rounds
from kinopt_ros.solvers.lru import LruCache

NAME = "screened_lm"
RANGE = 0.95
"""Share of the range that starts use: those at a limit are poor ones."""
FIRST_STEPS = 6
"""Number of steps before a first look at which targets are done."""
NEAR, EXACT = 1e-4, 1e-9
"""Errors at which float32 steps end, and float64 ones, m and rad."""
POLISH_STEPS = 8
PATIENCE = 2
"""Number of steps that may fail to lower the error by a tenth before a lane is given up."""
QUICK_ROUNDS = 3
"""Number of quick rounds.

Later ones are four times as patient: what is left by then is near a singularity, or cannot be reached."""
LANES_ON_CPU = 1024
"""Number of lanes that a CPU does in 10 ms."""
KEPT = 64
"""Number of tables of starts that are kept, 64 kB each."""


@dataclass(frozen=True)
class ScreenSettings:
    """Sizes of the search."""

    starts: int
    """Configurations per round whose tip poses are known."""
    lanes: int
    """Number of these configurations that are refined."""
    steps: int
    """Most float32 steps."""


class _Buffers:
    """Arrays for up to so many targets, allocated once."""

    def __init__(self, variables: int, targets: int, lanes: int, device: Any) -> None:
        L = targets * lanes
        self.given = Given(targets, variables, device)
        self.answers = Answers(targets, variables, device)
        self.targets = wp.empty((targets, 12), dtype=wp.float32, device=device)
        self.targets_double = wp.empty((targets, 12), dtype=wp.float64, device=device)
        self.done = wp.empty(targets, dtype=wp.int32, device=device)
        self.idle = wp.empty(targets, dtype=wp.int32, device=device)
        self.q = wp.empty((variables, L), dtype=wp.float32, device=device)
        self.q_double = wp.empty((variables, L), dtype=wp.float64, device=device)
        self.errors = wp.empty((2, L), dtype=wp.float32, device=device)
        self.errors_double = wp.empty((2, L), dtype=wp.float64, device=device)
        self.strikes = wp.empty(L, dtype=wp.int32, device=device)
        self.strikes_double = wp.empty(L, dtype=wp.int32, device=device)
        self.steps = wp.empty(L, dtype=wp.int32, device=device)


class ScreenedSearch:
    """Search by ``screened_lm``. Not thread-safe."""

    name = NAME

    def __init__(self, settings: ScreenSettings, device: Any, graphs: bool = False) -> None:
        """``graphs``: see ``Rounds``."""
        self._settings, self._device = settings, device
        self.lanes = settings.lanes
        self.most_targets = (
            max(1, LANES_ON_CPU // settings.lanes) if device.is_cpu else most_targets(settings.lanes)
        )
        self._buffers: dict[tuple[int, int], _Buffers] = {}
        self._tables: LruCache[tuple[DeviceChain, int, int], tuple[Any, Any]] = LruCache(KEPT)
        self._rounds = Rounds(device, graphs)

    def load(self, shape: ChainShape) -> None:
        """Compile what chains of a shape need, or load what was compiled before."""
        lm_kernels(shape, wp.float64)  # both precisions are compiled together
        wp.load_module(lm_kernels(shape, wp.float32).descend.module, device=self._device)
        for kernel in (screen, choose):
            wp.load_module(kernel.module, device=self._device)

    def forget(self) -> None:
        """Free the buffers."""
        self._rounds.clear()
        self._buffers.clear()
        self._tables.clear()

    def run(self, chain: DeviceChain, portion: Portion) -> Outcome:
        """Make one round for every target of the portion."""
        b, given = portion.own.shape[:2]
        arrays, size = self._arrays(chain.chain.shape.variables, b), self._rounds.size(b)
        arrays.given.put(portion, size)
        key = (
            chain, portion.round, portion.seed, portion.every_lane, portion.tolerance, portion.gate, size, given
        )  # fmt: skip
        self._rounds.launch(key, lambda: self._plan(chain, portion, arrays, size, given))
        if not portion.every_lane:
            return arrays.answers.outcome(b)
        L = b * self.lanes
        finish(self._device)
        return outcome_of(
            arrays.q_double.numpy()[:, :L], arrays.errors_double.numpy()[:, :L], arrays.steps.numpy()[:L], b
        )

    def _plan(
        self, chain: DeviceChain, portion: Portion, arrays: _Buffers, b: int, given: int
    ) -> list[Launch]:
        starts, poses = self._table(chain, portion.round, portion.seed)
        shape, steps, lanes = chain.chain.shape, self._settings.steps, self.lanes
        polish, patience = POLISH_STEPS, PATIENCE
        if portion.round >= QUICK_ROUNDS:
            steps, polish, patience = 4 * steps, 4 * polish, 4 * patience
        single, double = lm_kernels(shape, wp.float32), lm_kernels(shape, wp.float64)
        L = b * lanes
        settling = (settle, b, [arrays.errors, lanes, NEAR, arrays.done])
        emptied = [arrays.errors, arrays.strikes, arrays.strikes_double, arrays.steps]
        rows = arrays.given.rows(b, given)
        spreading = [
            rows, given, lanes, arrays.idle, arrays.targets, arrays.targets_double, arrays.q
        ]  # fmt: skip
        plan: list[Launch] = [
            (spread, b, spreading),
            (begin, L, [arrays.idle, lanes, arrays.done, *emptied]),
            (screen, (b, lanes - given), [arrays.targets, starts, poses, given, lanes, arrays.q]),
        ]
        for count in (min(FIRST_STEPS, steps), max(steps - FIRST_STEPS, 0)):
            descent = [
                chain.single, arrays.targets, arrays.done, lanes, count, patience, NEAR, float("inf"),
                arrays.q, arrays.errors, arrays.strikes, arrays.steps,
            ]  # fmt: skip
            plan.append((single.descend, L, descent))
            if not portion.every_lane:
                plan.append(settling)
        widening = [arrays.q, arrays.errors, chain.double.ranges, arrays.q_double, arrays.errors_double]
        plan.append((widen, L, widening))
        polishing = [
            chain.double, arrays.targets_double, arrays.idle, lanes, polish, patience, EXACT, portion.gate,
            arrays.q_double, arrays.errors_double, arrays.strikes_double, arrays.steps,
        ]  # fmt: skip
        plan.append((double.descend, L, polishing))
        if not portion.every_lane:
            choice = [
                rows, chain.double.ranges, arrays.q_double, arrays.errors_double, arrays.steps, lanes, arrays.steps, 0,
                *portion.tolerance, arrays.answers.rows(b),
            ]  # fmt: skip
            plan.append((choose, b, choice))
        return plan

    def _arrays(self, variables: int, targets: int) -> _Buffers:
        key = variables, capacity_for(targets)
        if key not in self._buffers:
            self._buffers[key] = _Buffers(*key, self.lanes, self._device)
        return self._buffers[key]

    def _table(self, chain: DeviceChain, round_number: int, seed: int) -> tuple[Any, Any]:
        """Return random starts and the poses of their tips; the same for all targets."""
        key = chain, round_number, seed
        table = self._tables.get(key)
        if table is None:
            generator = np.random.default_rng([seed, round_number])
            ranges = chain.chain.ranges
            u = 0.5 + RANGE * (generator.random((self._settings.starts, ranges.shape[1])).T - 0.5)
            q = ranges[SAMPLE_LOWER][:, None] + ranges[SAMPLE_SPAN][:, None] * u
            starts = wp.array(q, dtype=wp.float32, device=self._device)
            poses = wp.empty((7, self._settings.starts), dtype=wp.float32, device=self._device)
            tips = lm_kernels(chain.chain.shape, wp.float32).tips
            inputs = [chain.single, starts, poses]
            wp.launch(tips, dim=self._settings.starts, inputs=inputs, device=self._device)
            table = starts, poses
            self._tables.put(key, table)
        return table
