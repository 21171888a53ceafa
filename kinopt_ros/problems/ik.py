"""What is asked of an inverse-kinematics solver: B independent requests of the same structure."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, frozen

POSITION_TOLERANCE = 1e-4
"""Default position tolerance, m."""
ORIENTATION_TOLERANCE = 1e-3
"""Default orientation tolerance, rad (geodesic angle)."""


@dataclass(frozen=True, eq=False)
class PoseTarget:
    """Poses that one link shall reach, one per request."""

    link: str
    T_base_target: Annotated[Float64, "B 4 4"]
    """Target pose of the link in the problem's base link. The array is taken over: it becomes read-only."""
    position_tolerance: float = POSITION_TOLERANCE
    """Largest accepted distance, m."""
    orientation_tolerance: float = ORIENTATION_TOLERANCE
    """Largest accepted geodesic angle, rad."""

    def __post_init__(self) -> None:
        frozen(self.T_base_target)


@dataclass(frozen=True, eq=False)
class IkProblem:
    """B independent requests: bring one or more links to poses by moving some joints.

    Build it with ``ik_problem``, which fills in what follows from the robot and checks everything.
    """

    targets: tuple[PoseTarget, ...]
    base_link: str
    """Link in whose frame the targets are given. It may itself move."""
    joints: tuple[str, ...]
    """Names of the joints to solve for; every other joint is held at ``state``."""
    variables: Annotated[np.ndarray, "n"]
    """Indices in the robot's q of the variables of ``joints``, in that order: the columns of an answer."""
    state: Annotated[Float64, "nq"]
    """A configuration of the whole robot: values of the held joints, and the first seed."""
    seeds: Annotated[Float64, "B S n"]
    """More start values, tried after ``state`` and before the solver's own; S may be 0."""
    num_solutions: int = 1
    """K, how many distinct solutions are wanted per request."""
    deadline: float | None = None
    """Value of time.monotonic() after which no new attempt is started; None: the solver's own effort."""
    random_seed: int = 0
    """Same problem, same random seed, same solver: same answer."""

    def __post_init__(self) -> None:
        for array in (self.variables, self.state, self.seeds):
            frozen(array)

    @property
    def batch_size(self) -> int:
        """B, the number of independent requests."""
        return len(self.targets[0].T_base_target)
