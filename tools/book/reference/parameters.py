"""Parameters of the node, from the table that it declares them by, and options of the installed solvers."""

from __future__ import annotations

import json
from typing import Any

from book.reference.markdown import cell, code, table
from kinopt_ros.ros.robot.parameters import SPECS
from kinopt_ros.solvers.registry import list_solvers

_HEAD = ("parameter", "default", "allowed", "what")
_TYPES = {bool: "true, false", int: "whole number", float: "number", str: "text", tuple: "list of names"}
BUNDLED = ("analytic", "cpu", "hjcd", "jax_lm")
"""Plugins of this package; what else is installed has documentation of its own."""


def parameters() -> str:
    """Return tables of all parameters."""
    parts = ["## Of the node\n", table(_HEAD, [_row(spec.name, spec) for spec in SPECS])]
    for info in list_solvers():
        if info.name in BUNDLED:
            parts.append(f"## Of the solver {info.name}\n")
            parts.append(table(_HEAD, [_row(f"{info.name}.{one.name}", one) for one in info.options]))
    return "\n".join(parts)


def _row(name: str, spec: Any) -> tuple[str, ...]:
    default = [] if spec.default == () else spec.default
    what = spec.description + (" Set at the start only." if spec.read_only else "")
    return code(name), code(json.dumps(default)), cell(_allowed(spec)), cell(what)


def _allowed(spec: Any) -> str:
    if spec.choices:
        return ", ".join(spec.choices)
    if spec.minimum is not None and spec.maximum is not None:
        return f"{spec.minimum:g} to {spec.maximum:g}"
    if spec.minimum is not None:
        return f"at least {spec.minimum:g}"
    if spec.maximum is not None:
        return f"at most {spec.maximum:g}"
    return _TYPES[type(spec.default)]
