"""Strict reader of YAML for scenes: no name twice, no aliases, tags or merging, plain numbers."""

import re
from collections.abc import Collection, Iterator
from typing import Any

import yaml

from kinopt_ros.errors import InvalidShapeError, cut, quoted, shown

LARGEST_TEXT = 4 * 2**20
"""Longest text, characters; reading that many takes seconds."""
_DEEPEST = 100
_LONGEST_NUMBER = 300
_PARSER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


def parsed(text: str, plain_exponents: bool = False) -> Any:
    """Parse a YAML text.

    Args:
        text: the text.
        plain_exponents: whether 1e-3 is a number, as in YAML 1.2, where YAML 1.1 wants 1.0e-3.

    Raises:
        InvalidShapeError: no YAML, a name twice in one mapping (which would silently drop the first), an alias, or a
            text that is too long or nested too deeply.
    """
    if not isinstance(text, str):
        raise InvalidShapeError(f"it is {shown(text)}; allowed is text")
    if len(text) > LARGEST_TEXT:
        raise InvalidShapeError(f"it has {len(text)} characters; at most {LARGEST_TEXT} are read")
    try:
        return _document(yaml.parse(text, _PARSER), _WithExponents() if plain_exponents else _Scalars())
    except (yaml.YAMLError, ValueError) as error:
        sentence = " ".join(str(error).split())
        raise InvalidShapeError(f"it cannot be read as YAML: {cut(sentence, 300)}") from None


def mapping(
    given: Any, what: str, keys: Collection[str] | None = None, required: Collection[str] = ()
) -> Any:
    """Return ``given`` as a mapping from names, of ``keys`` only and with all of ``required``; nothing is an empty one.

    Raises:
        InvalidShapeError: it is something else.
    """
    given = {} if given is None else given
    if not isinstance(given, dict) or not all(isinstance(key, str) for key in given):
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is a mapping from names")
    unknown = [key for key in given if keys is not None and key not in keys]
    missing = [key for key in required if key not in given]
    if unknown:
        raise InvalidShapeError(f"{what} has {quoted(unknown[0])}; allowed are {', '.join(keys or ())}")
    if missing:
        raise InvalidShapeError(f"{what} has no {missing[0]}")
    return given


def sequence(given: Any, what: str) -> list[Any]:
    """Return ``given`` as a list; nothing is an empty one. Raises InvalidShapeError if it is something else."""
    if given is None:
        return []
    if not isinstance(given, list):
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is a list")
    return given


def text(given: Any, what: str) -> str:
    """Return ``given`` as text. Raises InvalidShapeError if it is something else."""
    if not isinstance(given, str):
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is text")
    return given


def number(given: Any, what: str) -> float:
    """Return ``given`` as a number. Raises InvalidShapeError if it is something else."""
    if isinstance(given, bool) or not isinstance(given, float | int):
        raise InvalidShapeError(
            f"{what} is {shown(given)}; allowed is a number (YAML wants 1.0e-3, not 1e-3)"
        )
    try:
        return float(given)
    except OverflowError:
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is a number below 1e308") from None


def numbers(given: Any, what: str, count: int) -> list[float]:
    """Return ``given`` as a list of so many numbers. Raises InvalidShapeError if it is something else."""
    if not isinstance(given, list) or len(given) != count:
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed are {count} numbers")
    return [number(value, what) for value in given]


class _Scalars(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """Numbers, dates and words of YAML 1.1."""

    def __init__(self) -> None:
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    def value(self, event: yaml.ScalarEvent) -> Any:
        """Return the value of a scalar without a tag."""
        tag = self.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        if tag == "tag:yaml.org,2002:str":
            if any("\ud800" <= letter <= "\udfff" for letter in event.value):
                raise _refusal(event, "half a character (\\ud800 to \\udfff) is not allowed")
            return event.value
        if len(event.value) > _LONGEST_NUMBER:
            raise _refusal(event, f"a number of {len(event.value)} characters is not allowed")
        if tag == "tag:yaml.org,2002:merge":
            raise _refusal(event, "merging (<<) is not allowed")
        node = yaml.ScalarNode(tag, event.value)
        try:
            return self.construct_object(node)
        except (ValueError, OverflowError) as error:  # a date that is none
            raise _refusal(event, f"{quoted(event.value)} is not usable: {error}") from None
        finally:
            self.constructed_objects.clear()


class _WithExponents(_Scalars):
    """Numbers such as 1e-3, too."""


_WithExponents.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9][0-9]*(\.[0-9]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def _document(events: Iterator[Any], scalars: _Scalars) -> Any:
    """Builds plain values from events: the loaders of PyYAML follow aliases, of which a short text could make
    gigabytes, and are ten times as slow."""
    documents: list[Any] = []
    open_nodes: list[_Open] = []
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise _refusal(event, "aliases (*name) are not allowed")
        if isinstance(event, yaml.ScalarEvent | yaml.SequenceStartEvent | yaml.MappingStartEvent):
            if event.tag is not None:
                raise _refusal(event, f"tags ({event.tag[:100]}) are not allowed")
            if isinstance(event, yaml.ScalarEvent):
                _put(event, scalars.value(event), open_nodes, documents)
            elif len(open_nodes) >= _DEEPEST:
                raise _refusal(event, "it is nested too deeply")
            else:
                open_nodes.append(_Open([] if isinstance(event, yaml.SequenceStartEvent) else {}))
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            _put(event, open_nodes.pop().value, open_nodes, documents)
        elif isinstance(event, yaml.DocumentStartEvent) and documents:
            raise _refusal(event, "a second document (---) is not allowed")
    return documents[0] if documents else None


class _Open:
    """A list or a mapping whose end has not been read yet."""

    def __init__(self, value: list[Any] | dict[Any, Any]) -> None:
        self.value = value
        self.names: set[str] = set()
        self.keys: list[Any] = []
        """The key whose value comes next, if there is one."""


def _put(event: Any, value: Any, open_nodes: list[_Open], documents: list[Any]) -> None:
    """Put a value where it belongs."""
    if not open_nodes:
        documents.append(value)
        return
    place = open_nodes[-1]
    if isinstance(place.value, list):
        place.value.append(value)
    elif place.keys:
        place.value[place.keys.pop()] = value
    elif isinstance(value, list | dict):
        raise _refusal(event, "a list or a mapping as a name is not allowed")
    else:
        name = str(event.value)
        if name in place.names or value in place.value:  # 1 and 0x1 are the same
            raise _refusal(event, f"{quoted(name)} is given twice")
        place.names.add(name)
        place.keys.append(value)


def _refusal(event: Any, sentence: str) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, sentence, event.start_mark)
