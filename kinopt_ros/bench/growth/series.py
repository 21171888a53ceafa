"""What is measured: the cost of one thing, for more and more of another."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.extended_panda import extended_panda
from kinopt_ros.bench.progress import Report, no_report
from kinopt_ros.collision.field import field_of
from kinopt_ros.collision.spheres import fitted_spheres
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.geometry.shapes import Box, PlacedShape, PointCloud
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import pose
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.trajectory import JointGoal, TrajectoryProblem
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.verification.collision import check_collisions

TIP = "panda_link8"
SHOULDER = (0.0, 0.0, 0.333)
"""Middle of what the Panda reaches, m."""
SHELL = (0.4, 0.95)
"""How far from there obstacles are, m."""
EDGE = 0.25
"""Edge of a single obstacle, m. Of n obstacles each has 1/n of its volume. Even so more are more in the way: of random
configurations 82 % are free beside one, 39 % beside 100, and 28 % beside 1,000."""
RADIUS = 0.005
"""Radius of the points of a cloud, m."""
WALLS = 6
"""Boxes that the points of a cloud lie on."""
BESIDE = 30
"""Boxes beside a robot of ever more spheres."""
MARGIN = 0.05
"""Distance from which on spheres cost something, m."""
DRAWS = 40
"""Configurations that are drawn for each that has to be free."""
SECONDS = 10.0
"""Most time for one request, s."""
_WARM_UP = 2
"""Calls before the clock runs."""


@dataclass(frozen=True)
class Cost:
    """Cost of one thing for so many of another."""

    size: int
    median: float
    """CPU time of the process, s, per call; of a batch per target."""
    p95: float
    wall: float
    """Median of the wall time, s, likewise."""
    solved: float
    """Share of the calls that ended with success."""


@dataclass(frozen=True)
class Series:
    """Costs of one thing."""

    of: str
    """What there is more and more of."""
    thing: str
    costs: tuple[Cost, ...]
    exact: bool = False
    """Whether every call can succeed."""

    @property
    def exponents(self) -> tuple[float, ...]:
        """From each size to the next, by which power of the size the cost grows: 0 where it does not."""
        sizes = np.log([cost.size for cost in self.costs])
        return tuple((np.diff(np.log([cost.median for cost in self.costs])) / np.diff(sizes)).tolist())


@dataclass(frozen=True)
class Plan:
    """How far to go."""

    obstacles: Sequence[int] = (1, 3, 10, 30, 100, 300, 1000)
    points: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000)
    joints: Sequence[int] = (7, 10, 14, 21, 30)
    spheres: Sequence[int] = (1, 2, 4, 8, 16, 32)
    """Most spheres for a link; fewer are fitted where they are as tight."""
    batches: Sequence[int] = (1, 10, 100, 1_000, 10_000, 100_000)
    threads: Sequence[int] = (1, 2)
    requests: int = 200
    """Requests of each size; of motions a tenth."""
    seed: int = 0


def among_obstacles(plan: Plan, report: Report = no_report) -> Iterator[Series]:
    """Yield what boxes cost: a check of one configuration, inverse kinematics, motions."""
    yield from _among("boxes", plan.obstacles, _boxes, plan, report)


def among_points(plan: Plan, report: Report = no_report) -> Iterator[Series]:
    """Yield what points of a cloud cost, that lie on six boxes."""
    yield from _among("points", plan.points, _cloud, plan, report)


def by_joints(plan: Plan, report: Report = no_report) -> Iterator[Series]:
    """Yield what joints cost: arms of the Panda's joints over and over."""
    costs = []
    for count in plan.joints:
        robot = robot_from_urdf(extended_panda(count))
        tip = f"panda_link{count}"
        with _solver(robot) as solver:
            q = random_configurations(robot, plan.requests + _WARM_UP, plan.seed)
            T = forward_kinematics(robot, q, (tip,))[:, 0]
            problems = [ik_problem(robot, one, base_link="panda_link0", tip_link=tip) for one in T]
            costs.append(_cost(count, solver.solve_ik, problems, _all_solved))
        report(f"{count} joints", 1)
    yield Series("joints", "inverse kinematics, one pose", tuple(costs), exact=True)


def by_spheres(plan: Plan, report: Report = no_report) -> Iterator[Series]:
    """Yield what spheres of the robot cost among boxes: the cost of one configuration, inverse kinematics, motions."""
    scene = _boxes(BESIDE, np.random.default_rng([plan.seed, BESIDE]))
    things: dict[str, list[Cost]] = {}
    for most in plan.spheres:
        robot = load_robot("panda")
        fitted = fitted_spheres(robot, tuple(robot.collision_shapes), most, 0.0)
        robot = replace(robot, link_spheres=fitted)
        size = sum(len(spheres.radii) for spheres in fitted.values())
        prepare_collisions(robot)
        with _solver(robot) as solver:
            solver.warm_up_motions()
            q = _free(scene, robot, size, plan)
            field = field_of(robot, scene)
            things.setdefault("cost of nearness and its gradient, one configuration", []).append(
                _cost(size, partial(field.closeness, margin=MARGIN), [row[None] for row in q], bool)
            )
            for thing, cost in _asked(scene, robot, solver, q, size, plan):
                things.setdefault(thing, []).append(cost)
        report(f"{size} spheres", 1)
    for thing, costs in things.items():
        yield Series("spheres of the robot", thing, tuple(costs))


def by_batch(plan: Plan, report: Report = no_report) -> Iterator[Series]:
    """Yield what a target costs among others in one call, for each number of threads."""
    robot = load_robot("panda")
    most = max(plan.batches)
    T = forward_kinematics(robot, random_configurations(robot, most, plan.seed), (TIP,))[:, 0]
    for threads in plan.threads:
        costs = []
        with _solver(robot, {"threads": threads}) as solver:
            for size in plan.batches:
                count = max(3, min(plan.requests, most // size)) + _WARM_UP
                problems = [
                    ik_problem(robot, T[(k * size) % most :][:size], tip_link=TIP) for k in range(count)
                ]
                costs.append(_cost(size, solver.solve_ik, problems, _all_solved, per=size))
                report(f"batch of {size}, {threads} threads", 1)
        what = f"inverse kinematics, {threads} {'thread' if threads == 1 else 'threads'}, per target"
        yield Series("targets in one call", what, tuple(costs), exact=True)


SERIES: dict[str, Callable[[Plan, Report], Iterator[Series]]] = {
    "obstacles": among_obstacles,
    "points": among_points,
    "joints": by_joints,
    "spheres": by_spheres,
    "batch": by_batch,
}
"""By the names of the command."""


def steps(plan: Plan, names: Iterable[str]) -> int:
    """Return how many reports some of ``SERIES`` make."""
    counts = {
        "obstacles": len(plan.obstacles),
        "points": len(plan.points),
        "joints": len(plan.joints),
        "spheres": len(plan.spheres),
        "batch": len(plan.batches) * len(plan.threads),
    }
    return sum(counts[name] for name in names)


def _among(
    of: str, sizes: Sequence[int], scene_of: Callable[..., Scene], plan: Plan, report: Report
) -> Iterator[Series]:
    robot = load_robot("panda")
    prepare_collisions(robot)
    things: dict[str, list[Cost]] = {}
    with _solver(robot) as solver:
        solver.warm_up_motions()
        for size in sizes:
            scene = scene_of(size, np.random.default_rng([plan.seed, size]))
            for thing, cost in _in(scene, robot, solver, size, plan):
                things.setdefault(thing, []).append(cost)
            report(f"{size} {of}", 1)
    for thing, costs in things.items():
        yield Series(of, thing, tuple(costs))


def _in(scene: Scene, robot: RobotModel, solver: Solver, size: int, plan: Plan) -> Iterator[tuple[str, Cost]]:
    begin, wall = time.process_time(), time.perf_counter()
    check_collisions(robot, scene, robot.default_q[None])
    first = time.process_time() - begin
    yield "the first look at a new scene", Cost(size, first, first, time.perf_counter() - wall, 1.0)
    q = _free(scene, robot, size, plan)
    yield (
        "check of one configuration",
        _cost(size, lambda one: check_collisions(robot, scene, one), [row[None] for row in q], _is_free),
    )
    yield from _asked(scene, robot, solver, q, size, plan)


def _free(scene: Scene, robot: RobotModel, size: int, plan: Plan) -> Annotated[Float64, "N nq"]:
    """Return free configurations, as many as there are requests."""
    count = plan.requests + _WARM_UP
    drawn = random_configurations(robot, DRAWS * count, plan.seed)
    q = np.concatenate(
        [part[check_collisions(robot, scene, part).free] for part in np.array_split(drawn, DRAWS)]
    )[:count]
    if len(q) <= _WARM_UP:
        raise InvalidRequestError(
            f"seed {plan.seed} leaves {len(q)} of {len(drawn)} configurations free among {size}; give another --seed"
        )
    return q


def _asked(
    scene: Scene, robot: RobotModel, solver: Solver, q: Annotated[Float64, "N nq"], size: int, plan: Plan
) -> Iterator[tuple[str, Cost]]:
    """Yield what inverse kinematics and motions cost that are asked for at free configurations."""
    T = forward_kinematics(robot, q, (TIP,))[:, 0]
    problems = [ik_problem(robot, one, tip_link=TIP, scene=scene) for one in T]
    yield "inverse kinematics", _cost(size, solver.solve_ik, problems, _all_solved)
    few = min(max(3, plan.requests // 10) + _WARM_UP, len(q))
    motions = [
        trajectory_problem(
            robot,
            JointGoal(goal),
            joints=robot.active_joints[:7],
            start=start,
            scene=scene,
            velocity_scaling=1.0,
            acceleration_scaling=1.0,
        )
        for start, goal in zip(q[:few], q[::-1, :7][:few], strict=True)
    ]
    yield "motion", _cost(size, lambda one: _plan(solver, one), motions, _planned)


def _plan(solver: Solver, problem: TrajectoryProblem) -> TrajectoryResult:
    return plan_trajectory(solver, replace(problem, deadline=time.monotonic() + SECONDS))


def _boxes(count: int, random: np.random.Generator) -> Scene:
    edge = EDGE / count ** (1.0 / 3.0)
    shape = PlacedShape(Box(edge, edge, edge), np.eye(4))
    places = _places(count, random)
    return Scene(
        version=1,
        objects={
            f"box {k}": SceneObject(f"box {k}", (shape,), pose(np.eye(3), place))
            for k, place in enumerate(places)
        },
    )


def _cloud(count: int, random: np.random.Generator) -> Scene:
    edge = EDGE / WALLS ** (1.0 / 3.0)
    points = random.uniform(-0.5 * edge, 0.5 * edge, (count, 3))
    axis = random.integers(0, 3, count)
    points[np.arange(count), axis] = random.choice([-0.5, 0.5], count) * edge
    points += _places(WALLS, random)[random.integers(0, WALLS, count)]
    cloud = PlacedShape(PointCloud(points, RADIUS), np.eye(4))
    return Scene(version=1, objects={"cloud": SceneObject("cloud", (cloud,), np.eye(4))})


def _places(count: int, random: np.random.Generator) -> Annotated[Float64, "N 3"]:
    """Return places around the shoulder, in front of it and beside it."""
    directions = random.normal(size=(count, 3))
    directions[:, 0] = np.abs(directions[:, 0])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.asarray(SHOULDER + directions * random.uniform(*SHELL, (count, 1)))


@contextmanager
def _solver(robot: RobotModel, options: dict[str, Any] | None = None) -> Iterator[Solver]:
    """Yield a ``cpu`` solver that is warm; it is closed at the end."""
    solver = create_solver("cpu", robot, options)
    solver.warm_up()
    try:
        yield solver
    finally:
        solver.close()


def _cost(
    size: int, call: Callable[[Any], Any], items: Sequence[Any], good: Callable[[Any], bool], per: int = 1
) -> Cost:
    cpus, walls, solved = [], [], 0
    for k, item in enumerate(items):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = call(item)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        if k >= _WARM_UP:
            cpus.append(cpu / per)
            walls.append(wall / per)
            solved += good(answer)
    return Cost(
        size,
        float(np.median(cpus)),
        float(np.percentile(cpus, 95)),
        float(np.median(walls)),
        solved / len(cpus),
    )


def _all_solved(result: Any) -> bool:
    return bool(result.success.all())


def _is_free(result: Any) -> bool:
    return bool(result.free.all())


def _planned(result: Any) -> bool:
    return bool(result.status == Status.SUCCESS)
