"""Trajectory problem: a motion from a start to one of several goals, around what is in the way."""

import time
from dataclasses import dataclass, field, fields
from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Float64, Immutable, taken_over, with_arrays
from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.pauses import OutOfTime, give_way
from kinopt_ros.problems.constraints.base import PathConstraint
from kinopt_ros.problems.ik import GRACE, PoseTarget
from kinopt_ros.scene.scene import Scene

START_TOLERANCE = 1e-3
"""Distance that a start may be outside its limits, rad or m, since sensors are not exact."""
NUM_POINTS, POINTS_TO_GOALS = 64, 32
"""Default numbers of points of a path, start and goal included: in general, and where nothing is asked for but goals.

Of obstacles there is no need for more, as places between points are looked at."""


@dataclass(frozen=True, eq=False)
class JointGoal(Immutable):
    """A configuration to reach exactly."""

    q: Annotated[Float64, "n"]
    """Values of the problem's variables, rad or m."""

    def __post_init__(self) -> None:
        with_arrays(self, InvalidGoalError, "q")


@dataclass(frozen=True, eq=False)
class PoseGoal:
    """Poses of one or more links to reach together, each a ``PoseTarget`` of one pose (B = 1)."""

    targets: tuple[PoseTarget, ...]


Goal: TypeAlias = JointGoal | PoseGoal


_LEAST_ON_LINES = "least on lines"


def _cost(weight: float, *, least_on_lines: bool) -> float:
    """Return the field of a cost's weight, with its default.

    ``least_on_lines`` says whether no path from the start to a goal costs less than the straight line does.
    """
    return field(default=weight, metadata={_LEAST_ON_LINES: least_on_lines})


@dataclass(frozen=True)
class CostWeights:
    """Weights of the terms of the cost against each other, at least 0; 0 leaves a term out.

    Derivatives are by the point's place on the path in [0, 1], by five-point stencils (PyRoki, section IV), squared and
    averaged over the path. Limits, collisions and constraints are no costs: a motion that breaks them is no answer.
    """

    smoothness: float = _cost(1.0, least_on_lines=True)
    """Weight of the squared differences of neighbouring points, which makes the path short."""
    velocity: float = _cost(0.0, least_on_lines=True)
    """Weight of the squared velocity in excess of its limit; counts only if a duration is given."""
    acceleration: float = _cost(0.1, least_on_lines=True)
    """Weight of the squared second derivative."""
    jerk: float = _cost(0.01, least_on_lines=True)
    """Weight of the squared third derivative."""
    rest: float = _cost(0.0, least_on_lines=False)
    """Weight of the squared distance from the rest posture."""

    @property
    def counting(self) -> tuple[str, ...]:
        """Names of the costs that are not left out."""
        return tuple(cost.name for cost in fields(self) if getattr(self, cost.name) > 0.0)

    @property
    def least_on_lines(self) -> bool:
        """Whether nothing costs less than a straight line, by all costs that count.

        A cost that does not say so for itself counts as one that the line does not minimize.
        """
        return all(
            cost.metadata.get(_LEAST_ON_LINES, False)
            for cost in fields(self)
            if getattr(self, cost.name) > 0.0
        )


@dataclass(frozen=True, eq=False)
class TrajectoryProblem(Immutable):
    """Move some joints from where they are to one of the goals.

    Build it with ``trajectory_problem``, which fills in what follows from the robot and checks everything.
    """

    joints: tuple[str, ...]
    """Joints that move, in the order of the trajectory; of planar and floating ones their variables (``base/x``)."""
    variables: Annotated[np.ndarray, "n"]
    """Indices in the robot's q of the joints' variables; columns of paths are in this order."""
    start: Annotated[Float64, "nq"]
    """Configuration of the whole robot; what is not among ``variables`` stays."""
    start_velocity: Annotated[Float64, "nq"]
    """Velocity at the start, rad/s or m/s; 0 for what is not among ``variables``."""
    goals: tuple[Goal, ...]
    """Goals, any one of which is to be reached."""
    base_link: str
    """Link in whose frame poses of goals and ``along`` are given."""
    waypoints: tuple[Goal, ...] = ()
    """Goals to pass on the way, in this order."""
    along: tuple[PathConstraint, ...] = ()
    """Constraints that hold all the way."""
    scene: Scene | None = None
    """Scene that the motion shall be free of collisions with, besides the robot itself; None: collisions are not
    checked."""
    clearance: float = 0.0
    """Least distance, m, of bodies that must not touch, besides the scene's padding; counts with a scene only."""
    velocity_scaling: float = 0.1
    """Share of the velocity limits in (0, 1]."""
    acceleration_scaling: float = 0.1
    """Share of the acceleration limits in (0, 1]."""
    duration: float | None = None
    """Duration of the motion, s; None: as short as the limits allow."""
    rest: Annotated[Float64, "n"] | None = None
    """Rest posture, rad or m; None if there is none."""
    weights: CostWeights = CostWeights()
    num_points: int = NUM_POINTS
    """Number T of points of a path."""
    paths: Annotated[Float64, "S T n"] = field(default_factory=lambda: np.zeros((0, NUM_POINTS, 0)))
    """Paths to begin from, tried before the solver's own; S may be 0."""
    deadline: float | None = None
    """Value of time.monotonic() after which no new attempt is started; None: the solver's own effort."""
    random_seed: int = 0
    """Seed of random numbers; equal problems with equal seeds get equal answers from a solver."""
    start_tolerance: float = START_TOLERANCE
    """Distance that the start may be outside its limits, rad or m; from there joints move inwards only."""
    notes: tuple[str, ...] = ()
    """What was given and changed, a sentence each; answers repeat it."""

    def __post_init__(self) -> None:
        taken_over(self, "variables", "start", "start_velocity", "paths", "rest")

    @property
    def only_goals(self) -> bool:
        """Whether nothing is asked of the way to a goal but limits, distances and costs."""
        return not (self.waypoints or self.along or len(self.paths))

    @property
    def usual_points(self) -> int:
        """Number of points that is used if none is given."""
        return POINTS_TO_GOALS if self.only_goals else NUM_POINTS

    @property
    def least_on_lines(self) -> bool:
        """Whether the straight line to a goal, if it is free, is the best answer there is.

        Not where something is to be passed, or held all the way.
        """
        return self.weights.least_on_lines and not (self.waypoints or self.along)

    def whole(self, q: Annotated[Float64, "... n"]) -> Annotated[Float64, "... nq"]:
        """Return configurations of the whole robot: moving variables from ``q``, the others where they start."""
        full = np.empty((*q.shape[:-1], len(self.start)))
        full[...] = self.start
        full[..., self.variables] = q
        return full

    def pause(self) -> None:
        """Give way to what is urgent, and raise ``OutOfTime`` if the deadline has passed. Long work calls this now and
        then."""
        give_way()
        if self.late:
            raise OutOfTime("the deadline came")

    def hurry(self) -> None:
        """Raise ``OutOfTime`` if the deadline passed more than ``GRACE`` ago. Work that is worth this time calls it."""
        if self.deadline is not None and time.monotonic() >= self.deadline + GRACE:
            raise OutOfTime("the deadline came")

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline
