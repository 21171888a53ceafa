"""The names of `import kinopt_ros`, by the room that they come from, as directives of Sphinx's autodoc."""

import inspect
from importlib import import_module

from kinopt_ros import public

ROOMS = {
    "robot": "Robots",
    "problems": "What is asked",
    "solvers": "Solvers and their answers",
    "planning": "Motions",
    "trajectory": "Trajectories",
    "objectives": "Objectives",
    "scene": "The scene",
    "verification": "Checks",
    "kinematics": "Kinematics",
    "status": "Outcomes",
    "errors": "Errors",
}
"""Titles by rooms of the package, in the order in which they are shown."""
DIFFERENTIABLE = "kinopt_ros.differentiable"


def python_api() -> str:
    """Return sections of directives; every public name is in one."""
    names: dict[str, list[str]] = {room: [] for room in ROOMS}
    for name in public.__all__:
        names[_room(getattr(public, name))].append(name)
    parts = [
        _section(title, "kinopt_ros.public", names[room]) for room, title in ROOMS.items() if names[room]
    ]
    differentiable = import_module(DIFFERENTIABLE)
    parts.append(
        _section("With gradients: kinopt_ros.differentiable", DIFFERENTIABLE, differentiable.__all__)
    )
    return "\n".join(parts)


def _room(thing: object) -> str:
    module = getattr(thing, "__module__", None) or type(thing).__module__
    return module.split(".")[1]


def _section(title: str, module: str, names: list[str]) -> str:
    directives = [_directive(module, name) for name in names]
    return f"## {title}\n\n```{{eval-rst}}\n{''.join(directives)}```\n"


def _directive(module: str, name: str) -> str:
    thing = getattr(import_module(module), name)
    if inspect.isclass(thing):
        return f".. autoclass:: {module}.{name}\n   :members:\n\n"
    if inspect.isroutine(thing):
        return f".. autofunction:: {module}.{name}\n\n"
    return f".. py:data:: {module}.{name}\n   :type: {type(thing).__name__}\n\n"
