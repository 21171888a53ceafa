"""Layers of the packages, and what imports what."""

import ast
from functools import cache
from pathlib import Path

import kinopt_ros

PACKAGE = Path(kinopt_ros.__file__).parent

LAYERS = [
    {
        "array",
        "compiler_options",
        "errors",
        "files",
        "interrupts",
        "compiler_notice",
        "freed_memory",
        "numba_cache",
        "numba_notice",
        "pauses",
        "plain_xml",
        "private_files",
        "source_stamp",
        "status",
        "wanted",
    },
    {"geometry"},
    {"robot"},
    {"kinematics"},
    {"differentiable"},
    {"collision", "scene"},
    {"costs", "problems"},
    {"objectives"},
    {"trajectory"},
    {"verification"},
    {"solvers"},
    {"planning", "conformance"},
    {"ros", "viewer", "bench", "public"},
    {"commands", "cli"},
]
"""Layers from the bottom up; a module may import its own layer and those below."""


@cache
def modules() -> list[Path]:
    """All files but the package's own ``__init__.py``."""
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@cache
def imported(path: Path) -> frozenset[str]:
    """Names that a file imports, with those that are imported from modules."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def part_of(path: Path) -> str:
    """The package or module directly below kinopt_ros that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def layer_of(part: str) -> int:
    """Return the number of its layer, from the bottom up."""
    for number, names in enumerate(LAYERS):
        if part in names:
            return number
    raise AssertionError(f"{part} is in no layer: add it to LAYERS and to ARCHITECTURE.md")


def imports_between_parts() -> dict[str, set[str]]:
    """Return which parts each part imports."""
    found: dict[str, set[str]] = {}
    for path in modules():
        parts = (name.split(".") for name in imported(path))
        names = {name[1] for name in parts if name[0] == "kinopt_ros" and len(name) > 1}
        found.setdefault(part_of(path), set()).update(names - {part_of(path)})
    known = set(found)
    return {part: names & known for part, names in found.items()}
