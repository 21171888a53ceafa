"""A kind of constraint that nobody knew before: no part of the way from a problem to an answer may skip it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import pytest

from kinopt_ros.array import Bool, Float64
from kinopt_ros.errors import InvalidGoalError, KinoptError, UnsupportedFeatureError
from kinopt_ros.planning.problem_files import problem_of
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.constraints import every
from kinopt_ros.problems.constraints.base import Breach, FromFile, PathConstraint
from kinopt_ros.problems.constraints.rows import ConstraintRow
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.paths import PathRequest
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.trajectory.timing import point_to_point
from kinopt_ros.verification.motion import ALONG, keeps_constraints, motion_limits, verify_motion


class SlackRow(ConstraintRow):
    """A row that no solver knows."""

    words: ClassVar[str] = "slack"


@dataclass(frozen=True)
class FirstJointBelow(PathConstraint):
    """The robot's first variable stays below a value."""

    key: ClassVar[str] = "first_joint_below"
    rows_used: ClassVar[frozenset[type[ConstraintRow]]] = frozenset({SlackRow})
    most: float

    def check(self, robot: RobotModel) -> None:
        if not np.isfinite(self.most):
            raise InvalidGoalError(f"most is {self.most}; allowed is a finite number")

    def kept(
        self, robot: RobotModel, base_link: str, full: Annotated[Float64, "M nq"]
    ) -> Annotated[Bool, "M"]:
        return np.asarray(full[:, 0] <= self.most)

    def breach(
        self, robot: RobotModel, base_link: str, full: Float64, times: Annotated[Float64, "M"]
    ) -> Breach | None:
        k = int(np.argmax(full[:, 0]))
        value = float(full[k, 0])
        return (
            None
            if value <= self.most
            else Breach("the first joint goes too far", float(times[k]), value, self.most)
        )

    def rows(self, robot: RobotModel, base_link: str, ends: Float64) -> tuple[ConstraintRow, ...]:
        return (SlackRow(),)

    @classmethod
    def from_file(cls, said: Mapping[str, Any], place: FromFile) -> Self:
        return cls(float(said[cls.key]))


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return load_robot("panda")


def asked(robot: RobotModel, most: float) -> TrajectoryProblem:
    goal = robot.default_q[:7].copy()
    goal[0] += 0.6
    return trajectory_problem(robot, goal, along=[FirstJointBelow(robot.default_q[0] + most)])


def test_a_kind_that_lacks_a_part_cannot_be_made() -> None:
    for part in ("check", "kept", "breach", "rows", "from_file"):
        whole = dict(vars(FirstJointBelow))
        whole.pop(part)
        lacking = type("Lacking", (PathConstraint,), whole)
        with pytest.raises(TypeError, match=part):
            lacking(1.0)


def test_the_check_of_motions_asks_it(robot: RobotModel) -> None:
    for most, fine in ((1.0, True), (0.5, False)):
        problem = asked(robot, most)
        limits = motion_limits(robot, problem)
        start = problem.start[problem.variables]
        end = start + 0.6 * np.eye(7)[0]
        motion = point_to_point(problem.joints, start, end, limits.velocity, limits.acceleration, limits.jerk)
        report = verify_motion(robot, problem, motion, 0).report
        assert report.ok is fine
        assert any(made.startswith(ALONG) for made in report.checks)
        if not fine:
            (violation,) = report.violations
            assert violation.check == ALONG
            assert violation.message == f"after {violation.time:.3f} s the first joint goes too far"
            assert violation.value == pytest.approx(robot.default_q[0] + 0.6)
        ends = problem.whole(np.stack([start, end]))
        assert keeps_constraints(robot, problem, ends).tolist() == [True, fine]


def test_a_solver_without_its_rows_refuses_it_by_name(robot: RobotModel) -> None:
    solver = create_solver("cpu", robot)
    problem = asked(robot, 1.0)
    with pytest.raises(UnsupportedFeatureError, match="solver cpu does not support slack"):
        plan_trajectory(solver, problem)
    path = np.linspace(problem.start[:7], problem.start[:7] + 0.6 * np.eye(7)[0], problem.num_points)
    request = PathRequest(path[None], np.zeros(1, np.int64), np.zeros((1, 0), np.int64), 0.0)
    with pytest.raises(UnsupportedFeatureError, match="slack"):
        solver.optimize_trajectory(problem, request)


def test_a_line_in_the_list_is_all_that_problem_files_need(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"goals": [{"state": "ready"}], "along": [{"first_joint_below": 1.5}]}
    with pytest.raises(KinoptError, match=r"along\[0\].*'first_joint_below'.*upright, straight"):
        problem_of(given, Path())
    monkeypatch.setattr(every, "CONSTRAINTS", (*every.CONSTRAINTS, FirstJointBelow))
    assert problem_of(given, Path()).problem.along == (FirstJointBelow(1.5),)


def test_its_own_check_is_made_and_what_is_no_constraint_is_refused(robot: RobotModel) -> None:
    with pytest.raises(InvalidGoalError, match="most is nan"):
        trajectory_problem(robot, robot.default_q[:7], along=[FirstJointBelow(float("nan"))])
    with pytest.raises(KinoptError, match="allowed are PoseAlong and StraightLine"):
        trajectory_problem(robot, robot.default_q[:7], along=["straight"])  # type: ignore[list-item]
