"""Types that the package's functions were compiled for, in this process.

To numba an array that is read-only is of a type of its own. Whatever prepares a node compiles a function for one of
both, and a request, or the watch of a motion, that comes with the other one waits for the compiler.
"""

import re
import sys
from collections import Counter
from typing import Any

PACKAGE = "kinopt_ros"
_READ_ONLY = (re.compile(r"\breadonly (?=array)"), ""), (re.compile(r", True, aligned="), ", False, aligned=")


def compiled_twice() -> list[str]:
    """Return functions that were compiled for types which differ in nothing but in what is read-only."""
    return sorted(
        _name(function)
        for function in _functions()
        if max(Counter(map(_writable, function.overloads)).values(), default=0) > 1
    )


def entry_points() -> set[str]:
    """Return the functions that Python calls, and are compiled, with their types."""
    return {
        f"{_name(function)} {signature}"
        for function in _functions()
        for signature in function.overloads
        if function.targetoptions.get("no_cpython_wrapper") is None
    }


def _functions() -> set[Any]:
    if "numba" not in sys.modules:
        return set()
    from numba.core.dispatcher import Dispatcher

    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == PACKAGE]
    return {
        value for module in modules for value in list(vars(module).values()) if isinstance(value, Dispatcher)
    }


def _writable(signature: Any) -> str:
    said = str(signature)
    for pattern, instead in _READ_ONLY:
        said = pattern.sub(instead, said)
    return said


def _name(function: Any) -> str:
    return f"{function.py_func.__module__}.{function.py_func.__qualname__}"
