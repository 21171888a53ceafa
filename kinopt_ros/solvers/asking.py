"""Work that needs a plugin's answers on its way, but no plugin: it yields problems and is sent candidates."""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.solvers.result import IkCandidates

R = TypeVar("R")
Asking: TypeAlias = Generator[IkProblem, IkCandidates, R]
"""Steps that end with R. Errors of the plugin are raised where they ask."""
