"""Commands of `kinopt`, from the parser that reads them."""

import argparse
from collections.abc import Iterator

from book.reference.markdown import cell, code, table
from kinopt_ros.cli import command_parser


def command_line() -> str:
    """Return usage and arguments of every command."""
    return "\n".join(text for _, parser in _commands(command_parser()) for text in _described(parser))


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield name, below
                yield from _commands(below)


def _described(parser: argparse.ArgumentParser) -> Iterator[str]:
    deeper = "#" * (1 + len(parser.prog.split()) - 1)
    yield f"{deeper} {parser.prog}\n"
    if parser.description:
        yield f"{cell(parser.description)}\n"
    rows = [_row(action, parser) for action in parser._actions if not _left_out(action)]
    if rows:
        yield table(("argument", "default", "what"), rows)


def _left_out(action: argparse.Action) -> bool:
    return (
        isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
        or action.help == argparse.SUPPRESS
    )


def _row(action: argparse.Action, parser: argparse.ArgumentParser) -> tuple[str, str, str]:
    formatter = parser._get_formatter()
    given = formatter._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    names = action.option_strings or [""]
    # (0 is a default, though it equals False.)
    none = action.default is False or action.default in (None, argparse.SUPPRESS, [], ())
    default = "" if none else str(action.default)
    what = formatter._expand_help(action) if action.help else ""
    return code(f"{', '.join(names)} {given}".strip()), code(default), cell(what)
