"""Registry of solver plugins, by the entry-point group ``kinopt_ros.solvers``; a plugin is loaded when it is used."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kinopt_ros.errors import SolverUnavailableError, UnknownSolverError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver

GROUP = "kinopt_ros.solvers"
AUTO = "auto"
_PREFERENCE = ("cpu",)
"""Plugins that ``auto`` takes first; every other available plugin comes after, by name, and last those that solve no
inverse kinematics."""


@dataclass(frozen=True)
class SolverInfo:
    """One registered plugin."""

    name: str
    version: str
    unavailable_reason: str | None
    """Why the plugin cannot run here; None if it can."""
    capabilities: Capabilities | None
    """Capabilities of the plugin; None if it could not even be loaded."""
    options: tuple[Option, ...] = ()
    solves_ik: bool = True
    """Whether it solves inverse kinematics; others optimize trajectories alone."""

    @property
    def features(self) -> tuple[str, ...]:
        """What it can, in words for people, in alphabetical order."""
        if self.capabilities is None:
            return ()
        words = {feature.value for feature in self.capabilities.features}
        if not self.solves_ik:
            words = words - {Feature.TRAJECTORIES.value} | {f"{Feature.TRAJECTORIES.value} alone"}
        return tuple(sorted(words))


def solver_names() -> tuple[str, ...]:
    """Return the names of all registered plugins, without loading any."""
    return tuple(sorted(_entry_points()))


def list_solvers() -> tuple[SolverInfo, ...]:
    """List every registered plugin and, if it cannot run here, why. A broken plugin is listed, not raised."""
    infos = []
    for name, entry_point in sorted(_entry_points().items()):
        try:
            solver = _load(entry_point)
            reason = solver.unavailable_reason()
        except SolverUnavailableError as error:
            infos.append(SolverInfo(name, "", str(error), None))
            continue
        infos.append(
            SolverInfo(name, solver.version, reason, solver.capabilities, solver.options, solver.solves_ik())
        )
    return tuple(infos)


def solver_class(name: str) -> type[Solver]:
    """Return the class of a plugin that can run here; ``auto`` picks one.

    Raises:
        UnknownSolverError: no plugin of that name is registered.
        SolverUnavailableError: it is, but cannot run here; the message says why.
    """
    known = _entry_points()
    if name == AUTO:
        return _pick(known)
    if name not in known:
        raise UnknownSolverError(name, (AUTO, *sorted(known)))
    solver = _load(known[name])
    reason = solver.unavailable_reason()
    if reason is not None:
        raise SolverUnavailableError(f"solver {name!r} is not available: {reason}")
    return solver


def create_solver(name: str, robot: RobotModel, options: Mapping[str, Any] | None = None) -> Solver:
    """Create a solver configured for a robot. Raises as ``solver_class`` and ``Solver.configure`` do."""
    solver = solver_class(name)()
    solver.configure(robot, options)
    return solver


@functools.cache  # reading the metadata of all installed packages takes 20 ms
def _entry_points() -> dict[str, EntryPoint]:
    return {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}


def _load(entry_point: EntryPoint) -> type[Solver]:
    try:
        loaded = entry_point.load()
    except Exception as error:  # whatever a third party's module raises must not take the others down
        raise SolverUnavailableError(
            f"solver {entry_point.name!r} cannot be loaded from {entry_point.value}: {type(error).__name__}: {error}"
        ) from error
    if not (isinstance(loaded, type) and issubclass(loaded, Solver)):
        raise SolverUnavailableError(
            f"{entry_point.value} is not a subclass of kinopt_ros.solvers.base.Solver"
        )
    return loaded


def _pick(known: Mapping[str, EntryPoint]) -> type[Solver]:
    order = [name for name in _PREFERENCE if name in known]
    order += sorted(set(known) - set(order))
    reasons = []
    without_ik: type[Solver] | None = None
    for name in order:
        try:
            found = solver_class(name)
        except SolverUnavailableError as error:
            reasons.append(str(error))
            continue
        if found.solves_ik():
            return found
        without_ik = without_ik or found
    if without_ik is not None:  # better than none: it says what it cannot
        return without_ik
    raise SolverUnavailableError("no solver is available: " + ("; ".join(reasons) or "none is installed"))
