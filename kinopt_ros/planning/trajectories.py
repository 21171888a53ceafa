"""Motions to goals around what is in the way: goals become configurations, paths to begin from are tried one after the
other, each is optimized, timed and verified, and mended where it still touches something.

The order: the straight line as it is; the line to the nearest goal configuration, optimized; a rough path that the
solver finds by trees in its own model, which may overlap a little, as it is larger than the robot; lines to other goal
configurations; paths through configurations of earlier answers; more rough paths; a path of a sampling
planner that looks at the shapes themselves, if its library is installed; more rough paths and paths through random
configurations. A rough path that cannot be improved, but is free itself, will do.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.sampling import sampling_range
from kinopt_ros.planning.path_memory import PathMemory
from kinopt_ros.planning.sampling import missing_sampler, sampled_path
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.trajectory import Goal, JointGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_validation import check_trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.clear import check_ready
from kinopt_ros.solvers.collision_gate import named_contacts
from kinopt_ros.solvers.paths import PathRequest, Progress, Report
from kinopt_ros.solvers.trajectory_gate import TIMING, Gate
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.timing import nearest_equivalent
from kinopt_ros.verification.collision import check_collisions
from kinopt_ros.verification.motion import ON_THE_WAY, keeps_poses, motion_limits
from kinopt_ros.verification.sweep import free_segment
from kinopt_ros.verification.trajectory import Violation

GOALS, ROUGH, SAMPLING = "goals", "rough paths", "sampling"
"""Names of stages, besides those of solvers.trajectory_gate."""
ALTERNATIVES = 8
"""Configurations of a pose goal that are looked at."""
_APART = 0.3
"""rad or m; configurations of a pose goal differ by more than this."""
GLANCES = (0.5, 0.25, 0.75)
"""Shares of a straight line where it is looked at first."""
LINES = 3
"""Goal configurations, the nearest first, to which straight lines are tried."""
MARGIN, MORE = 0.01, 0.02
"""m; paths keep the first off shapes where they can, and so much more where they were found to touch something, if the
solver's model says that they do not."""
ROUGHLY = ((6_000, (-0.01, -0.02)), (15_000, (-0.02, -0.01, -0.02)), (60_000, (-0.01, -0.02)))
"""Rounds of rough paths: how much is looked for each, and their margins, m."""
THROUGH_RANDOM = 24
"""Paths through random configurations."""
REMEMBERED = 3
"""Paths through configurations of earlier answers."""
_DRAWN, _LOT = 16, 2
"""Paths through a random configuration, drawn near to the line and anywhere; the best of both are tried."""
_SPREADS = np.array([0.4, 0.8, 1.2, 1.6])
"""rad or m, how far those near to the line are from its middle."""
_BREAKS = "breaks what is to hold all the way"
SAMPLING_TIME = 2.0
"""s for the sampling planner, at most."""
WITHOUT_DEADLINE = 20.0
"""s after which a problem without a deadline is given up."""


def plan_trajectory(
    solver: Solver,
    problem: TrajectoryProblem,
    report: Report | None = None,
    memory: PathMemory | None = None,
) -> TrajectoryResult:
    """A verified motion from the start to one of the goals, or why there is none.

    Args:
        solver: a plugin that optimizes trajectories, configured for the robot.
        problem: what is asked.
        report: told where the search is, at least every 50 ms; when it returns False, the search ends.
        memory: of earlier answers, to begin from; this one is added. With None the answer depends on nothing else.

    Raises:
        KinoptError: the problem is malformed, or the solver cannot honour it.
    """
    robot = solver.robot
    solver.check_optimizes()
    check_trajectory_problem(problem, robot)
    if problem.deadline is None:
        solver.warm_up()
    elif problem.scene is not None:
        check_ready(robot)
    return _Search(robot, solver, problem, report, memory).run()


@dataclass(frozen=True, eq=False)
class _End:
    """A configuration to end at."""

    goal: int
    q: Annotated[Float64, "n"]


@dataclass(frozen=True, eq=False)
class _Start:
    """A path to begin from."""

    path: Annotated[Float64, "T n"]
    goal: int
    passed: Annotated[Int64, "W"]
    corners: Annotated[Float64, "K n"] | None = None
    """Of a path that will do if it cannot be improved, but is free."""
    is_free: bool = False
    """Whether the lines between these corners were checked already."""


class _Stopped(Exception):
    """The search is to end: a reason to unwind, not an error."""

    def __init__(self, status: Status, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class _Search:
    """For one problem."""

    def __init__(
        self,
        robot: RobotModel,
        solver: Solver,
        problem: TrajectoryProblem,
        report: Report | None,
        memory: PathMemory | None,
    ) -> None:
        self._robot, self._solver, self._report, self._memory = robot, solver, report, memory
        self._begin = time.perf_counter()
        self._given_deadline = problem.deadline is not None
        if problem.deadline is None:
            problem = replace(problem, deadline=time.monotonic() + WITHOUT_DEADLINE)
        self._problem = problem
        self._q0 = problem.start[problem.variables]
        self._gate = Gate(robot, problem, solver.name)
        self._best: PathAttempt | None = None
        self._iterations = self._attempts = 0
        self._rng = np.random.default_rng(problem.random_seed)
        self._continuous = continuous_joints(robot, problem.joints)

    def run(self) -> TrajectoryResult:
        """The answer."""
        try:
            self._check_start()
            found = self._find(self._ends())
        except _Stopped as stop:
            return self._failed(stop.status, stop.sentence)
        if found is None:
            return self._failed(Status.PLANNING_FAILED, self._why())
        return self._finished(found)

    # What the search begins and ends with.

    def _check_start(self) -> None:
        problem = self._problem
        if not keeps_poses(self._robot, problem, problem.start[None])[0]:
            raise _Stopped(Status.START_STATE_INVALID, f"the start {_BREAKS}")
        if problem.scene is None:
            return
        begin = time.perf_counter()
        if not self._is_free(self._q0):
            why = self._collisions(self._q0)
            raise _Stopped(Status.START_STATE_IN_COLLISION, f"the start is in collision{why}")
        self._spent(GOALS, begin)

    def _ends(self) -> list[_End]:
        """Configurations that reach goals and are free, the nearest first."""
        begin = time.perf_counter()
        ends: list[_End] = []
        refusals: list[_Stopped] = []
        for number, goal in enumerate(self._problem.goals):
            self._go_on(GOALS)
            try:
                ends += [_End(number, q) for q in self._configurations(goal, self._problem.start, "goal")]
            except _Stopped as refusal:
                refusals.append(refusal)
        self._spent(GOALS, begin)
        if not ends:
            if len(refusals) == 1:
                raise refusals[0]
            said = "; ".join(f"goal {k}: {refusal.sentence}" for k, refusal in enumerate(refusals[:4]))
            raise _Stopped(refusals[0].status, f"none of {len(refusals)} goals can be reached: {said}")
        ends.sort(key=lambda end: float(np.linalg.norm(end.q - self._q0)))
        return self._in_time(ends)

    def _in_time(self, ends: list[_End]) -> list[_End]:
        """Those that the given duration may be enough for."""
        duration = self._problem.duration
        if duration is None:
            return ends
        velocity = motion_limits(self._robot, self._problem).velocity
        needed = [float((np.abs(end.q - self._q0) / velocity).max()) for end in ends]
        if min(needed) > duration:
            raise _Stopped(
                Status.PLANNING_FAILED,
                f"a duration of {duration:g} s is too short: at the velocity limits alone it takes {min(needed):.4g} s",
            )
        return [end for end, time_needed in zip(ends, needed, strict=True) if time_needed <= duration]

    def _configurations(
        self, goal: Goal, near: Annotated[Float64, "nq"], what: str
    ) -> list[Annotated[Float64, "n"]]:
        """Free configurations that reach a goal, the nearest to ``near`` first; at least one, else ``_Stopped``."""
        problem, variables = self._problem, self._problem.variables
        if isinstance(goal, JointGoal):
            if not self._keeps_poses(goal.q):
                raise _Stopped(Status.INVALID_GOAL_CONSTRAINTS, f"the {what} {_BREAKS}")
            q = nearest_equivalent(goal.q, near[variables], self._continuous)
            if not self._is_free(q):
                raise _Stopped(Status.GOAL_IN_COLLISION, f"the {what} is in collision{self._collisions(q)}")
            return [q]
        asked = IkProblem(
            targets=goal.targets,
            base_link=problem.base_link,
            joints=problem.joints,
            variables=variables,
            state=near[None].copy(),
            seeds=np.zeros((1, 0, len(variables))),
            num_solutions=ALTERNATIVES,
            min_separation=_APART,
            deadline=problem.deadline,
            random_seed=problem.random_seed,
        )
        result = self._solver.solve_ik(asked)
        found = [row for row in result.q[0] if np.isfinite(row).all()]
        free = [row for row in found if self._is_free(row)]
        if not free and found:
            # None of those that came easily: look for free ones.
            result = self._solver.solve_ik(
                replace(asked, num_solutions=1, scene=problem.scene, clearance=problem.clearance)
            )
            free = [row for row in result.q[0] if np.isfinite(row).all()]
        if not free:
            raise _Stopped(
                Status(int(result.status[0])), f"the {what} cannot be reached: {result.messages[0]}"
            )
        return [nearest_equivalent(row, near[variables], self._continuous) for row in free]

    def _vias(self, ends: list[_End]) -> list[Annotated[Float64, "n"]]:
        """Configurations of the waypoints, each near to the one before."""
        near, vias = self._problem.start, []
        for number, waypoint in enumerate(self._problem.waypoints):
            self._go_on(GOALS)
            q = self._configurations(waypoint, near, f"waypoint {number}")[0]
            vias.append(q)
            near = self._problem.whole(q)
        return vias

    # The search.

    def _find(self, ends: list[_End]) -> TrajectoryResult | None:
        problem = self._problem
        vias = self._vias(ends)
        # A line is the best there is, unless something else is wanted, too.
        if not (vias or problem.along or len(problem.paths) or problem.weights.rest > 0.0):
            for end in ends[:LINES]:
                self._go_on("straight line")
                if self._may_be_free(self._q0, end.q) and self._line_is_free(self._q0, end.q):
                    found = self._pass(np.stack([self._q0, end.q]), end.goal)
                    if found is not None:
                        return found
        for start in self._starts(ends, vias):
            found = self._improve(start)
            corners = start.corners
            if found is None and corners is not None and (start.is_free or self._lines_are_free(corners)):
                found = self._pass(corners, start.goal)
            if found is not None:
                return found
        return None

    def _starts(self, ends: list[_End], vias: list[Annotated[Float64, "n"]]) -> Iterator[_Start]:
        """Paths to begin from."""
        problem = self._problem
        for path in problem.paths:
            nearest = min(ends, key=lambda end: float(np.linalg.norm(end.q - path[-1])))
            if problem.waypoints:
                yield self._through([self._q0, *vias, nearest.q], nearest.goal, len(vias))
            else:
                bent = path + np.linspace(1.0, 0.0, len(path))[:, None] * (self._q0 - path[0])
                bent += np.linspace(0.0, 1.0, len(path))[:, None] * (nearest.q - bent[-1])
                bent[0], bent[-1] = self._q0, nearest.q
                yield _Start(bent, nearest.goal, np.zeros(0, dtype=np.int64))
        searched = not (problem.scene is None or vias or problem.along)
        for k, end in enumerate(ends[:LINES]):
            yield self._through([self._q0, *vias, end.q], end.goal, len(vias))
            if k == 0 and searched and not self._too_short():
                yield from self._rough(ends, 0)
        if self._too_short():
            return
        if not searched:
            # Nothing is in the way, or it is said where to go: other ends are what is left to try first.
            for end in ends[LINES:]:
                yield self._through([self._q0, *vias, end.q], end.goal, len(vias))
        if problem.scene is None or vias:
            return
        yield from self._through_remembered(ends)
        if searched:
            yield from self._rough(ends, 1)
            sampled = self._sampled(ends)
            if sampled is not None:
                yield sampled
            yield from self._rough(ends, 2)
        yield from self._through_random(ends, THROUGH_RANDOM)
        if searched:
            for end in ends[LINES:]:
                yield self._through([self._q0, end.q], end.goal, 0)

    def _too_short(self) -> bool:
        """Whether the given duration does not even do for the best path so far: detours would take longer still."""
        late = self._best is not None and self._best.violation.check == TIMING
        return late and self._problem.duration is not None

    def _rough(self, ends: list[_End], number: int) -> Iterator[_Start]:
        """Paths that are free in the solver's model."""
        configurations = np.array([end.q for end in ends])
        looks, margins = ROUGHLY[number]
        for k, margin in enumerate(margins):
            begin = time.perf_counter()
            seed = self._problem.random_seed + 8 * number + k
            corners = self._solver.rough_path(
                self._problem,
                configurations,
                margin,
                looks,
                seed,
                lambda: not self._problem.late and self._told(ROUGH),
            )
            self._spent(ROUGH, begin)
            self._go_on(ROUGH)
            if corners is not None:
                yield replace(self._along(corners, ends), corners=corners)

    def _along(self, corners: Annotated[Float64, "K n"], ends: list[_End]) -> _Start:
        """From corners that end at one of the ends, some of which are left out if there are too many."""
        reached = min(ends, key=lambda end: float(np.abs(end.q - corners[-1]).max()))
        count = min(len(corners), self._problem.num_points)
        some = np.linspace(0, len(corners) - 1, count).round().astype(np.int64)
        return self._through(list(corners[some]), reached.goal, 0)

    def _through_remembered(self, ends: list[_End]) -> Iterator[_Start]:
        problem = self._problem
        if self._memory is None:
            return
        for end in ends[:1]:
            whole = self._problem.whole(end.q)
            for q in self._memory.near(problem.start, whole, problem.variables, REMEMBERED):
                yield self._through([self._q0, q, end.q], end.goal, 0)

    def _through_random(self, ends: list[_End], count: int) -> Iterator[_Start]:
        """Through random configurations, the most hopeful of each lot by the solver's score."""
        problem = self._problem
        low, high = (limit[problem.variables] for limit in sampling_range(self._robot))
        for lot in range(count // _LOT):
            self._go_on("random starts")
            end = ends[lot % min(len(ends), LINES)]
            middle = 0.5 * (self._q0 + end.q)
            spread = np.repeat(_SPREADS, _DRAWN // len(_SPREADS))[:, None]
            around = middle + spread * self._rng.normal(size=(len(spread), len(low)))
            around = np.clip(around, np.minimum(low, middle), np.maximum(high, middle))
            anywhere = self._rng.uniform(low, high, (_DRAWN, len(low)))
            for drawn in (around, anywhere):
                starts = [self._through([self._q0, q, end.q], end.goal, 0) for q in drawn]
                scores: list[float] = []
                for start in starts:  # one by one: with many points each takes milliseconds
                    self._go_on("random starts")
                    scores += self._solver.path_scores(problem, start.path[None], MARGIN).tolist()
                yield starts[int(np.argmin(scores))]

    def _sampled(self, ends: list[_End]) -> _Start | None:
        """A path of the sampling planner, if it is installed and finds one."""
        problem = self._problem
        if missing_sampler():
            return None
        begin = time.perf_counter()
        self._go_on(SAMPLING)
        assert problem.deadline is not None
        corners = sampled_path(
            self._robot,
            problem,
            np.array([end.q for end in ends]),
            self._line_is_free,
            min(problem.deadline, time.monotonic() + SAMPLING_TIME),
            1 + problem.random_seed % (2**31 - 1),
            lambda: not self._told(SAMPLING),
        )
        self._spent(SAMPLING, begin)
        self._go_on(SAMPLING)
        if corners is None:
            return None
        return replace(self._along(corners, ends), corners=corners, is_free=True)

    def _through(self, corners: list[Annotated[Float64, "n"]], goal: int, waypoints: int) -> _Start:
        """Points along straight lines between corners; the first corners after the start are the waypoints."""
        path, at = along_lines(np.array(corners), self._problem.num_points)
        return _Start(path, goal, at[1 : 1 + waypoints])

    def _improve(self, start: _Start) -> TrajectoryResult | None:
        """Optimize, time and verify, with more margin where the motion still touches something."""
        path = start.path
        for margin in (MARGIN, MARGIN + MORE):
            self._go_on("optimization")
            rough = start.corners is not None or margin > MARGIN
            request = PathRequest(path[None], np.array([start.goal]), start.passed[None], margin, rough)
            result = self._solver.optimize_trajectory(self._problem, request, self._report)
            self._iterations += result.iterations
            self._attempts += result.attempts
            for stage, seconds in result.stages.items():
                self._gate.stages[stage] = self._gate.stages.get(stage, 0.0) + seconds
            if result.success:
                return result
            assert result.attempt is not None
            self._remember(result.attempt)
            self._go_on("optimization")
            violation = result.attempt.violation
            deep = result.attempt.clearance < self._problem.clearance
            if violation.check != ON_THE_WAY or self._problem.scene is None or deep:
                return None
            path = result.attempt.path
        return None

    def _pass(self, path: Annotated[Float64, "T n"], goal: int) -> TrajectoryResult | None:
        """Time and verify a path as it is."""
        found = self._gate.passed(path, goal, corners=len(path) > 2)
        if isinstance(found, TrajectoryResult):
            return found
        self._remember(found)
        return None

    # Small things.

    def _may_be_free(self, a: Annotated[Float64, "n"], b: Annotated[Float64, "n"]) -> bool:
        """Whether some places on a line are: most lines that are not are known for a tenth of the time then."""
        return all(self._is_free(a + share * (b - a)) for share in GLANCES)

    def _line_is_free(self, a: Annotated[Float64, "n"], b: Annotated[Float64, "n"]) -> bool:
        scene = self._problem.scene
        if scene is None:
            return True
        return free_segment(
            self._robot, scene, self._problem.whole(a), self._problem.whole(b), self._problem.clearance
        )

    def _lines_are_free(self, corners: Annotated[Float64, "K n"]) -> bool:
        begin = time.perf_counter()
        free = True
        for a, b in pairwise(corners):
            self._go_on(ROUGH)
            free = self._line_is_free(a, b)
            if not free:
                break
        self._spent(ROUGH, begin)
        return free

    def _keeps_poses(self, q: Annotated[Float64, "n"]) -> bool:
        return not self._problem.along or bool(
            keeps_poses(self._robot, self._problem, self._problem.whole(q)[None])[0]
        )

    def _is_free(self, q: Annotated[Float64, "n"]) -> bool:
        problem = self._problem
        if problem.scene is None:
            return True
        whole = self._problem.whole(q)[None]
        return bool(
            check_collisions(self._robot, problem.scene, whole, problem.clearance, contacts=False).free[0]
        )

    def _collisions(self, q: Annotated[Float64, "n"]) -> str:
        """The end of a sentence that says what is in collision."""
        problem = self._problem
        assert problem.scene is not None
        wanted = f" (a clearance of {problem.clearance:g} m is wanted)" if problem.clearance > 0.0 else ""
        report = check_collisions(self._robot, problem.scene, self._problem.whole(q)[None], problem.clearance)
        return f"{wanted}: {named_contacts(report.contacts[0])}"

    def _remember(self, attempt: PathAttempt) -> None:
        """Keep the first attempt that only touches something, else the first."""
        if self._best is None or _badness(attempt.violation) < _badness(self._best.violation):
            self._best = attempt

    def _told(self, stage: str) -> bool:
        if self._report is None:
            return True
        return self._report(Progress(stage, self._iterations, (), float("nan")))

    def _go_on(self, stage: str) -> None:
        """Raise ``_Stopped`` if the search is to end."""
        if not self._told(stage):
            raise _Stopped(Status.PREEMPTED, "the search was cancelled")
        if self._problem.late:
            kind = "the deadline came" if self._given_deadline else f"{WITHOUT_DEADLINE:g} s passed"
            raise _Stopped(Status.TIMED_OUT, f"{kind} before a motion was found{self._so_far()}")

    def _so_far(self) -> str:
        return "" if self._best is None else f"; of the best attempt: {self._best.violation}"

    def _why(self) -> str:
        tried = f"{self._attempts} paths were optimized, none is an answer"
        return tried + self._so_far()

    def _spent(self, stage: str, begin: float) -> None:
        self._gate.stages[stage] = self._gate.stages.get(stage, 0.0) + time.perf_counter() - begin

    def _failed(self, status: Status, sentence: str) -> TrajectoryResult:
        return self._with_counts(
            TrajectoryResult(status, sentence, None, self._solver.name, attempt=self._best)
        )

    def _finished(self, found: TrajectoryResult) -> TrajectoryResult:
        problem = self._problem
        if self._memory is not None and self._attempts and found.trajectory is not None:
            position = found.trajectory.position
            self._memory.add(problem.whole(position))
        return self._with_counts(replace(found, attempt=None))

    def _with_counts(self, result: TrajectoryResult) -> TrajectoryResult:
        scene = self._problem.scene
        return replace(
            result,
            scene_version=None if scene is None else scene.version,
            iterations=self._iterations,
            attempts=self._attempts,
            stages=self._gate.stages,
            solve_time=time.perf_counter() - self._begin,
        )


def along_lines(
    corners: Annotated[Float64, "C n"], num_points: int
) -> tuple[Annotated[Float64, "T n"], Annotated[Int64, "C"]]:
    """Points along straight lines between corners, about evenly spaced, and which of them are the corners.

    Raises:
        KinoptError: more corners than points.
    """
    C = len(corners)
    if not 2 <= C <= num_points:
        raise KinoptError(
            f"{C} corners do not fit on a path of {num_points} points; allowed are 2 to {num_points}"
        )
    lengths = np.linalg.norm(np.diff(corners, axis=0), axis=1)
    total = float(lengths.sum())
    share = lengths / total if total > 0.0 else np.full(C - 1, 1.0 / (C - 1))
    at = np.rint(np.concatenate([[0.0], np.cumsum(share)]) * (num_points - 1)).astype(np.int64)
    for k in range(1, C):  # every corner has a point of its own
        at[k] = max(at[k], at[k - 1] + 1)
    at[-1] = num_points - 1
    for k in range(C - 2, 0, -1):
        at[k] = min(at[k], at[k + 1] - 1)
    places = np.arange(num_points)
    path = np.stack([np.interp(places, at, column) for column in corners.T], axis=-1)
    path[at] = corners
    return path, at


def _badness(violation: Violation) -> float:
    """Motions that touch something are nearer to an answer than those that break something else."""
    return 0.0 if violation.check == ON_THE_WAY else 1.0
