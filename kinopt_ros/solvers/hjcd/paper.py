"""``hjcd_ik``: Algorithm 2 of the paper; see ``reference.hjcd_ik``. PO-CCD in float32, PJ-IK in float64."""

from dataclasses import dataclass, replace
from typing import Any

import warp as wp

from kinopt_ros.solvers.hjcd.chain import ChainShape
from kinopt_ros.solvers.hjcd.device_chain import DeviceChain
from kinopt_ros.solvers.hjcd.kernels.pj_ik import PROPOSALS, pj_ik_kernels
from kinopt_ros.solvers.hjcd.kernels.po_ccd import po_ccd_kernels
from kinopt_ros.solvers.hjcd.kernels.screen import begin_refinement, keep_best, settle_double
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
from kinopt_ros.solvers.hjcd.reference.hjcd_ik import COARSE, COPIES, REFINE, STARTS, stream, usual_selection
from kinopt_ros.solvers.hjcd.reference.pj_ik import RefineSettings
from kinopt_ros.solvers.hjcd.reference.po_ccd import CoarseSettings
from kinopt_ros.solvers.hjcd.rounds import Launch, Rounds

NAME = "hjcd_ik"
STARTS_ON_CPU = 200
"""Number of starts that a CPU does in 20 ms, candidates included."""
LOOKS = 4
"""Number of looks at which targets are done, while candidates are refined."""


@dataclass(frozen=True)
class PaperSettings:
    """Parameters of Algorithms 2 to 4."""

    starts: int
    """Number M of starts."""
    coarse: CoarseSettings
    refine: RefineSettings


class _Buffers:
    """Arrays for up to so many targets, allocated once."""

    def __init__(self, variables: int, targets: int, starts: int, keep: int, lanes: int, device: Any) -> None:
        M, L = targets * starts, targets * lanes
        self.given = Given(targets, variables, device)
        self.answers = Answers(targets, variables, device)
        self.targets = wp.empty((targets, 12), dtype=wp.float32, device=device)
        self.targets_double = wp.empty((targets, 12), dtype=wp.float64, device=device)
        self.done = wp.empty(targets, dtype=wp.int32, device=device)
        self.idle = wp.empty(targets, dtype=wp.int32, device=device)
        self.coarse = wp.empty((variables, M), dtype=wp.float32, device=device)
        self.own = wp.empty((variables, M), dtype=wp.float32, device=device)
        self.scores = wp.empty(M, dtype=wp.float32, device=device)
        self.coarse_steps = wp.empty(M, dtype=wp.int32, device=device)
        self.kept = wp.empty((variables, targets * keep), dtype=wp.float32, device=device)
        self.q = wp.empty((variables, L), dtype=wp.float64, device=device)
        self.best = wp.empty((variables, L), dtype=wp.float64, device=device)
        self.best_scores = wp.empty(L, dtype=wp.float64, device=device)
        self.damping = wp.empty(L, dtype=wp.float64, device=device)
        self.errors = wp.empty((2, L), dtype=wp.float64, device=device)
        self.steps = wp.empty(L, dtype=wp.int32, device=device)


class PaperSearch:
    """Search by Algorithm 2 of the paper. Not thread-safe."""

    name = NAME

    def __init__(self, settings: PaperSettings, device: Any, graphs: bool = False) -> None:
        """``graphs``: see ``Rounds``."""
        self._settings, self._device = settings, device
        self._chosen = usual_selection(settings.starts)
        self.lanes = self._chosen.keep * self._chosen.copies
        self.most_targets = (
            max(1, STARTS_ON_CPU // settings.starts)
            if device.is_cpu
            else most_targets(max(settings.starts, self.lanes))
        )
        self._buffers: dict[tuple[int, int], _Buffers] = {}
        self._rounds = Rounds(device, graphs)

    def load(self, shape: ChainShape) -> None:
        """Compile what chains of a shape need, or load what was compiled before."""
        for kernel in (
            po_ccd_kernels(shape, wp.float32).po_ccd,
            pj_ik_kernels(shape, wp.float64).pj_ik,
            keep_best,
            choose,
        ):
            wp.load_module(kernel.module, device=self._device)

    def forget(self) -> None:
        """Free the buffers."""
        self._rounds.clear()
        self._buffers.clear()

    def run(self, chain: DeviceChain, portion: Portion) -> Outcome:
        """Run Algorithm 2 for every target of the portion; the problem's own starts take the place of random ones."""
        b, given = portion.own.shape[0], min(portion.own.shape[1], self._settings.starts)
        arrays, size = self._arrays(chain.chain.shape.variables, b), self._rounds.size(b)
        arrays.given.put(replace(portion, own=portion.own[:, :given]), size)
        key = chain, portion.round, portion.seed, portion.every_lane, portion.tolerance, size, given
        self._rounds.launch(key, lambda: self._plan(chain, portion, arrays, size, given))
        if not portion.every_lane:
            return arrays.answers.outcome(b)
        starts, L = self._settings.starts, b * self.lanes
        finish(self._device)
        outcome = outcome_of(
            arrays.best.numpy()[:, :L], arrays.errors.numpy()[:, :L], arrays.steps.numpy()[:L], b
        )
        coarse_steps = arrays.coarse_steps.numpy()[: b * starts].reshape(b, -1).sum(axis=1)
        return Outcome(outcome.q, outcome.errors, outcome.steps + coarse_steps)

    def _plan(
        self, chain: DeviceChain, portion: Portion, arrays: _Buffers, b: int, given: int
    ) -> list[Launch]:
        shape, settings, chosen, lanes = chain.chain.shape, self._settings, self._chosen, self.lanes
        coarse, refine = settings.coarse, settings.refine
        # Knuth's multiplier: rounds do not overlap.
        seed = (portion.seed * 2654435761 + portion.round) & 0xFFFFFFFF
        first, second = po_ccd_kernels(shape, wp.float32), pj_ik_kernels(shape, wp.float64)
        idle, rows = arrays.idle, arrays.given.rows(b, given)
        beginning = [
            idle,
            lanes,
            refine.damping,
            arrays.done,
            arrays.damping,
            arrays.best_scores,
            arrays.steps,
        ]
        drawing = [
            chain.single, wp.uint32(stream(seed, STARTS)), settings.starts, given, arrays.own, arrays.coarse
        ]  # fmt: skip
        descent = [
            chain.single, arrays.targets, idle, settings.starts, coarse.iterations, coarse.position,
            coarse.orientation, coarse.gain, coarse.noise, coarse.turn, wp.uint32(stream(seed, COARSE)),
            arrays.coarse, arrays.scores, arrays.coarse_steps,
        ]  # fmt: skip
        choice = [arrays.scores, settings.starts, chosen.keep, arrays.coarse, arrays.kept]
        copies = [
            chain.double, arrays.kept, chosen.keep, chosen.copies, chosen.noise, wp.uint32(stream(seed, COPIES)),
            arrays.q,
        ]  # fmt: skip
        spreading = [
            rows, given, settings.starts, idle, arrays.targets, arrays.targets_double, arrays.own
        ]  # fmt: skip
        plan: list[Launch] = [
            (spread, b, spreading),
            (begin_refinement, b * lanes, beginning),
            (first.draw, b * settings.starts, drawing),
            (first.po_ccd, b * settings.starts, descent),
            (keep_best, (b, settings.starts), choice),
            (second.replicate, b * lanes, copies),
        ]
        period = -(-(refine.iterations + 1) // LOOKS)
        for begin in range(0, refine.iterations + 1, period):
            refinement = [
                chain.double, arrays.targets_double, arrays.done, lanes, begin, begin + period, refine.iterations,
                refine.position, refine.orientation, refine.radius, refine.noise, wp.uint32(stream(seed, REFINE)),
                PROPOSALS, arrays.q, arrays.damping, arrays.best, arrays.best_scores, arrays.errors, arrays.steps,
            ]  # fmt: skip
            plan.append((second.pj_ik, b * lanes, refinement))
            if not portion.every_lane:
                near = max(refine.position, refine.orientation)
                plan.append((settle_double, b, [arrays.errors, lanes, near, arrays.done]))
        if not portion.every_lane:
            choice = [
                rows, chain.double.ranges, arrays.best, arrays.errors, arrays.steps, lanes, arrays.coarse_steps,
                settings.starts, *portion.tolerance, arrays.answers.rows(b),
            ]  # fmt: skip
            plan.append((choose, b, choice))
        return plan

    def _arrays(self, variables: int, targets: int) -> _Buffers:
        key = variables, capacity_for(targets)
        if key not in self._buffers:
            self._buffers[key] = _Buffers(
                *key, self._settings.starts, self._chosen.keep, self.lanes, self._device
            )
        return self._buffers[key]
