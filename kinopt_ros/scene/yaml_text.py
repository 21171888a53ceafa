"""YAML as scenes are written in: no name twice, no aliases, tags or merging, plain numbers; all else is refused."""

from collections.abc import Collection, Hashable
from typing import Any

import yaml

from kinopt_ros.errors import InvalidShapeError, cut, quoted, shown


def parsed(text: str) -> Any:
    """What a YAML text says.

    Raises:
        InvalidShapeError: no YAML, a name twice in one mapping (which would silently drop the first), or an alias.
    """
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError, ValueError, ArithmeticError) as error:
        sentence = (
            " ".join(str(error).split()) if not isinstance(error, RecursionError) else "nested too deeply"
        )
        raise InvalidShapeError(f"it cannot be read as YAML: {cut(sentence, 300)}") from None


def mapping(
    given: Any, what: str, keys: Collection[str] | None = None, required: Collection[str] = ()
) -> Any:
    """``given`` as a mapping from names, of ``keys`` only and with all of ``required``; nothing is an empty one.

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
    """``given`` as a list; nothing is an empty one. Raises InvalidShapeError if it is something else."""
    if given is None:
        return []
    if not isinstance(given, list):
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is a list")
    return given


def text(given: Any, what: str) -> str:
    """``given`` as text. Raises InvalidShapeError if it is something else."""
    if not isinstance(given, str):
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is text")
    return given


def number(given: Any, what: str) -> float:
    """``given`` as a number. Raises InvalidShapeError if it is something else."""
    if isinstance(given, bool) or not isinstance(given, float | int):
        raise InvalidShapeError(
            f"{what} is {shown(given)}; allowed is a number (YAML wants 1.0e-3, not 1e-3)"
        )
    try:
        return float(given)
    except OverflowError:
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed is a number below 1e308") from None


def numbers(given: Any, what: str, count: int) -> list[float]:
    """``given`` as a list of so many numbers. Raises InvalidShapeError if it is something else."""
    if not isinstance(given, list) or len(given) != count:
        raise InvalidShapeError(f"{what} is {shown(given)}; allowed are {count} numbers")
    return [number(value, what) for value in given]


_DEEPEST = 50
"""Brackets within brackets; PyYAML takes time with the square of their number: 20 s for 10,000."""


class _Loader(yaml.SafeLoader):
    """Refuses aliases, of which a short text could make gigabytes, tags (!!name), and names that are given twice or
    merged into others (<<)."""

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:
        if self.flow_level >= _DEEPEST:
            mark = self.get_mark()
            raise yaml.scanner.ScannerError(None, None, "it is nested too deeply", mark)
        super().fetch_flow_collection_start(TokenClass)

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases (*name) are not allowed", mark)
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.tag is not None:
            raise yaml.composer.ComposerError(
                None, None, f"tags ({event.tag}) are not allowed", event.start_mark
            )
        return super().compose_node(parent, index)

    def construct_scalar(self, node: Any) -> Any:
        said = super().construct_scalar(node)
        if isinstance(said, str) and any("\ud800" <= letter <= "\udfff" for letter in said):
            raise yaml.constructor.ConstructorError(
                None, None, "half a character (\\ud800 to \\udfff) is not allowed", node.start_mark
            )
        return said

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        names: set[str] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, "merging (<<) is not allowed", key.start_mark
                )
            name = str(key.value)
            if name in names:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{quoted(name)} is given twice", key.start_mark
                )
            names.add(name)
        return super().construct_mapping(node, deep)
