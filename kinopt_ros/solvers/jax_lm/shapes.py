"""Shapes that a compiled program depends on, as values that can be compared: no JAX here."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kinopt_ros.kinematics.pose_errors import Free
from kinopt_ros.solvers.jax_lm.chain import ChainShape


@dataclass(frozen=True)
class RowShape:
    """Errors that a target is judged by."""

    free_position: Free = (False, False, False)
    free_orientation: Free = (False, False, False)
    per_axis_position: bool = False
    """Whether tolerances bound each component; else they bound the length of the error."""
    per_axis_orientation: bool = False
    slack: bool = False
    """Whether errors inside the slack do not count: loose tolerances are then used, and not only kept."""
    autodiff: bool = False
    """Whether the Jacobian comes from forward-mode differentiation instead of the joint axes."""

    @property
    def rows(self) -> tuple[int, ...]:
        """Rows that exist, out of six."""
        free = (*self.free_position, *self.free_orientation)
        return tuple(i for i in range(6) if not free[i])


@dataclass(frozen=True)
class BeamShape:
    """Sizes of a beam."""

    num_seeds: int = 64
    keep: int = 4
    init_steps: int = 6
    total_steps: int = 16
    """Most steps of the starts that are kept, ``init_steps`` included."""
    polish_steps: int = 8
    """Additional steps, if need be: they end once every target has a lane that meets its aims."""

    @property
    def more_steps(self) -> int:
        """Most steps of the kept starts after the first ``init_steps``."""
        return self.total_steps - self.init_steps + self.polish_steps


@dataclass(frozen=True)
class ProgramKey:
    """Key of a compiled program: all that it is compiled for."""

    chain: ChainShape
    rows: RowShape
    size: BeamShape
    targets: int

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:  # takes a while for some hundred numbers
        return hash((self.chain, self.rows, self.size, self.targets))


@lru_cache(maxsize=1024)
def program_key(chain: ChainShape, rows: RowShape, size: BeamShape, targets: int) -> ProgramKey:
    """Return a key, the same object for equal arguments, since it is looked up with every request."""
    return ProgramKey(chain, rows, size, targets)


@dataclass(frozen=True)
class Width:
    """A beam, and numbers of targets that there are programs for, ascending."""

    size: BeamShape
    targets: tuple[int, ...]
    worth: float = 0.25
    """Share of a program for many targets that must be in use for it to be chosen."""

    def portions(self, count: int) -> Iterator[int]:
        """Yield programs that cover a number of targets."""
        while count > 0:
            fits = [size for size in self.targets if self.worth * size < count] or [self.targets[0]]
            yield fits[-1]
            count -= fits[-1]


@dataclass(frozen=True, eq=False)
class Effort:
    """Beams and rounds that are spent on a request."""

    beam: Width
    escalation: Width
    rounds: int
    """Most rounds of escalation."""
    autodiff: bool
