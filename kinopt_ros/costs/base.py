"""What a cost is. Each kind is one file of this folder, or of any package that registers it (``registry.py``).

A cost has a residual r at a point (``point.py``), written over the array module, so that the one formula is compiled
and differentiated by JAX for the search, and evaluated by numpy in float64 for the verdict. An objective minimizes

    sum over costs and points of |weight * r|^2,    with max(r, 0) in place of r for one-sided costs,

over the costs without a ``tolerance``. One with a tolerance has to hold: it is a constraint, r = 0 (or r <= 0 if it is
one-sided), of which only counts which components have a weight, and an answer is no success if what ``magnitudes``
returns is above the tolerance.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self, get_type_hints
from weakref import WeakKeyDictionary

import numpy as np

from kinopt_ros.array import Float64, Immutable
from kinopt_ros.costs.fields import (
    allowed,
    alternatives,
    fits,
    fits_one,
    length_of_floats,
    takes_arrays,
    takes_floats,
)
from kinopt_ros.costs.point import Point
from kinopt_ros.errors import InvalidRequestError, UnknownLinkError, quoted, said_by, shown
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene

HEAVIEST = 1e6
"""Largest weight: squared, what is lighter by as much would be lost in rounding."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Cost(Immutable, ABC):
    """Base of all costs: a frozen dataclass whose floats and arrays may change without compiling anew.

    What else its fields hold (names, whole numbers, true or false) is its structure.
    """

    name: ClassVar[str]
    """Name of the kind, in lower case; that of its entry point."""
    formula: ClassVar[str]
    """The residual, in one line."""
    units: ClassVar[str]
    """Units of the residual."""
    source: ClassVar[str] = ""
    """Paper and equation, if it is from one."""
    one_sided: ClassVar[bool] = False
    """Whether the residual may be negative without being wrong: r <= 0 is wanted."""
    rugged: ClassVar[bool] = False
    """Whether searches often end in local minima of it: where it is weighed, more starts are made by default."""
    looks_at_shapes: ClassVar[bool] = False
    """Whether the residual depends on the shapes of the robot's links."""
    span: ClassVar[int] = 1
    """Neighbouring points that it looks at: the point itself and ``point.next(k)`` for k < span."""
    order: ClassVar[int] = 0
    """Highest derivative by time that it looks at (``point.derivative``): 0 to 3."""

    weight: float | tuple[float, ...] | Float64 = 1.0
    """Weight of the residual: one number, or one for each component. 0 leaves out."""
    tolerance: float | tuple[float, ...] | None = None
    """Largest magnitude with which it holds, one number or one for each; None: it need not hold, and is weighed."""
    points: tuple[int, ...] | None = None
    """Points of a trajectory at which it counts, from 0; negative ones count from the end. None: all."""
    label: str = ""
    """Name in answers, to tell two of a kind apart; empty: the kind's name."""

    def __post_init__(self) -> None:
        for declared in _declared(type(self)):
            value = getattr(self, declared.name)
            if value is declared.default:  # checked once
                continue
            converted = _converted(type(self), declared, value)
            if converted is not value:
                object.__setattr__(self, declared.name, converted)
        self._check_common()

    @abstractmethod
    def residual(self, point: Point) -> Annotated[Any, "m"]:
        """Compute the residual at a point, shape (m,), by ``point.xp`` (numpy or jax.numpy), without its weight."""

    def check(self, robot: RobotModel) -> None:
        """Raise a KinoptError if the cost does not fit a robot, as for links that it does not have."""

    def in_scene(self, scene: Scene) -> Self:
        """Return the cost with what it needs of a problem's scene; itself by default."""
        del scene
        return self

    def links(self, robot: RobotModel) -> tuple[str, ...]:
        """Return the links whose poses it asks for, as far as known, so that they are computed together; by default
        those that its fields name."""
        named = [getattr(self, field.name) for field in fields(self)]
        return tuple(value for value in named if isinstance(value, str) and value in robot.link_index)

    def magnitudes(self, residual: Annotated[Float64, "... m"]) -> Annotated[Float64, "... k"]:
        """Return what tolerances bound: by default the absolute value of each component that has a weight, or what is
        above 0 of one-sided ones."""
        values = np.maximum(residual, 0.0) if self.one_sided else np.abs(residual)
        weight = np.asarray(self.weight, dtype=np.float64)
        return values if weight.ndim == 0 else values[..., weight != 0.0]

    def num_magnitudes(self, components: int) -> int:
        """Return how many numbers ``magnitudes`` makes of a residual of so many components."""
        return int(self.magnitudes(np.zeros(components)).shape[-1])

    @property
    def holds(self) -> bool:
        """Whether it has to hold, rather than being weighed."""
        return self.tolerance is not None

    @property
    def title(self) -> str:
        """Its label, or the name of its kind."""
        return self.label or self.name

    @property
    def width(self) -> int:
        """Points that a trajectory must have for it."""
        return max(self.span, self.order + 1)

    def with_values(self, **values: Any) -> Self:
        """Return a copy with other values, unchecked: for compilers, which put tracers in place of numbers."""
        copy = object.__new__(type(self))
        for field in fields(self):
            object.__setattr__(copy, field.name, values.get(field.name, getattr(self, field.name)))
        return copy

    def replace(self, **values: Any) -> Self:
        """Return a copy with other values, checked: only these are looked at."""
        kind = type(self)
        if kind.__post_init__ is not Cost.__post_init__ or not kind.__dataclass_params__.init:  # type: ignore[attr-defined]
            return replace(self, **values)
        changed = [field for field in _declared(kind) if field.name in values]
        if len(changed) < len(values):  # the error of a dataclass
            return replace(self, **values)
        copy = self.with_values()  # without what was worked out from the fields
        structure = self.__dict__.get(_STRUCTURE)
        for field in changed:
            before, after = getattr(self, field.name), _converted(kind, field, values[field.name])
            object.__setattr__(copy, field.name, after)
            if structure is not None and _other_structure(field.name, before, after):
                structure = None
        copy._check_common()
        if structure is not None:
            object.__setattr__(copy, _STRUCTURE, structure)
        return copy

    def _check_common(self) -> None:
        weight = self.weight
        if not (type(weight) is float and 0.0 <= weight <= HEAVIEST) and not _are_weights(weight):
            raise InvalidRequestError(
                f"cost {self.title!r}: weight is {shown(self.weight)}; allowed is a number from 0 to {HEAVIEST:g}, or "
                "one for each component"
            )
        if self.tolerance is not None:
            bounds = self.tolerance if isinstance(self.tolerance, tuple) else (self.tolerance,)
            if not bounds or not all(bound >= 0.0 for bound in bounds):
                raise InvalidRequestError(
                    f"cost {self.title!r}: tolerance is {shown(self.tolerance)}; allowed is a number of at least 0, "
                    "or one for each"
                )
        if self.points is not None and not self.points:
            raise InvalidRequestError(f"cost {self.title!r}: points is empty; leave it out for all points")


def _are_weights(given: object) -> bool:
    weight = np.asarray(given, dtype=np.float64)
    allowed = (weight >= 0.0) & (weight <= HEAVIEST)
    return weight.ndim <= 1 and bool(weight.size) and bool(allowed.all())


def numbers_of(cost: Cost) -> dict[str, Float64]:
    """Return the fields of a cost that may change without compiling anew: floats, and what is made of floats."""
    found = {}
    for field in fields(cost):
        value = getattr(cost, field.name)
        if field.name != "tolerance" and _is_numeric(value):
            found[field.name] = np.asarray(value, dtype=np.float64)
    return found


_STRUCTURE = "_structure"
"""Where a cost keeps its structure."""
_NUMBER = ("numbers", ())
_DECLARED = "_declared_fields"
"""Where a kind keeps what is known of its fields: that ends with it."""


def structure_of(cost: Cost) -> tuple[Any, ...]:
    """Return what a compiled program of a cost depends on, as a hashable value; the cost keeps it."""
    known: tuple[Any, ...] | None = cost.__dict__.get(_STRUCTURE)
    if known is not None:
        return known
    kind = type(cost)
    parts: list[Any] = [f"{kind.__module__}:{kind.__qualname__}", cost.tolerance is not None]
    for declared in _declared(kind):  # the same fields in the same order, so that their names can be left out
        if not declared.structural:
            continue
        parts.append(_part(getattr(cost, declared.name)))
    structure = tuple(parts)
    try:
        hash(structure)
    except TypeError:
        raise InvalidRequestError(
            f"cost {cost.title!r} has fields that can change; allowed are numbers, arrays, texts and tuples of those"
        ) from None
    object.__setattr__(cost, _STRUCTURE, structure)
    return structure


def _part(value: Any) -> Any:
    """Return what the structure of a cost has of a field: of numbers how many they are."""
    if type(value) is float:
        return _NUMBER
    if value is None or type(value) is str:
        return value
    if _is_numeric(value):
        return "numbers", np.shape(value)
    return "value", value


def _other_structure(name: str, before: Any, after: Any) -> bool:
    """Return whether the structure of a cost is another one with another value of a field."""
    if name == "label" or (type(before) is type(after) is np.ndarray and before.shape == after.shape):
        return False
    if name == "tolerance":
        return (before is None) != (after is None)
    return bool(_part(before) != _part(after))


def _is_numeric(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return bool(value.dtype == np.float64)
    return isinstance(value, float) or (
        isinstance(value, tuple) and bool(value) and all(isinstance(item, float) for item in value)
    )


class _Declared(NamedTuple):
    """A field of a kind."""

    name: str
    structural: bool
    """Whether compiled programs depend on it."""
    hint: Any
    default: Any
    """Its default, if that needs no check: it is as declared."""
    takes_arrays: bool
    takes_floats: bool
    alternatives: tuple[Any, ...]
    tuple_length: int | None
    """Length of tuples of floats that it may hold; 0: any; None: it may hold none."""


def _converted(kind: type[Cost], declared: _Declared, value: Any) -> Any:
    """Return a field's value as its kind declares it; refuse others. See ``_as_declared``."""
    return value if _is_plain(declared, value) else _as_declared(kind, declared, value)


def _is_plain(declared: _Declared, value: Any) -> bool:
    """Return whether a value is one of the usual ones that ``_as_declared`` would leave as it is; it takes longer."""
    kind = type(value)
    if kind is str:
        return str in declared.alternatives
    if kind is float:
        return float in declared.alternatives and (math.isfinite(value) or declared.name == "tolerance")
    if kind is not tuple or declared.tuple_length is None or declared.tuple_length not in (0, len(value)):
        return False
    for item in value:
        if type(item) is not float or not (math.isfinite(item) or declared.name == "tolerance"):
            return False
    return bool(value)


def _as_declared(kind: type[Cost], declared: _Declared, value: Any) -> Any:
    """Return a field's value as its kind declares it: whole numbers where floats are meant become floats, lists become
    tuples, arrays become read-only float64 ones; refuse other types, and numbers that are not finite."""
    if type(value) is np.ndarray and value.dtype == np.float64 and declared.takes_arrays:
        array = np.array(value)
        if math.isfinite(
            np.vdot(array, array)
        ):  # else something is not, or the sum of squares is beyond 1e308
            array.setflags(write=False)
            return array
    who = f"cost {kind.name!r}: {declared.name}"
    if isinstance(value, list):
        value = _array(who, value) if declared.takes_arrays else _tuple(value)
    if isinstance(value, tuple):
        value = _tuple(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = _array(who, value)
    if declared.takes_floats:
        value = _floats(who, value)
    if not any(fits_one(one, value) for one in declared.alternatives):
        raise InvalidRequestError(f"{who} is {shown(value)}; allowed is {allowed(declared.hint)}")
    if type(value) is float:
        if declared.name != "tolerance" and not math.isfinite(value):
            _require_finite(who, np.asarray(value))
    elif _is_numeric(value) and declared.name != "tolerance":
        _require_finite(who, np.asarray(value, dtype=np.float64))
    return value


def _array(who: str, value: Any) -> Float64:
    try:
        given = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        given = np.array([None])
    if given.dtype.kind not in "fiu":
        raise InvalidRequestError(f"{who} is {shown(value)}; allowed are numbers, in lists of equal length")
    array = np.array(given, dtype=np.float64)
    array.setflags(write=False)
    return array


def _tuple(values: list[Any] | tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        _tuple(item)
        if isinstance(item, list | tuple)
        else item.item()
        if isinstance(item, np.generic)
        else item
        for item in values
    )


def _floats(who: str, value: Any) -> Any:
    """Return whole numbers, and tuples of numbers, as floats; anything else as it is."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _float(who, value)
    if isinstance(value, tuple) and all(type(item) in (int, float) for item in value):
        return tuple(_float(who, item) for item in value)
    return value


def _float(who: str, value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise InvalidRequestError(f"{who} is {shown(value)}; allowed are numbers below 1e300") from None


def _require_finite(who: str, array: Float64) -> None:
    if not np.isfinite(array).all():
        bad = array.ravel()[~np.isfinite(array.ravel())][0]
        raise InvalidRequestError(f"{who} has {bad}; allowed are finite numbers")


def field_types(kind: type[Cost]) -> dict[str, Any]:
    """Return the declared types of a kind's fields, with their annotations.

    Raises:
        InvalidRequestError: one of them names what does not exist.
    """
    known = _TYPES.get(kind)
    if known is None:
        try:
            known = _TYPES[kind] = get_type_hints(kind, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError) as error:
            raise InvalidRequestError(
                f"cost {quoted(kind.name)}: the types of its fields are unknown: {said_by(error)}"
            ) from error
    return known


def _declared(kind: type[Cost]) -> tuple[_Declared, ...]:
    """Return the fields of a kind."""
    known: tuple[_Declared, ...] | None = kind.__dict__.get(_DECLARED)
    if known is None:
        hints = field_types(kind)
        known = tuple(
            _Declared(
                field.name,
                field.name not in ("label", "tolerance"),
                hint,
                _checked_default(hint, field.default),
                takes_arrays(hint),
                takes_floats(hint),
                alternatives(hint),
                length_of_floats(hint),
            )
            for field in fields(kind)
            for hint in (hints.get(field.name, Any),)
        )
        setattr(kind, _DECLARED, known)
    return known


def _checked_default(hint: Any, default: Any) -> Any:
    fixed = default is None or isinstance(default, bool | float | str | tuple)
    if not fixed or not fits(hint, default):
        return _NO_DEFAULT
    numbers = default if isinstance(default, tuple) else (default,)
    exact = all(not isinstance(number, int) or isinstance(number, bool) for number in numbers)
    finite = all(not isinstance(number, float) or math.isfinite(number) for number in numbers)
    return default if exact and finite else _NO_DEFAULT


_NO_DEFAULT = object()
_TYPES: WeakKeyDictionary[type[Cost], dict[str, Any]] = WeakKeyDictionary()


def links_of(robot: RobotModel, cost: Cost, *links: str) -> None:
    """Raise a KinoptError that names the cost if a robot lacks one of some links."""
    for link in links:
        if not isinstance(link, str):
            raise InvalidRequestError(f"cost {cost.title!r}: {shown(link)} is no name of a link")
        try:
            robot.link(link)
        except UnknownLinkError as error:
            error.args = (f"cost {cost.title!r}: {error}",)
            raise


def unit_vector(cost: Cost, name: str, vector: tuple[float, ...]) -> None:
    """Raise InvalidRequestError unless a field is a vector of three numbers that points somewhere."""
    if len(vector) != 3 or not 1e-9 < math.sqrt(sum(x * x for x in vector)) < 1e9:
        raise InvalidRequestError(
            f"cost {cost.title!r}: {name} is {shown(vector)}; allowed are three numbers, not all 0"
        )


def checked_shape(cost: Cost, name: str, array: Float64, shape: tuple[int, ...]) -> None:
    """Raise InvalidRequestError unless an array of a cost has a shape."""
    if array.shape != shape:
        raise InvalidRequestError(
            f"cost {cost.title!r}: {name} has shape {array.shape}; allowed is {shape} here"
        )


def checked_sizes(cost: Cost, components: int) -> None:
    """Raise InvalidRequestError unless a cost has one weight, or one for each component of its residual, and one
    tolerance, or one for each of its magnitudes."""
    if not isinstance(cost.weight, float):
        weights = np.shape(cost.weight)
        if weights not in ((), (components,)):
            raise InvalidRequestError(
                f"cost {cost.title!r}: weight has {weights[0]} numbers; allowed are 1 or {components} here"
            )
    if not isinstance(cost.tolerance, tuple):
        return
    count = cost.num_magnitudes(components)
    if len(cost.tolerance) != count:
        raise InvalidRequestError(
            f"cost {cost.title!r}: tolerance has {len(cost.tolerance)} numbers; allowed are 1 or {count} here"
        )
