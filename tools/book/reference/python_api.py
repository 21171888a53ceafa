"""The names of `import kinopt_ros`, by the room that they come from, as directives of Sphinx's autodoc."""

import inspect
from collections.abc import Mapping
from enum import Enum
from importlib import import_module

from kinopt_ros import public
from kinopt_ros.costs.registry import cost_kind, cost_names

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
FURTHER: dict[str, dict[str, tuple[str, ...]]] = {
    "From its modules": {
        "kinopt_ros.robot.model": ("JointType",),
        "kinopt_ros.robot.states": ("named_configuration",),
        "kinopt_ros.robot.limits": ("apply_joint_limits",),
        "kinopt_ros.robot.moveit_controllers": (
            "controllers_left_out",
            "controllers_parameter",
            "entries_parameter",
        ),
        "kinopt_ros.kinematics.sampling": ("random_configurations",),
        "kinopt_ros.kinematics.se3": ("pose_error", "so3_log", "so3_exp"),
        "kinopt_ros.planning.motion": ("plan_joint_motion",),
        "kinopt_ros.trajectory.interpolation": ("evaluate",),
    },
    "Changes of a scene": {
        "kinopt_ros.scene.changes": (
            *("add", "move", "remove", "clear", "attach", "attach_new", "detach"),
            *("allow", "disallow", "set_padding"),
        ),
    },
    "Shapes": {
        "kinopt_ros.geometry.shapes": (
            *("PlacedShape", "Box", "Sphere", "Cylinder", "Cone", "Capsule", "Plane", "Mesh"),
            *("HeightMap", "PointCloud", "Octomap"),
        ),
    },
    "For a solver of your own": {
        "kinopt_ros.solvers.base": ("Capabilities", "Feature", "Option"),
        "kinopt_ros.solvers.result": ("IkCandidates",),
        "kinopt_ros.conformance.ik": ("IkConformance",),
    },
    "For a cost of your own": {
        "kinopt_ros.costs.base": ("Cost", "links_of", "checked_sizes"),
        "kinopt_ros.costs.point": ("Point",),
    },
}
"""What tutorials and examples import from the package's modules: title, module, names."""
OVERRIDDEN = {
    "Solver": (
        *("_configure", "_solve_ik", "_solve_pool", "_optimize_trajectory"),
        *("_solve_objective", "_prepare_objective"),
    )
}
"""Methods by which a class is completed, though their names begin with an underscore."""
IN_SHORT = ("IkConformance",)
"""Classes whose methods are tests: a program calls none of them."""


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


def python_modules() -> str:
    """Return sections of what is not in ``import kinopt_ros``, and programs, plugins and costs are made of."""
    sections = {**FURTHER, "Costs of an objective": _bundled_costs()}
    return "\n".join(_further(title, modules) for title, modules in sections.items())


def _room(thing: object) -> str:
    module = getattr(thing, "__module__", None) or type(thing).__module__
    return module.split(".")[1]


def _section(title: str, module: str, names: list[str]) -> str:
    return _titled(title, [_directive(module, name) for name in names])


def _further(title: str, modules: Mapping[str, tuple[str, ...]]) -> str:
    directives = []
    for module, names in modules.items():
        directives += [f"From ``{module}``:\n\n", *(_directive(module, name) for name in names)]
    return _titled(title, directives)


def _bundled_costs() -> dict[str, tuple[str, ...]]:
    """Return the kinds of this package, by module; what else is installed has documentation of its own."""
    kinds = [cost_kind(name) for name in cost_names()]
    bundled = [kind for kind in kinds if kind.__module__.startswith("kinopt_ros.")]
    modules = sorted({kind.__module__ for kind in bundled})
    return {
        module: tuple(sorted(kind.__name__ for kind in bundled if kind.__module__ == module))
        for module in modules
    }


def _titled(title: str, directives: list[str]) -> str:
    return f"## {title}\n\n```{{eval-rst}}\n{''.join(directives)}```\n"


def _directive(module: str, name: str) -> str:
    thing = getattr(import_module(module), name)
    if inspect.isclass(thing):
        options = "" if name in IN_SHORT else "   :members:\n"
        if issubclass(thing, Enum):
            options += "   :undoc-members:\n"
        if name in OVERRIDDEN:
            options += f"   :private-members: {', '.join(OVERRIDDEN[name])}\n"
        return f".. autoclass:: {module}.{name}\n{options}\n"
    if inspect.isroutine(thing):
        return f".. autofunction:: {module}.{name}\n\n"
    return f".. py:data:: {module}.{name}\n   :type: {type(thing).__name__}\n\n"
