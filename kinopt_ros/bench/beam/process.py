"""Runs a solver in a process of its own, so that memory, compilers' caches and threads do not mix."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import kinopt_ros.bench.pyroki
from kinopt_ros.array import Float64
from kinopt_ros.bench.beam.job import answers_file, write_own_job, write_pyroki_job
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import SolverUnavailableError

PYROKI = "pyroki"
ANALYTIC, AUTODIFF = "analytic", "autodiff"
PYROKI_WORKER = Path(next(iter(kinopt_ros.bench.pyroki.__path__))) / "worker.py"
GET_PYROKI = (
    "`make bench-beam` makes it, or name a Python that has the package almond-pyroki with --pyroki-python"
)


@dataclass(frozen=True)
class Variant:
    """A solver and how it gets its Jacobians; None: it has one way."""

    solver: str
    jacobian: str | None = None

    @property
    def name(self) -> str:
        """Name as the user gives it: SOLVER or SOLVER:JACOBIAN."""
        return self.solver if self.jacobian is None else f"{self.solver}:{self.jacobian}"


@dataclass(frozen=True, eq=False)
class Batches:
    """What a solver did with batches of one size: answers (float64, columns as the task's), and its report."""

    size: int
    q: Float64
    record: dict[str, Any]


@dataclass
class Outcome:
    """What a process reported and left."""

    about: dict[str, Any] = field(default_factory=dict)
    """Versions, device, and seconds until ready (``ready_s``, ours)."""
    batches: list[Batches] = field(default_factory=list)
    restart_s: float | None = None
    """Ours: from the start of a second process, compiled programs on disk, to its first answer."""


def run_variant(
    variant: Variant,
    robot: str,
    task: IkTask,
    sizes: Sequence[tuple[int, int]],
    device: str,
    pyroki_python: Path,
    progress: Callable[[int], object],
) -> Outcome:
    """Let a variant solve calls of every size.

    Args:
        variant: who.
        robot: name or file that ``task`` was made from.
        task: the targets; a call takes the next ``size`` of them, from the first on for every size.
        sizes: (targets per call, calls).
        device: ``cpu`` or ``cuda``.
        pyroki_python: interpreter of PyRoki's environment.
        progress: told the targets of every call that was made.

    Raises:
        SolverUnavailableError: it cannot run here.
        UnsupportedFeatureError: PyRoki cannot take this chain.
    """
    with tempfile.TemporaryDirectory(prefix="kinopt_beam_") as name:
        folder = Path(name)
        if variant.solver == PYROKI:
            write_pyroki_job(folder, task, sizes, variant.jacobian != AUTODIFF)
            platform = {"JAX_PLATFORMS": device, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
            outcome = _run(_pyroki_command(pyroki_python, folder), folder, task, platform, progress)
            outcome.about["device"] = device
            return outcome

        def write(plan: Sequence[tuple[int, int]]) -> list[str]:
            options = {} if variant.jacobian is None else {"jacobian": variant.jacobian}
            write_own_job(
                folder,
                robot,
                task,
                plan,
                solver=variant.solver,
                options=options,
                device=device,
                joints=task.names,
            )
            return [sys.executable, "-P", "-m", "kinopt_ros.bench.beam.own_worker", str(folder)]

        outcome = _run(write(sizes), folder, task, {}, progress)
        start = time.perf_counter()
        again = _run(write([(1, 1)]), folder, task, {}, lambda targets: None)
        outcome.restart_s = again.about["first_call_at"] - start
        return outcome


def _pyroki_command(python: Path, folder: Path) -> list[str]:
    if not python.is_file():
        raise SolverUnavailableError(f"PyRoki's environment is missing (no {python}): {GET_PYROKI}")
    return [str(python), str(PYROKI_WORKER), str(folder)]


def _run(
    command: list[str],
    folder: Path,
    task: IkTask,
    environment: dict[str, str],
    progress: Callable[[int], object],
) -> Outcome:
    outcome = Outcome()
    with (
        open(folder / "stderr", "w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=_environment(folder) | environment
        ) as process,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.startswith("{"):  # libraries print, too
                    _take(json.loads(line), outcome, folder, task, progress)
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            errors.seek(0)
            raise SolverUnavailableError(
                f"its process ended with status {process.returncode}: {_reason(errors.read().splitlines())}"
            )
    return outcome


def _reason(said: Sequence[str]) -> str:
    """Return the exception that ended a program; JAX prints a remark after it."""
    lines = [line.strip() for line in said if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    return (raised or lines or ["it said nothing"])[-1]


def _take(
    record: dict[str, Any], outcome: Outcome, folder: Path, task: IkTask, progress: Callable[[int], object]
) -> None:
    if "error" in record:
        raise SolverUnavailableError(record["error"])
    if "done" in record:
        outcome.about.setdefault("first_call_at", time.perf_counter())
        progress(record["done"])
    elif "size" in record:
        q = np.load(answers_file(folder, record["size"]))
        joints = outcome.about.get("joints", list(task.names))
        q = q[:, [joints.index(name) for name in task.names]]
        outcome.batches.append(Batches(record["size"], q, record))
    else:
        outcome.about |= record


def _environment(folder: Path) -> dict[str, str]:
    """Return an environment without the user's settings of JAX for other programs; caches are empty at first."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    return kept | {"XDG_CACHE_HOME": str(folder / "cache"), "NUMBA_CACHE_DIR": str(folder / "numba")}
