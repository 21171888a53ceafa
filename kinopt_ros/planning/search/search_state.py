"""State of a search for a motion: whether it is to go on, what time it has spent, and what was best so far."""

import time
from dataclasses import replace

from kinopt_ros.pauses import give_way
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.solvers.paths import Progress, Report
from kinopt_ros.solvers.trajectory_gate import TIMING
from kinopt_ros.solvers.trajectory_result import PathAttempt, TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.verification.verify import ON_THE_WAY

WITHOUT_DEADLINE = 20.0
"""Time after which a problem without a deadline is given up, s."""
CANCELLED = "the search was cancelled"


class Stopped(Exception):
    """The search is to end. This is a reason to unwind, not an error."""

    def __init__(self, status: Status, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class SearchState:
    """Deadline, progress and best attempt of the search for one problem."""

    def __init__(self, problem: TrajectoryProblem, report: Report | None) -> None:
        self._begin = time.perf_counter()
        self._report, self._given_deadline = report, problem.deadline is not None
        self.deadline = time.monotonic() + WITHOUT_DEADLINE if problem.deadline is None else problem.deadline
        """Value of time.monotonic() at which the search ends."""
        self.problem = replace(problem, deadline=self.deadline)
        """The problem, with that deadline."""
        self.best: PathAttempt | None = None
        self.iterations = self.attempts = 0
        self._stage = "start"
        self.stages: dict[str, float] = {}
        """Seconds by stage."""

    @property
    def too_short(self) -> bool:
        """Whether the given duration is too short even for the best path so far: detours would take longer still."""
        late = self.best is not None and self.best.violation.check == TIMING
        return late and self.problem.duration is not None

    def told(self, stage: str) -> bool:
        """Give way to what is urgent, and report the stage; False if the search is cancelled."""
        give_way()
        if self._report is None:
            return True
        return self._report(Progress(stage, self.iterations, (), float("nan")))

    def go_on(self, stage: str) -> None:
        """Raise ``Stopped`` if the search is to end."""
        self._stage = stage
        if not self.told(stage):
            raise Stopped(Status.PREEMPTED, CANCELLED)
        if self.problem.late:
            kind = "the deadline came" if self._given_deadline else f"{WITHOUT_DEADLINE:g} s passed"
            raise Stopped(Status.TIMED_OUT, f"{kind} before a motion was found{self._so_far()}")

    def pause(self) -> None:
        """Raise ``Stopped`` if the search is to end; called in the middle of a stage."""
        self.go_on(self._stage)

    def spent(self, stage: str, begin: float) -> None:
        """Count the time since ``begin``, a value of time.perf_counter()."""
        self.add(stage, time.perf_counter() - begin)

    def add(self, stage: str, seconds: float) -> None:
        """Count so much time."""
        self.stages[stage] = self.stages.get(stage, 0.0) + seconds

    def remember(self, attempt: PathAttempt) -> None:
        """Keep the first attempt that only touches something, else the first."""
        if self.best is None or (_only_touches(attempt) and not _only_touches(self.best)):
            self.best = attempt

    def why(self) -> str:
        """Return why all attempts were in vain."""
        return f"{self.attempts} paths were optimized, none is an answer{self._so_far()}"

    def counted(self, result: TrajectoryResult) -> TrajectoryResult:
        """Return a result with what was spent."""
        scene = self.problem.scene
        return replace(
            result,
            scene_version=None if scene is None else scene.version,
            iterations=self.iterations,
            attempts=self.attempts,
            stages=self.stages,
            solve_time=time.perf_counter() - self._begin,
        )

    def _so_far(self) -> str:
        return "" if self.best is None else f"; of the best attempt: {self.best.violation}"


def _only_touches(attempt: PathAttempt) -> bool:
    """Check whether an attempt only touches something, which is nearer to an answer than breaking another rule."""
    return attempt.violation.check == ON_THE_WAY
