"""Menus of interactive markers: a tree of entries, and what each asks for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from visualization_msgs.msg import MenuEntry


class Action(Enum):
    """What an entry asks for; some go with a word of their own (the name of a state, of a solver)."""

    SOLVE = auto()
    PLAN = auto()
    EXECUTE = auto()
    STOP = auto()
    RANDOM = auto()
    STATE = auto()
    RESET = auto()
    SOLVER = auto()
    MODE = auto()
    AVOID = auto()
    HANDLES = auto()
    REMOVE = auto()


@dataclass(frozen=True)
class Entry:
    """One entry: an action, or a heading with entries below it."""

    title: str
    action: Action | None = None
    word: str = ""
    """What the action is about."""
    checked: bool | None = None
    """Whether its box is ticked; None: it has none."""
    below: tuple["Entry", ...] = ()


Asked = tuple[Action, str]


def menu_of(entries: Sequence[Entry]) -> tuple[list[MenuEntry], dict[int, Asked]]:
    """Return the messages of a menu, and what the entry of each number asks for.

    Numbers count from 1 in the order of the tree, as those of interactive_markers' MenuHandler do; 0 is the top.
    """
    messages: list[MenuEntry] = []
    asked: dict[int, Asked] = {}
    for entry, parent in _placed(entries, 0, iter(range(1, 2**31))):
        number = len(messages) + 1
        box = "" if entry.checked is None else "[x] " if entry.checked else "[ ] "
        messages.append(
            MenuEntry(id=number, parent_id=parent, title=box + entry.title, command_type=MenuEntry.FEEDBACK)
        )
        if entry.action is not None:
            asked[number] = entry.action, entry.word
    return messages, asked


def _placed(entries: Sequence[Entry], parent: int, numbers: Iterator[int]) -> Iterator[tuple[Entry, int]]:
    """Yield all entries of a tree, each with the number of the one above it."""
    for entry in entries:
        own = next(numbers)
        yield entry, parent
        yield from _placed(entry.below, own, numbers)
