"""An independent judge of motions: what the controller commands, every millisecond, by Pinocchio and coal.

Shapes are the URDF's, as in ``bench.collision.judge``; the list of pairs to check is all that it shares with the
library. Between two looks at a pair of shapes nothing can happen: each is as far apart as joints can bring it nearer
in that time, or the time is halved, down to single milliseconds, which are looked at one by one.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.collision.judge import CollisionJudge
from kinopt_ros.bench.trajectory.interpolation import Commands, commands
from kinopt_ros.bench.verify.judge import Judge
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.problems.trajectory import JointGoal, PoseGoal, TrajectoryProblem
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

STEP = 1e-3
"""Time between commands, s."""
EXACT = 1e-9
"""Accepted errors: of start and joint goals, rad or m; of the velocity and acceleration at the end, rad/s and
rad/s^2."""
EXCESS = 2e-6
"""Share of velocity, acceleration and jerk limits that rounding may take them beyond."""
SLACK = 1e-4
"""Distance added to what joints can bring a pair nearer, m: only pairs farther apart than that are passed over."""
ASKED = 0.1
"""Distance that joints may bring a pair nearer, m, above which halving the time is cheaper than asking coal."""
_POSE_ROUNDING = 1e-9, 2e-8
_DERIVATIVES = ("position", "velocity", "acceleration", "jerk")
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Violations:
    """How far commands are from what was asked; for comparisons, where nothing is exact."""

    collision: str
    """What collides with what, and when; empty if nothing does."""
    velocity: float
    """Largest share of a (scaled) velocity limit."""
    position: float
    """Largest distance outside the position limits, rad or m; 0 inside."""
    start: float
    """Largest distance from the start, rad or m."""
    goal: float
    """Largest distance from the joint goal, rad or m."""


class MotionJudge(CollisionJudge):
    """Checks motions of one robot's moving joints."""

    def __init__(self, subject: Subject, joints: tuple[str, ...], step: float = STEP) -> None:
        """
        Args:
            subject: the robot.
            joints: those that move.
            step: time between the commands that are looked at, s.
        """
        self._step = step
        self._poses = Judge(subject)
        super().__init__(subject, self._poses)
        self._robot = subject.robot
        self._joints = joints
        model = self._poses.model
        # Joints that follow others would be moved along; no arm of the benchmark has such.
        assert not any(self._poses._root(leader) in joints for leader, _, _ in self._poses._mimics.values())
        self._column = {model.getJointId(name): column for column, name in enumerate(joints)}
        things = self._model.geometryObjects
        self._centres = np.array([thing.geometry.aabb_center for thing in things])
        self._radii = np.array([thing.geometry.aabb_radius for thing in things])
        self._halves = np.array([_half(thing.geometry) for thing in things]).reshape(-1, 3)
        self._own = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        self._scene: Scene | None = None

    def __call__(self, problem: TrajectoryProblem, trajectory: JointTrajectory) -> list[str]:
        """Return what is wrong with a motion that is to answer a problem with one goal; empty if nothing is."""
        wrong = self._shape(problem, trajectory)
        if wrong:
            return wrong
        states = commands(trajectory, self._step)
        wrong += self._ends(problem, trajectory)
        wrong += self._limits(problem, states)
        collision = self._collision_of(problem, states)
        return [*wrong, collision] if collision else wrong

    def violations(self, problem: TrajectoryProblem, states: Commands) -> Violations:
        """Measure how far commands violate a problem whose only goal is a configuration."""
        [goal] = problem.goals
        assert isinstance(goal, JointGoal)
        position, velocity = states.states[:2]
        limit = self._robot.limits.velocity[problem.variables] * problem.velocity_scaling
        lower, upper = self._ranges(problem)
        return Violations(
            self._collision_of(problem, states),
            float((np.abs(velocity) / limit).max()),
            float(np.maximum(lower - position, position - upper).max(initial=0.0)),
            float(np.abs(position[0] - problem.start[problem.variables]).max()),
            float(np.abs(position[-1] - goal.q).max()),
        )

    def _collision_of(self, problem: TrajectoryProblem, states: Commands) -> str:
        if problem.scene is None:
            return ""
        if problem.scene is not self._scene:
            self.enter(problem.scene)
            self._scene = problem.scene
        return self._first_collision(problem, states)

    def _ranges(self, problem: TrajectoryProblem) -> tuple[Float64, Float64]:
        """Return position limits as the URDF gives them."""
        ranges = [self._poses._limits.get(name, (-math.inf, math.inf)) for name in problem.joints]
        lower, upper = np.array(ranges).T
        return lower, upper

    def _shape(self, problem: TrajectoryProblem, trajectory: JointTrajectory) -> list[str]:
        if trajectory.joint_names != problem.joints or problem.joints != self._joints:
            return [f"joints are {trajectory.joint_names}"]
        numbers = (trajectory.time, trajectory.position, trajectory.velocity, trajectory.acceleration)
        if not all(np.isfinite(array).all() for array in numbers):
            return ["not all numbers are finite"]
        if len(trajectory.time) < 2 or trajectory.time[0] != 0.0 or (np.diff(trajectory.time) <= 0.0).any():
            return ["times do not increase from 0"]
        return []

    def _ends(self, problem: TrajectoryProblem, trajectory: JointTrajectory) -> list[str]:
        wrong = []
        start, velocity = problem.start[problem.variables], problem.start_velocity[problem.variables]
        for what, found, wanted in (
            ("start position", trajectory.position[0], start),
            ("start velocity", trajectory.velocity[0], velocity),
            ("final velocity", trajectory.velocity[-1], 0.0),
            ("final acceleration", trajectory.acceleration[-1], 0.0),
        ):
            off = float(np.abs(found - wanted).max())
            if not off <= EXACT:
                wrong.append(f"{what} is off by {off:.3g}")
        [goal] = problem.goals
        last = trajectory.position[-1]
        if isinstance(goal, JointGoal):
            off = float(np.abs(last - goal.q).max())
            if not off <= EXACT:
                wrong.append(f"the goal is missed by {off:.3g}")
        else:
            wrong += self._pose(problem, goal, last)
        return wrong

    def _pose(self, problem: TrajectoryProblem, goal: PoseGoal, q: Annotated[Float64, "n"]) -> list[str]:
        pin, model, data = self._pin, self._poses.model, self._poses.data
        pin.framesForwardKinematics(model, data, self._poses.configuration(self._values(problem, q)))
        base = data.oMf[model.getFrameId(problem.base_link, pin.FrameType.BODY)]
        wrong = []
        for target in goal.targets:
            assert target.plain is not None
            assert target.T_link_tool is None
            tip = base.actInv(data.oMf[model.getFrameId(target.link, pin.FrameType.BODY)])
            error = pin.SE3(target.T_base_target[0]).actInv(tip)
            away, angle = (
                float(np.linalg.norm(error.translation)),
                float(np.linalg.norm(pin.log3(error.rotation))),
            )
            far, turned = (limit + more for limit, more in zip(target.plain, _POSE_ROUNDING, strict=True))
            if not (away <= far and angle <= turned):
                wrong.append(f"{target.link} misses its pose by {away:.3g} m, {angle:.3g} rad")
        return wrong

    def _limits(self, problem: TrajectoryProblem, states: Commands) -> list[str]:
        limits, variables = self._robot.limits, problem.variables
        lower, upper = self._ranges(problem)
        most = (
            limits.velocity[variables] * problem.velocity_scaling,
            limits.acceleration[variables] * problem.acceleration_scaling,
            limits.jerk[variables],
        )
        position = states.states[0]
        wrong = []
        outside = np.maximum(lower - position, position - upper)
        if (outside > EXACT).any():
            k, i = np.unravel_index(int(np.argmax(outside)), outside.shape)
            wrong.append(
                f"position of {problem.joints[i]} is {outside[k, i]:.3g} outside at {states.time[k]:.3f} s"
            )
        size = np.abs(position).max(axis=0)
        for order, (limit, factor) in enumerate(zip(most, (8.0, 60.0, 720.0), strict=True), start=1):
            # Two positions a time apart say no more about derivatives than this.
            noise = factor * _EPSILON * size / states.length[:, None] ** order
            excess = np.abs(states.states[order]) - limit * (1.0 + EXCESS) - noise
            if (excess > 0.0).any():
                k, i = np.unravel_index(int(np.argmax(excess / limit)), excess.shape)
                value = states.states[order, k, i]
                wrong.append(
                    f"{_DERIVATIVES[order]} of {problem.joints[i]} is {value:.9g} at {states.time[k]:.3f} s; its "
                    f"limit is {limit[i]:.9g}"
                )
        return wrong

    def _first_collision(self, problem: TrajectoryProblem, states: Commands) -> str:
        q, time = states.states[0], states.time
        for k in (0, len(q) - 1):  # also what is inside without touching the surface
            found = self.collision(self._values(problem, q[k]))
            if found:
                return f"in collision at {time[k]:.3f} s: {found}"
        pairs, levers = self._levers(problem, q)
        waiting = [(0, len(q) - 1, np.arange(len(pairs)))]
        while waiting:
            first, last, near = waiting.pop()
            middle = (first + last) // 2
            way = np.abs(q[first : last + 1] - q[middle]).max(axis=0)
            reach = levers[near] @ way + SLACK
            near, hit = self._look(problem, q[middle], pairs[near], near, reach)
            if hit:
                return f"in collision at {time[middle]:.3f} s: {hit}"
            if len(near) and first < last:
                waiting += [(middle + 1, last, near), (first, middle, near)]
        return ""

    def _look(
        self, problem: TrajectoryProblem, q: Float64, pairs: Any, numbers: Any, reach: Float64
    ) -> tuple[Any, str]:
        """Pairs that may come nearer than their reach allows, and two things that collide."""
        values = self._poses.configuration(self._values(problem, q))
        self._pin.updateGeometryPlacements(
            self._poses.model, self._poses.data, self._model, self._data, values
        )
        poses = self._data.oMg
        count = len(self._radii)
        turned = np.array([*(poses[g].rotation for g in range(count)), *self._obstacle_turns])
        moved = np.array([poses[g].translation for g in range(count)]).reshape(-1, 3)
        centres = moved + np.einsum("gij,gj->gi", turned[:count], self._centres)
        centres = np.concatenate([centres, self._obstacle_centres])
        radii = np.concatenate([self._radii, self._obstacle_radii])
        halves = np.concatenate([self._halves, self._obstacle_halves])
        a, b = pairs.T
        gaps = np.linalg.norm(centres[a] - centres[b], axis=1) - radii[a] - radii[b]
        near = np.flatnonzero(gaps <= reach)
        a, b = a[near], b[near]
        near = near[
            _box_gaps(turned[a], halves[a], turned[b], halves[b], centres[b] - centres[a]) <= reach[near]
        ]
        kept = []
        for k in near:
            if reach[k] > ASKED:
                kept.append(numbers[k])
                continue
            (first, T_first), (second, T_second) = self._solid_at(pairs[k, 0]), self._solid_at(pairs[k, 1])
            found = self._coal.distance(
                first, T_first, second, T_second, self._coal.DistanceRequest(), self._coal.DistanceResult()
            )
            if found > reach[k]:
                continue
            if found <= SLACK and self._contact(first, T_first, second, T_second):
                return numbers[:0], f"{self._name(pairs[k, 0])} and {self._name(pairs[k, 1])}"
            kept.append(numbers[k])
        return np.array(kept, dtype=np.int64), ""

    def _solid_at(self, index: int) -> tuple[Any, Any]:
        count = len(self._radii)
        if index < count:
            M = self._data.oMg[int(index)]
            return self._model.geometryObjects[int(index)].geometry, self._coal.Transform3s(
                M.rotation, M.translation
            )
        _, solid, pose, _ = self._obstacles[index - count]
        return solid, pose

    def _name(self, index: int) -> str:
        count = len(self._radii)
        return str(
            self._model.geometryObjects[int(index)].name
            if index < count
            else self._obstacles[index - count][0]
        )

    def enter(self, scene: Scene) -> None:
        """Judge in this scene from now on; it carries nothing."""
        super().enter(scene)
        things = [(solid, pose) for _, solid, pose, _ in self._obstacles]
        self._obstacle_turns = [pose.getRotation() for _, pose in things]
        self._obstacle_centres = np.array(
            [pose.transform(solid.aabb_center) for solid, pose in things]
        ).reshape(-1, 3)
        self._obstacle_radii = np.array([solid.aabb_radius for solid, _ in things])
        self._obstacle_halves = np.array([_half(solid) for solid, _ in things]).reshape(-1, 3)

    def _levers(self, problem: TrajectoryProblem, q: Annotated[Float64, "K n"]) -> tuple[Any, Float64]:
        """Pairs (P, 2) of numbers, obstacles after the robot's shapes, and how much nearer (m) they can come to each
        other when a joint moves by 1 (rad or m), (P, n). What moves with both of a pair does not count."""
        model, things = self._poses.model, self._model.geometryObjects
        rest = self._poses.configuration(self._values(problem, q[0]))
        farthest = {joint: float(np.abs(q[:, column]).max()) for joint, column in self._column.items()}
        arm = np.zeros((len(things), len(q[0])))
        for number, thing in enumerate(things):
            away = float(np.linalg.norm(thing.placement.act(self._centres[number]))) + self._radii[number]
            joint = thing.parentJoint
            while joint > 0:
                slides = "P" in model.joints[joint].shortname().removeprefix("JointModel")
                if joint in self._column:
                    arm[number, self._column[joint]] = 1.0 if slides else away
                if slides:
                    away += farthest.get(joint, abs(float(rest[model.joints[joint].idx_q])))
                away += float(np.linalg.norm(model.jointPlacements[joint].translation))
                joint = model.parents[joint]
        first, second = self._own.T
        both = (arm[first] > 0.0) & (arm[second] > 0.0)
        own = np.where(both, 0.0, arm[first] + arm[second])
        count, obstacles = len(things), len(self._obstacles)
        shapes, others = np.meshgrid(np.arange(count), count + np.arange(obstacles), indexing="ij")
        world = np.stack([shapes.ravel(), others.ravel()], axis=1)
        return np.vstack([self._own, world]), np.vstack([own, np.repeat(arm, obstacles, axis=0)])

    def _values(self, problem: TrajectoryProblem, q: Annotated[Float64, "n"]) -> dict[str, float]:
        values = dict(zip(self._robot.variable_names, problem.start.tolist(), strict=True))
        return values | dict(zip(problem.joints, q.tolist(), strict=True))


def _half(geometry: Any) -> Float64:
    """Return half edges of the box around a shape, in its frame."""
    box = geometry.aabb_local
    return np.asarray(0.5 * (np.array(box.max_) - np.array(box.min_)))


def _box_gaps(
    R_a: Annotated[Float64, "P 3 3"],
    half_a: Annotated[Float64, "P 3"],
    R_b: Annotated[Float64, "P 3 3"],
    half_b: Annotated[Float64, "P 3"],
    way: Annotated[Float64, "P 3"],
) -> Annotated[Float64, "P"]:
    """Lower bounds of the distances of boxes, ``way`` from the first one's middle to the other's: how far they are
    apart along the edges of both."""
    gaps = np.full(len(way), -np.inf)
    for axes in (R_a, R_b):
        apart = np.abs(np.einsum("pij,pi->pj", axes, way))
        for R, half in ((R_a, half_a), (R_b, half_b)):
            apart = apart - np.einsum("pij,pj->pi", np.abs(np.einsum("pki,pkj->pij", axes, R)), half)
        gaps = np.maximum(gaps, apart.max(axis=1))
    return gaps
