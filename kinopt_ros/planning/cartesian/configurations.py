"""Configurations that follow poses one after another.

Each is solved for from the one before. One that is too far from it ends the path instead of becoming a jump.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, TypeAlias

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.planning.cartesian.lines import Lines
from kinopt_ros.planning.cartesian.result import PathEnd
from kinopt_ros.planning.cartesian.steps import CartesianSteps
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.problems.preferences.posture import at
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.turns import continuous_joints
from kinopt_ros.robot.variables import joint_named
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.timing import nearest_equivalent

SolveIk: TypeAlias = Callable[[IkProblem], IkResult]

ALTERNATIVES = 8
"""Configurations that are tried where the nearest one is a jump."""


def _slides(robot: RobotModel, name: str) -> bool:
    """Return whether a joint, or a variable of a planar or floating one, is a way and not an angle."""
    joint = joint_named(robot, name)
    if joint.type is JointType.FLOATING:
        return True  # its orientation does not move here
    if joint.type is JointType.PLANAR:
        return robot.variable_index[name] < joint.first_variable + 2
    return joint.type is JointType.PRISMATIC


class Configurations:
    """Configurations of the joints of one request."""

    def __init__(self, robot: RobotModel, solve_ik: SolveIk, asked: IkProblem, steps: CartesianSteps) -> None:
        self.solver = ""
        """Name of the solver that answered last."""
        self._solve_ik, self._asked, self._steps = solve_ik, asked, steps
        self._target = asked.targets[0]
        self._chain = chain_between(robot, asked.base_link, self._target.link)
        self._continuous = continuous_joints(robot, asked.joints)
        slides = [_slides(robot, name) for name in asked.joints]
        self._farthest = np.where(slides, steps.max_prismatic_jump, steps.max_revolute_jump)
        self._search_end = math.inf
        if asked.deadline is not None:  # the rest of the time is for the motion
            now = time.monotonic()
            self._search_end = now + 0.7 * (asked.deadline - now)

    def poses_of(self, q: Annotated[Float64, "K n"]) -> Annotated[Float64, "K 4 4"]:
        """Return poses of the tool in the base link."""
        whole = self.whole(q)
        T = chain_pose(self._chain, whole[:, self._chain.variables])
        return T if self._target.T_link_tool is None else T @ self._target.T_link_tool

    def whole(self, q: Annotated[Float64, "K n"]) -> Annotated[Float64, "K nq"]:
        """Return configurations of the whole robot, the other joints where they are."""
        whole = np.repeat(self._asked.state, len(q), axis=0)
        whole[:, self._asked.variables] = q
        return whole

    def followed(
        self, lines: Lines, q0: Annotated[Float64, "n"]
    ) -> tuple[Annotated[Float64, "K n"], PathEnd | None]:
        """Return configurations after each step, up to the first jump, and why they end there if they do."""
        poses = lines.at(np.arange(lines.count + 1, dtype=np.float64))
        q = [q0]
        for k in range(1, len(poses)):
            if time.monotonic() >= self._search_end:
                return np.array(q), PathEnd(Status.TIMED_OUT, f"the time was up {lines.where(k)}")
            found = self.next_to(q[-1], poses[k])
            if isinstance(found, PathEnd):
                return np.array(q), PathEnd(found.status, f"the path ends {lines.where(k)}: {found.message}")
            q.append(found)
        return np.array(q), None

    def next_to(self, before: Annotated[Float64, "n"], T: Annotated[Float64, "4 4"]) -> Float64 | PathEnd:
        """Find a configuration for a pose, next to the one before."""
        asked = replace(
            self._asked,
            targets=(replace(self._target, T_base_target=T[None].copy()),),
            state=self.whole(before[None]),
        )
        result = self._solve_ik(asked)
        self.solver = result.solver
        if not result.success[0]:
            return PathEnd(Status(int(result.status[0])), result.messages[0])
        q = self._nearest(result.q[0, 0], before)
        if not self._jumps(q, before):
            return q
        try:  # the solver's first one is not the only one
            near = at(before[None].copy())
            several = self._solve_ik(replace(asked, num_solutions=ALTERNATIVES, preference=near))
            for row in several.q[0, : int(several.num_found[0])]:
                other = self._nearest(row, before)
                if not self._jumps(other, before):
                    return other
        except UnsupportedFeatureError:  # then the first one is what there is
            pass
        i = int(np.argmax(np.abs(q - before) / self._farthest))
        return PathEnd(
            Status.PLANNING_FAILED,
            f"joint {self._asked.joints[i]!r} would have to jump by {abs(q[i] - before[i]):.3g}; allowed is "
            f"{self._farthest[i]:g}",
        )

    def without_jumps(
        self, q: Annotated[Float64, "K n"], why: PathEnd | None
    ) -> tuple[Annotated[Float64, "K n"], PathEnd | None]:
        """Return the configurations up to the first step that is too many times longer than the mean step."""
        factor = self._steps.jump_factor
        if factor is None or len(q) < 3:
            return q, why
        ways = np.linalg.norm(np.diff(q, axis=0), axis=1)
        long = np.flatnonzero(ways > factor * ways.mean())
        if not long.size:
            return q, why
        k = int(long[0])
        return q[: k + 1], PathEnd(
            Status.PLANNING_FAILED,
            f"step {k + 1} is {ways[k] / ways.mean():.3g} times as long in joint space as the mean; allowed is "
            f"{factor:g}",
        )

    def _nearest(
        self, q: Annotated[Float64, "n"], before: Annotated[Float64, "n"]
    ) -> Annotated[Float64, "n"]:
        return nearest_equivalent(q, before, self._continuous)

    def _jumps(self, q: Annotated[Float64, "n"], before: Annotated[Float64, "n"]) -> bool:
        return bool((np.abs(q - before) > self._farthest).any())
