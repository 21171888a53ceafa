"""``screened_lm``: the best of many starts by their tips, then damped least squares, float32 and at last float64."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from kinopt_ros.solvers.hjcd.chain import SAMPLE_LOWER, SAMPLE_SPAN, ChainShape
from kinopt_ros.solvers.hjcd.device_chain import DeviceChain
from kinopt_ros.solvers.hjcd.kernels.lm import lm_kernels
from kinopt_ros.solvers.hjcd.kernels.screen import screen, settle, widen
from kinopt_ros.solvers.hjcd.portion import Outcome, Portion, capacity_for, lanes_of, outcome_of, padded

NAME = "screened_lm"
RANGE = 0.95
"""Part of the range that starts use: those at a limit are poor ones."""
FIRST_STEPS = 6
"""Steps before a first look at which targets are done."""
NEAR, EXACT = 1e-4, 1e-9
"""m and rad: where float32 steps end, and float64 ones."""
POLISH_STEPS = 8
TABLES = 64
"""Tables of starts that are kept; 64 kB each."""


@dataclass(frozen=True)
class ScreenSettings:
    """Sizes of the search."""

    starts: int
    """Configurations whose tips are known, per round."""
    lanes: int
    """Of these the ones that are refined."""
    steps: int
    """Most float32 steps."""


class _Buffers:
    """Arrays for up to so many targets, allocated once."""

    def __init__(self, variables: int, targets: int, lanes: int, device: Any) -> None:
        L = targets * lanes
        self.targets = wp.empty((targets, 12), dtype=wp.float32, device=device)
        self.targets_double = wp.empty((targets, 12), dtype=wp.float64, device=device)
        self.done = wp.zeros(targets, dtype=wp.int32, device=device)
        self.none_done = wp.zeros(targets, dtype=wp.int32, device=device)
        self.q = wp.empty((variables, L), dtype=wp.float32, device=device)
        self.q_double = wp.empty((variables, L), dtype=wp.float64, device=device)
        self.errors = wp.empty((2, L), dtype=wp.float32, device=device)
        self.errors_double = wp.empty((2, L), dtype=wp.float64, device=device)
        self.strikes = wp.empty(L, dtype=wp.int32, device=device)
        self.steps = wp.empty(L, dtype=wp.int32, device=device)


class ScreenedSearch:
    """Not thread-safe."""

    name = NAME

    def __init__(self, settings: ScreenSettings, device: Any) -> None:
        self._settings, self._device = settings, device
        self.lanes = settings.lanes
        self._buffers: dict[tuple[int, int], _Buffers] = {}
        self._tables: OrderedDict[tuple[DeviceChain, int, int], tuple[Any, Any]] = OrderedDict()

    def load(self, shape: ChainShape) -> None:
        """Compile what chains of a shape need, or load what was compiled before."""
        kernels = (
            lm_kernels(shape, wp.float32),
            lm_kernels(shape, wp.float64),
        )  # both, then one module holds them
        wp.load_module(kernels[0].descend.module, device=self._device)
        wp.load_module(screen.module, device=self._device)

    def forget(self) -> None:
        """Free the buffers."""
        self._buffers.clear()
        self._tables.clear()

    def run(self, chain: DeviceChain, portion: Portion) -> Outcome:
        """One round for every target of the portion."""
        shape = chain.chain.shape
        single, double = lm_kernels(shape, wp.float32), lm_kernels(shape, wp.float64)
        b, given = portion.own.shape[:2]
        lanes = self.lanes
        L = b * lanes
        arrays = self._arrays(shape.variables, b)
        arrays.targets.assign(padded(portion.targets, arrays.targets.shape, np.float32))
        arrays.targets_double.assign(padded(portion.targets, arrays.targets.shape, np.float64))
        starts, poses = self._table(chain, portion.round, portion.seed)
        arrays.q.assign(lanes_of(portion.own, lanes, arrays.q.shape))
        for array in (arrays.errors, arrays.strikes, arrays.steps, arrays.done):
            array.zero_()
        self._launch(screen, (b, lanes - given), [arrays.targets, starts, poses, given, lanes, arrays.q])
        steps = self._settings.steps
        for count in (min(FIRST_STEPS, steps), max(steps - FIRST_STEPS, 0)):
            self._launch(
                single.descend,
                L,
                [
                    chain.single, arrays.targets, arrays.done, lanes, count, NEAR, float("inf"),
                    arrays.q, arrays.errors, arrays.strikes, arrays.steps,
                ],
            )  # fmt: skip
            if not portion.every_lane:
                self._launch(settle, b, [arrays.errors, lanes, NEAR, arrays.done])
        self._launch(
            widen, L, [arrays.q, arrays.errors, chain.double.ranges, arrays.q_double, arrays.errors_double]
        )
        arrays.strikes.zero_()
        self._launch(
            double.descend,
            L,
            [
                chain.double, arrays.targets_double, arrays.none_done, lanes, POLISH_STEPS, EXACT, portion.gate,
                arrays.q_double, arrays.errors_double, arrays.strikes, arrays.steps,
            ],
        )  # fmt: skip
        return outcome_of(
            arrays.q_double.numpy()[:, :L], arrays.errors_double.numpy()[:, :L], arrays.steps.numpy()[:L], b
        )

    def _launch(self, kernel: Any, dim: Any, inputs: list[Any]) -> None:
        wp.launch(kernel, dim=dim, inputs=inputs, device=self._device)

    def _arrays(self, variables: int, targets: int) -> _Buffers:
        key = variables, capacity_for(targets)
        if key not in self._buffers:
            self._buffers[key] = _Buffers(*key, self.lanes, self._device)
        return self._buffers[key]

    def _table(self, chain: DeviceChain, round_number: int, seed: int) -> tuple[Any, Any]:
        """Random starts and the poses of their tips; the same for all targets."""
        key = chain, round_number, seed
        if key not in self._tables:
            generator = np.random.default_rng([seed, round_number])
            ranges = chain.chain.ranges
            u = 0.5 + RANGE * (generator.random((self._settings.starts, ranges.shape[1])).T - 0.5)
            q = ranges[SAMPLE_LOWER][:, None] + ranges[SAMPLE_SPAN][:, None] * u
            starts = wp.array(q, dtype=wp.float32, device=self._device)
            poses = wp.empty((7, self._settings.starts), dtype=wp.float32, device=self._device)
            tips = lm_kernels(chain.chain.shape, wp.float32).tips
            self._launch(tips, self._settings.starts, [chain.single, starts, poses])
            self._tables[key] = starts, poses
        self._tables.move_to_end(key)
        while len(self._tables) > TABLES:
            self._tables.popitem(last=False)
        return self._tables[key]
