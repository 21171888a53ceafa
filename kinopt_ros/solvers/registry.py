"""Registry of solver plugins, by the entry-point group ``kinopt_ros.solvers``; a plugin is loaded when it is used."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kinopt_ros.errors import (
    InvalidRequestError,
    SolverUnavailableError,
    UnknownSolverError,
    quoted,
    shown,
)
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver

GROUP = "kinopt_ros.solvers"
AUTO = "auto"
_PREFERENCE = ("cpu",)
"""Plugins that ``auto`` takes first; every other available plugin comes after, by name, and last those that solve no
inverse kinematics."""
_OPTION_NAME = re.compile(r"[A-Za-z]\w*(\.\w+)*", re.ASCII)


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
            reason = _reason(solver)
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
    reason = _reason(solver)
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
    loaded = _loaded(entry_point.name, entry_point.value)
    if isinstance(loaded, str):
        raise SolverUnavailableError(loaded)
    return loaded


@functools.cache  # a module that fails would be run again whenever somebody lists the solvers
def _loaded(name: str, value: str) -> type[Solver] | str:
    """Import a plugin; return its class, or why it cannot be used."""
    try:
        loaded = EntryPoint(name, value, GROUP).load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a third party's module raises must not take the others down
        return f"solver {name!r} cannot be loaded from {value}: {type(error).__name__}: {error}"
    if not (isinstance(loaded, type) and issubclass(loaded, Solver)):
        return f"{value} is not a subclass of kinopt_ros.solvers.base.Solver"
    wrong = _malformed(name, loaded)
    return f"solver {name!r}, {value}, cannot be used: {wrong}" if wrong else loaded


def _malformed(name: str, solver: type[Solver]) -> str:
    """Return which of a plugin's claims about itself has not the agreed form; empty if all have."""
    for attribute, wanted in (
        ("name", str),
        ("version", str),
        ("capabilities", Capabilities),
        ("options", tuple),
    ):
        given = getattr(solver, attribute, None)
        if not isinstance(given, wanted):
            return f"its {attribute} is {shown(given)}; agreed is {wanted.__name__}"
    if solver.name != name:
        return f"it calls itself {quoted(solver.name)}, its entry point {quoted(name)}; agreed is one name for both"
    options: tuple[object, ...] = solver.options
    for option in options:
        if not isinstance(option, Option):
            return f"one of its options is {shown(option)}; agreed is Option"
        if not _OPTION_NAME.fullmatch(str(option.name)):
            return f"an option is called {shown(option.name)}; agreed are letters, digits and _, and dots between them"
        if type(option.default) not in (bool, int, float, str):
            return f"option {option.name} is {shown(option.default)}; agreed is a truth value, a number or a text"
        try:
            option.check(option.default)
        except InvalidRequestError as error:
            return f"the default of an option is none that it allows: {error}"
    return ""


def _reason(solver: type[Solver]) -> str | None:
    """Ask a plugin why it cannot run here. What it raises is a reason, too."""
    try:
        reason = solver.unavailable_reason()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # as above
        return f"{type(error).__name__}: {error}"
    return None if reason is None else str(reason)


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
