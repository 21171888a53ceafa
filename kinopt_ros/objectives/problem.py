"""Objective problem: B independent requests of one structure, each for one configuration or a trajectory."""

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Immutable, Int64, frozen, taken_over
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, shown
from kinopt_ros.kinematics.tangent import difference, directions, free_directions, moved
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.problems.chains import default_group
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene

MOST_POINTS = 512
"""Most points of a trajectory."""
MOST_VARIABLES = 1024
"""Most directions times points: the last stage factorizes a dense matrix of so many rows at every step. With 1024
that takes 0.02 s, and it grows with the cube."""
DEFAULT_STARTS = 16
"""Random starts of the search, besides the state and the seeds."""
RUGGED_STARTS = 128
"""The same for one configuration and a rugged cost that is weighed (``Cost.rugged``)."""
MORE_STARTS = 128
"""Further ones of a configuration of which something does not hold after the default number. Of a thousand that can be
met, one is not met from 17 starts."""


@dataclass(frozen=True, eq=False)
class ObjectiveProblem(Immutable):
    """What is asked. Build it with ``objective_problem``, which fills in what follows from the robot and checks it."""

    objectives: tuple[Objective, ...]
    """B objectives of one structure: they differ in numbers only."""
    joints: tuple[str, ...]
    """Joints that move; all others are held at ``state``."""
    free: Annotated[Bool, "nv"]
    """Directions that move (``kinematics/tangent.py``)."""
    state: Annotated[Float64, "B nq"]
    """Per request a configuration of the whole robot: values of what is held, and the first start."""
    seeds: Annotated[Float64, "B S T nq"]
    """More starts, tried before random ones; S may be 0."""
    num_points: int = 1
    """T, number of points; 1 for a configuration."""
    dt: float = 0.1
    """Time between neighbouring points, s."""
    num_starts: int = DEFAULT_STARTS
    """Random starts where neither state nor seeds lead to an answer."""
    more_starts: int = 0
    """Further random starts, which ``planning.objectives.solve_objective`` makes for a configuration of which something
    does not hold after those. A solver that is asked by itself makes none of them."""
    scene: Scene | None = None
    """Scene that the answer shall be free of collisions with, besides the robot itself; None: not checked."""
    clearance: float = 0.0
    """Least distance, m, of bodies that must not touch; counts with a scene only."""
    deadline: float | None = None
    """Value of time.monotonic() after which no new attempt is started; None: the solver's own effort."""
    random_seed: int = 0

    def __post_init__(self) -> None:
        taken_over(self, "free", "state", "seeds")

    @property
    def batch_size(self) -> int:
        """B, the number of independent requests."""
        return len(self.objectives)

    @property
    def objective(self) -> Objective:
        """The first objective, whose structure all have."""
        return self.objectives[0]

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline


def objective_problem(
    robot: RobotModel,
    objective: Objective | Iterable[Objective],
    *,
    group: str | None = None,
    joints: Sequence[str] | None = None,
    locked: Sequence[str] = (),
    state: Annotated[Float64, "nq"] | Annotated[Float64, "B nq"] | None = None,
    seeds: Annotated[Float64, "S T nq"] | Annotated[Float64, "B S T nq"] | None = None,
    num_points: int = 1,
    dt: float = 0.1,
    num_starts: int | None = None,
    scene: Scene | None = None,
    clearance: float = 0.0,
    deadline: float | None = None,
    random_seed: int = 0,
) -> ObjectiveProblem:
    """Build an objective problem.

    Args:
        robot: the robot.
        objective: one, or B of one structure.
        group: joint group to move; the default group if neither this nor ``joints`` is given.
        joints: joints to move, instead of a group's.
        locked: directions, or joints, that do not move all the same: ``base/theta``.
        state: configuration of the whole robot, (nq,) or (B, nq), rad or m; the default configuration if None.
        seeds: starts, (S, T, nq) or (B, S, T, nq); what is held is taken from ``state``.
        num_points: T, points of a trajectory; 1 for a configuration.
        dt: time between points, s.
        num_starts: random starts at most; None: 16, or 128 for one configuration where manipulability is weighed, and
            128 more by ``solve_objective`` for a configuration of which something does not hold after those.
        scene: what not to collide with; None: collisions are not checked.
        clearance: least distance of bodies, m, with a scene.
        deadline: value of time.monotonic().
        random_seed: equal problems with equal seeds get equal answers.

    Raises:
        KinoptError: what does not fit, named.
    """
    objectives = _given(objective, scene)
    _check_objectives(robot, objectives, num_points)
    if joints is not None and group is not None:
        raise InvalidRequestError("give group or joints, not both")
    if joints is None:
        joints = (default_group(robot) if group is None else robot.group(group)).joints
    B = len(objectives)
    moving = _names("joints", joints)
    free, count = _free(robot, moving, _names("locked", locked))
    if not count * num_points <= MOST_VARIABLES:
        raise InvalidRequestError(
            f"{count} directions at {num_points} points are more than {MOST_VARIABLES} variables"
        )
    starts = _default_starts(objectives[0], num_points) if num_starts is None else num_starts
    _check_numbers(dt, clearance, starts, deadline, random_seed)
    states = np.empty((B, robot.nq))
    if state is None:
        states[:] = robot.default_q
    else:
        q = _as_array("state", state)
        _check_states(robot, "state", q, ((robot.nq,), (B, robot.nq)))
        states[:] = q
    states = _of_length_1(robot, states)
    known = np.empty((B, 0, num_points, robot.nq))
    if seeds is not None:
        known = _as_array("seeds", seeds)
        if known.ndim == 3:
            known = np.broadcast_to(known, (B, *known.shape))
        _check_states(
            robot, "seeds", known, ((B, known.shape[1] if known.ndim > 1 else 0, num_points, robot.nq),)
        )
    if known.size:  # what is held is the state's
        held_at = states[:, None, None]
        steps = np.where(free, difference(directions(robot), held_at, known), 0.0)
        known = moved(directions(robot), held_at, steps)
    return ObjectiveProblem(
        objectives,
        moving,
        free,
        states,
        known,
        num_points,
        float(dt),
        starts,
        MORE_STARTS if num_starts is None and num_points == 1 else 0,
        scene,
        float(clearance),
        deadline,
        random_seed,
    )


def with_objectives(
    robot: RobotModel, problem: ObjectiveProblem, objective: Objective | Iterable[Objective]
) -> ObjectiveProblem:
    """Return a problem with other objectives of its structure, as for the next targets.

    Costs that stand in those of before, too, are not checked again.

    Args:
        robot: the robot that the problem is of.
        problem: as ``objective_problem`` makes it.
        objective: one, or as many as the problem has.

    Raises:
        KinoptError: what does not fit, named.
    """
    objectives = _given(objective, problem.scene)
    if len(objectives) != problem.batch_size:
        raise InvalidRequestError(
            f"{len(objectives)} objectives are given; allowed are {problem.batch_size}, as many as the problem has"
        )
    _check_objectives(robot, objectives, problem.num_points, problem.objectives)
    copy = object.__new__(ObjectiveProblem)  # all else was checked, and never changes
    copy.__dict__.update(problem.__dict__)
    object.__setattr__(copy, "objectives", objectives)
    return copy


def _given(objective: Objective | Iterable[Objective], scene: Scene | None) -> tuple[Objective, ...]:
    """Return objectives with what they need of a scene."""
    objectives = (objective,) if isinstance(objective, Objective) else tuple(objective)
    if scene is None:
        return objectives
    return tuple([one.in_scene(scene) if isinstance(one, Objective) else one for one in objectives])


@remembered
def _free(
    robot: RobotModel, joints: tuple[str, ...], locked: tuple[str, ...]
) -> tuple[Annotated[Bool, "nv"], int]:
    """Return the directions that move, and how many they are."""
    free = free_directions(robot, joints, locked)
    frozen(free)
    return free, int(np.count_nonzero(free))


def _names(what: str, given: Sequence[str]) -> tuple[str, ...]:
    names = tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise InvalidRequestError(f"{what} is {shown(list(names))}; allowed are names")
    return names


def rows_of_objectives(problem: ObjectiveProblem, requests: Annotated[Int64, "R"]) -> ObjectiveProblem:
    """Return the problem of some of its requests."""
    return replace(
        problem,
        objectives=tuple(problem.objectives[b] for b in requests.tolist()),
        state=problem.state[requests],
        seeds=problem.seeds[requests],
    )


def _check_objectives(
    robot: RobotModel,
    objectives: tuple[Objective, ...],
    num_points: int,
    checked: tuple[Objective, ...] = (),
) -> None:
    """Raise a KinoptError for what does not fit. Of ``checked``, as many or none, all was checked before."""
    if not objectives or not all(isinstance(item, Objective) for item in objectives):
        raise InvalidRequestError("objective must be an Objective, or several")
    if isinstance(num_points, bool) or not isinstance(num_points, int) or not 1 <= num_points <= MOST_POINTS:
        raise InvalidRequestError(f"num_points is {num_points!r}; allowed is 1 to {MOST_POINTS}")
    first = (checked or objectives)[0].structure
    for number, objective in enumerate(objectives):
        if objective.structure is not first and objective.structure != first:
            other = "those of the problem" if checked else "the first"
            raise InvalidRequestError(
                f"objective {number} of a batch has another structure than {other}: only numbers may differ"
            )
        objective.check(robot, num_points, checked[number] if checked else None)


def _default_starts(objective: Objective, num_points: int) -> int:
    rugged = any(cost.rugged and not cost.holds for cost in objective.costs)
    return RUGGED_STARTS if rugged and num_points == 1 else DEFAULT_STARTS


def _check_numbers(
    dt: float, clearance: float, num_starts: int, deadline: float | None, random_seed: int
) -> None:
    for name, value, least in (("dt", dt, 1e-6), ("clearance", clearance, 0.0)):
        if type(value) is float and least <= value < 1e6:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e6:
            raise InvalidRequestError(f"{name} is {shown(value)}; allowed is {least} to 1e6")
    if isinstance(num_starts, bool) or not isinstance(num_starts, int) or not 0 <= num_starts <= 1024:
        raise InvalidRequestError(f"num_starts is {shown(num_starts)}; allowed is 0 to 1024")
    if deadline is not None and (
        isinstance(deadline, bool) or not isinstance(deadline, int | float) or math.isnan(deadline)
    ):
        raise InvalidRequestError(f"deadline is {shown(deadline)}; allowed is a value of time.monotonic()")
    if isinstance(random_seed, bool) or not isinstance(random_seed, int) or random_seed < 0:
        raise InvalidRequestError(f"random_seed is {shown(random_seed)}; allowed are whole numbers from 0 on")


def _as_array(name: str, given: object) -> Float64:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidStateError(f"{name} is {shown(given)}; allowed are numbers") from None


def _check_states(robot: RobotModel, name: str, q: Float64, shapes: tuple[tuple[int, ...], ...]) -> None:
    if q.shape not in shapes:
        allowed = " or ".join(str(shape) for shape in shapes)
        raise InvalidStateError(f"{name} has shape {q.shape}; allowed is {allowed}")
    if q.size and not (np.abs(q) < 1e9).all():
        raise InvalidStateError(f"{name} has values that are not finite, or beyond 1e9 rad or m")
    for start, _ in directions(robot).quaternions:
        if q.size and (np.linalg.norm(q[..., start : start + 4], axis=-1) < 1e-6).any():
            raise InvalidStateError(f"{name} has a quaternion of length 0 at {robot.variable_names[start]}")


def _of_length_1(robot: RobotModel, q: Annotated[Float64, "B nq"]) -> Annotated[Float64, "B nq"]:
    for start, _ in directions(robot).quaternions:
        q[:, start : start + 4] /= np.linalg.norm(q[:, start : start + 4], axis=1, keepdims=True)
    return q
