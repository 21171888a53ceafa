"""What is asked of a trajectory optimizer: a motion from a start to one of several goals, around what is in the way."""

import time
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Float64, Immutable, taken_over
from kinopt_ros.pauses import OutOfTime
from kinopt_ros.problems.ik import GRACE, PoseTarget
from kinopt_ros.scene.scene import Scene

NUM_POINTS = 64
"""Default number of points of a path, start and goal included."""


@dataclass(frozen=True, eq=False)
class JointGoal(Immutable):
    """A configuration to reach exactly."""

    q: Annotated[Float64, "n"]
    """Values of the problem's variables, rad or m."""

    def __post_init__(self) -> None:
        taken_over(self, "q")


@dataclass(frozen=True, eq=False)
class PoseGoal:
    """Poses of one or more links to reach together, each a ``PoseTarget`` of one pose (B = 1)."""

    targets: tuple[PoseTarget, ...]


Goal: TypeAlias = JointGoal | PoseGoal


@dataclass(frozen=True, eq=False)
class PoseAlong:
    """A link, or a tool fixed to it, stays within the tolerances of one pose (B = 1) all the way.

    A full cup: no bound on the position, a small one on the angles about the axes that tilt it, none about the
    vertical one, ``PoseTarget(link, T[None], math.inf, (0.1, 0.1, math.inf))``.
    """

    target: PoseTarget


@dataclass(frozen=True, eq=False)
class StraightLine(Immutable):
    """A point of a link moves along the straight line between where it is at the start and at the goal."""

    link: str
    tolerance: float
    """Largest distance from the line, m."""
    p_link: Annotated[Float64, "3"] = field(default_factory=lambda: np.zeros(3))
    """The point, in the link's frame, m."""

    def __post_init__(self) -> None:
        taken_over(self, "p_link")


Along: TypeAlias = PoseAlong | StraightLine


@dataclass(frozen=True)
class CostWeights:
    """How much the terms of the cost count against each other, at least 0; 0 leaves a term out.

    Derivatives are by the point's place on the path in [0, 1], by five-point stencils (PyRoki, section IV), squared and
    averaged over the path. Limits, collisions and constraints are no costs: a motion that breaks them is no answer.
    """

    smoothness: float = 1.0
    """Of differences of neighbouring points: a short path."""
    velocity: float = 0.0
    """Of the first derivative beyond what the duration allows; counts with a given duration only."""
    acceleration: float = 0.1
    """Of the second derivative."""
    jerk: float = 0.01
    """Of the third derivative."""
    rest: float = 0.0
    """Of the distance from the rest posture."""


@dataclass(frozen=True, eq=False)
class TrajectoryProblem(Immutable):
    """Move some joints from where they are to one of the goals.

    Build it with ``trajectory_problem``, which fills in what follows from the robot and checks everything.
    """

    joints: tuple[str, ...]
    """Joints that move, in the order of the trajectory; each active, with one variable."""
    variables: Annotated[np.ndarray, "n"]
    """Their indices in the robot's q: the columns of paths."""
    start: Annotated[Float64, "nq"]
    """Configuration of the whole robot; what is not among ``variables`` stays."""
    start_velocity: Annotated[Float64, "nq"]
    """rad/s or m/s; 0 for what is not among ``variables``."""
    goals: tuple[Goal, ...]
    """Any one of them."""
    base_link: str
    """In whose frame poses of goals and ``along`` are given."""
    waypoints: tuple[Goal, ...] = ()
    """To be passed on the way, in this order."""
    along: tuple[Along, ...] = ()
    """What holds all the way."""
    scene: Scene | None = None
    """The motion shall be free of collisions of the robot with itself and with this; None: that is not looked at."""
    clearance: float = 0.0
    """Least distance, m, of bodies that must not touch, besides the scene's padding; counts with a scene only."""
    velocity_scaling: float = 0.1
    """Share of the velocity limits in (0, 1]."""
    acceleration_scaling: float = 0.1
    """Share of the acceleration limits in (0, 1]."""
    duration: float | None = None
    """s; None: as short as the limits allow."""
    rest: Annotated[Float64, "n"] | None = None
    """Rest posture, rad or m; None: none."""
    weights: CostWeights = CostWeights()
    num_points: int = NUM_POINTS
    """T, points of a path."""
    paths: Annotated[Float64, "S T n"] = field(default_factory=lambda: np.zeros((0, NUM_POINTS, 0)))
    """Paths to begin from, tried before the solver's own; S may be 0."""
    deadline: float | None = None
    """Value of time.monotonic() after which no new attempt is started; None: the solver's own effort."""
    random_seed: int = 0
    """Same problem, same random seed, same solver: same answer."""
    notes: tuple[str, ...] = ()
    """What was given and changed, a sentence each; answers repeat it."""

    def __post_init__(self) -> None:
        taken_over(self, "variables", "start", "start_velocity", "paths", "rest")

    def whole(self, q: Annotated[Float64, "... n"]) -> Annotated[Float64, "... nq"]:
        """Configurations of the whole robot: of the variables that move at ``q``, of the others where they start."""
        full = np.empty((*q.shape[:-1], len(self.start)))
        full[...] = self.start
        full[..., self.variables] = q
        return full

    def pause(self) -> None:
        """For long work: raise ``OutOfTime`` when the deadline has passed."""
        if self.late:
            raise OutOfTime("the deadline came")

    def hurry(self) -> None:
        """Likewise for work that is worth ``GRACE`` more."""
        if self.deadline is not None and time.monotonic() >= self.deadline + GRACE:
            raise OutOfTime("the deadline came")

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline
