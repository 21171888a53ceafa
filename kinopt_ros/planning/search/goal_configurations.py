"""Search of collision-free configurations that reach the goals and waypoints of a problem."""

import time
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.planning.search.search_state import SearchState, Stopped
from kinopt_ros.planning.search.validity import ValidityChecker
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.trajectory import Goal, JointGoal
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.solvers.base import Solver
from kinopt_ros.status import Status
from kinopt_ros.trajectory.timing import nearest_equivalent
from kinopt_ros.verification.motion import motion_limits

GOALS = "goals"
"""Name of the stage."""
BREAKS = "breaks what is to hold all the way"
"""How a sentence about a configuration that breaks a constraint goes on."""
ALTERNATIVES = 8
"""Configurations of a pose goal that are tried."""
_APART = 0.3
"""Least difference between two configurations of a pose goal, rad or m."""


@dataclass(frozen=True, eq=False)
class GoalConfiguration:
    """A configuration to end at."""

    goal: int
    """Which of the problem's goals it reaches."""
    q: Annotated[Float64, "n"]


class GoalConfigurations:
    """Finds configurations at which motions for one problem may end."""

    def __init__(self, solver: Solver, search_state: SearchState, looks: ValidityChecker) -> None:
        self._solver, self._search_state, self._validity = solver, search_state, looks
        self._problem = search_state.problem
        self._continuous = continuous_joints(solver.robot, self._problem.joints)

    def of_goals(self) -> list[GoalConfiguration]:
        """Return configurations that reach goals, the nearest to the start first; ``Stopped`` if there is none."""
        begin = time.perf_counter()
        start = self._problem.start
        ends: list[GoalConfiguration] = []
        refusals: list[Stopped] = []
        for number, goal in enumerate(self._problem.goals):
            self._search_state.go_on(GOALS)
            try:
                ends += [GoalConfiguration(number, q) for q in self._configurations(goal, start, "goal")]
            except Stopped as refusal:
                if refusal.status is Status.PREEMPTED:
                    raise
                refusals.append(refusal)
        self._search_state.spent(GOALS, begin)
        if not ends:
            if len(refusals) == 1:
                raise refusals[0]
            said = "; ".join(f"goal {k}: {refusal.sentence}" for k, refusal in enumerate(refusals[:4]))
            # Whom there was no time for might have been reached.
            late = any(refusal.status is Status.TIMED_OUT for refusal in refusals)
            status = Status.TIMED_OUT if late else refusals[0].status
            raise Stopped(status, f"none of {len(refusals)} goals can be reached: {said}")
        q0 = start[self._problem.variables]
        ends.sort(key=lambda end: float(np.linalg.norm(end.q - q0)))
        return self._in_time(ends)

    def of_waypoints(self) -> list[Annotated[Float64, "n"]]:
        """Return configurations of the waypoints, each near to the one before."""
        near, vias = self._problem.start, []
        for number, waypoint in enumerate(self._problem.waypoints):
            self._search_state.go_on(GOALS)
            q = self._configurations(waypoint, near, f"waypoint {number}")[0]
            vias.append(q)
            near = self._problem.whole(q)
        return vias

    def _in_time(self, ends: list[GoalConfiguration]) -> list[GoalConfiguration]:
        """Return the ends that can be reached within the given duration at the velocity limits."""
        problem, duration = self._problem, self._problem.duration
        if duration is None:
            return ends
        velocity = motion_limits(self._solver.robot, problem).velocity
        q0 = problem.start[problem.variables]
        needed = [float((np.abs(end.q - q0) / velocity).max()) for end in ends]
        if min(needed) > duration:
            raise Stopped(
                Status.PLANNING_FAILED,
                f"a duration of {duration:g} s is too short: at the velocity limits alone it takes {min(needed):.4g} s",
            )
        return [end for end, time_needed in zip(ends, needed, strict=True) if time_needed <= duration]

    def _configurations(
        self, goal: Goal, near: Annotated[Float64, "nq"], what: str
    ) -> list[Annotated[Float64, "n"]]:
        """Return free configurations that reach a goal, the nearest to ``near`` first; at least one, else
        ``Stopped``."""
        problem, variables = self._problem, self._problem.variables
        if isinstance(goal, JointGoal):
            if not self._validity.keeps_constraints(goal.q):
                why = self._validity.breaches(goal.q)
                raise Stopped(Status.GOAL_VIOLATES_PATH_CONSTRAINTS, f"the {what} {BREAKS}{why}")
            q = nearest_equivalent(goal.q, near[variables], self._continuous)
            if not self._validity.is_free(q):
                why = self._validity.collisions(q)
                raise Stopped(Status.GOAL_IN_COLLISION, f"the {what} is in collision{why}")
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
        kept = [row for row in found if self._validity.keeps_constraints(row)]
        if found and not kept:
            why = self._validity.breaches(found[0])
            raise Stopped(
                Status.GOAL_VIOLATES_PATH_CONSTRAINTS, f"the {what}, where it was reached, {BREAKS}{why}"
            )
        free = [row for row in kept if self._validity.is_free(row)]
        if not free and found:
            # None of those that came easily: look for free ones.
            result = self._solver.solve_ik(
                replace(asked, num_solutions=1, scene=problem.scene, clearance=problem.clearance)
            )
            free = [row for row in result.q[0] if np.isfinite(row).all()]
        if not free:
            raise Stopped(
                Status(int(result.status[0])), f"the {what} cannot be reached: {result.messages[0]}"
            )
        return [nearest_equivalent(row, near[variables], self._continuous) for row in free]
