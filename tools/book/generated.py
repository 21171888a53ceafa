"""Texts that are made from the sources, by the names that pages call them by."""

from collections.abc import Callable

from book.contents import contents
from book.reference.command_line import command_line
from book.reference.interfaces import interfaces
from book.reference.parameters import parameters
from book.reference.python_api import python_api, python_modules


def _node_names() -> str:
    from book.reference.node_names import node_names  # starts a node: what else is made needs no middleware

    return node_names()


GENERATORS: dict[str, Callable[[], str]] = {
    "command_line": command_line,
    "contents": contents,
    "interfaces": interfaces,
    "node_names": _node_names,
    "parameters": parameters,
    "python_api": python_api,
    "python_modules": python_modules,
}
