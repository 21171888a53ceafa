"""Registry of solver plugins, by the entry-point group ``kinopt_ros.solvers``; a plugin is loaded when it is used."""

import functools
import math
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from kinopt_ros.errors import (
    InvalidRequestError,
    SolverUnavailableError,
    UnknownSolverError,
    cut,
    quoted,
    said_by,
    shown,
    writable,
)
from kinopt_ros.problems.constraints.rows import ConstraintRow
from kinopt_ros.problems.preferences.index import IndexPreference
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver

GROUP = "kinopt_ros.solvers"
AUTO = "auto"
_PREFERENCE = ("cpu",)
"""Plugins that ``auto`` takes first; every other available plugin comes after, by name, and last those that solve no
inverse kinematics."""
RESERVED = frozenset(
    {
        AUTO,
        "costs",
        "ik",
        "markers",
        "qos_overrides",
        "robot_description_kinematics",
        "robot_description_planning",
        "servo",
        "start_type_description_service",
        "target_pose",
        "trajectory",
    }
)
"""Names that no plugin may have: options become parameters ``<name>.<option>``, which must not be the node's own."""
_LONGEST_TEXT = 100_000
"""Longest text that a default may be: that of any parameter."""
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
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


def by_preference(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of solvers as they are preferred where nobody says which: ``cpu`` first, which can do the most, then
    by name."""
    given = set(names)
    first = [name for name in _PREFERENCE if name in given]
    return (*first, *sorted(given.difference(first)))


def list_solvers() -> tuple[SolverInfo, ...]:
    """List every registered plugin and, if it cannot run here, why. A broken plugin is listed, not raised."""
    infos = []
    for name, entry_point in sorted(_entry_points().items()):
        try:
            solver = _load(entry_point)
        except SolverUnavailableError as error:
            infos.append(SolverInfo(name, "", str(error), None))
            continue
        infos.append(
            SolverInfo(
                name,
                solver.version,
                _reason(solver),
                solver.capabilities,
                solver.options,
                solver.solves_ik(),
            )
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
        return f"solver {name!r} cannot be loaded from {value}: {said_by(error)}"
    if not (isinstance(loaded, type) and issubclass(loaded, Solver)):
        return f"{value} is not a subclass of kinopt_ros.solvers.base.Solver"
    try:
        wrong = _malformed(name, loaded)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # as above: even a look may run its code
        wrong = said_by(error)
    return f"solver {name!r}, {value}, cannot be used: {wrong}" if wrong else loaded


def _malformed(name: str, solver: type[Solver]) -> str:
    """Return which of a plugin's claims about itself has not the agreed form; empty if all have."""
    if not _NAME.fullmatch(name):
        return "agreed are letters, digits and _ for its name"
    if name in RESERVED:
        return "the node has that name for something else; agreed is a name of its own"
    for attribute, wanted in (
        ("name", str),
        ("version", str),
        ("capabilities", Capabilities),
        ("options", tuple),
    ):
        given = getattr(solver, attribute, None)
        if not isinstance(given, wanted) or not _is_writable(given):
            return f"its {attribute} is {shown(given)}; agreed is {wanted.__name__}"
    if solver.name != name:
        return f"it calls itself {quoted(solver.name)}, its entry point {quoted(name)}; agreed is one name for both"
    for field, kind in (("joint_types", JointType), ("features", Feature), ("costs", str)):
        claimed = getattr(solver.capabilities, field)
        if not isinstance(claimed, Set) or not all(isinstance(each, kind) for each in claimed):
            return f"its capabilities.{field} is {shown(claimed)}; agreed is a set of {kind.__name__}"
    for field, form, base in (("rows", Set, ConstraintRow), ("indices", tuple, IndexPreference)):
        claimed = getattr(solver.capabilities, field)
        kinds = isinstance(claimed, form) and all(isinstance(each, type) for each in claimed)
        if not kinds or not all(issubclass(each, base) for each in claimed):
            word = "tuple" if form is tuple else "set"
            return f"its capabilities.{field} is {shown(claimed)}; agreed is a {word} of kinds of {base.__name__}"
    most: object = solver.capabilities.max_variables
    if type(most) is not int or most < 1:
        return f"its capabilities.max_variables is {shown(most)}; agreed is a whole number above 0"
    prompt: object = solver.prompt
    if not isinstance(prompt, bool):
        return f"its prompt is {shown(prompt)}; agreed is a truth value"
    options: tuple[object, ...] = solver.options
    named: set[str] = set()
    for option in options:
        if not isinstance(option, Option):
            return f"one of its options is {shown(option)}; agreed is Option"
        if not isinstance(option.name, str) or not _OPTION_NAME.fullmatch(option.name):
            return f"an option is called {shown(option.name)}; agreed are letters, digits and _, and dots between them"
        if option.name in named:
            return f"two options are called {shown(option.name)}; agreed is a name for each"
        named.add(option.name)
        wrong = _malformed_option(option)
        if wrong:
            return f"option {option.name} {wrong}"
    return ""


def _malformed_option(option: Any) -> str:
    """Return what cannot become a parameter of ROS, as the end of a sentence; empty if all can."""
    if type(option.default) not in (bool, int, float, str):
        return f"is {shown(option.default)}; agreed is a truth value, a number or a text"
    if not isinstance(option.description, str) or not isinstance(option.read_only, bool):
        return "has no text as its description, or no truth value as its read_only"
    if not isinstance(option.choices, tuple) or not all(isinstance(each, str) for each in option.choices):
        return f"has choices {shown(option.choices)}; agreed is a tuple of texts"
    texts: tuple[object, ...] = (option.description, option.default, *option.choices)
    if not all(_is_writable(text) for text in texts):
        return "has a text that is no UTF-8"
    if isinstance(option.default, str) and len(option.default) > _LONGEST_TEXT:
        return f"has a default of {len(option.default)} characters; agreed are at most {_LONGEST_TEXT}"
    for limit in (option.minimum, option.maximum):
        if limit is not None and (type(limit) not in (int, float) or not math.isfinite(limit)):
            return f"has the limit {shown(limit)}; agreed is None or a finite number"
    numbers = [
        each for each in (option.default, option.minimum, option.maximum) if type(each) in (int, float)
    ]
    if type(option.default) is int and any(abs(each) >= 2**63 for each in numbers):
        return "has a whole number of more than 64 bits"
    try:
        option.check(option.default)
    except InvalidRequestError as error:
        return f"has a default that it does not allow: {error}"
    return ""


def _is_writable(given: object) -> bool:
    return not isinstance(given, str) or writable(given) == given


def _reason(solver: type[Solver]) -> str | None:
    """Ask a plugin why it cannot run here. What it raises is a reason, too."""
    try:
        reason = solver.unavailable_reason()
        return None if reason is None else cut(writable(str(reason)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # as above
        return said_by(error)


def _pick(known: Mapping[str, EntryPoint]) -> type[Solver]:
    reasons = []
    without_ik: type[Solver] | None = None
    for name in by_preference(known):
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
