"""A deadline is kept whatever a search is doing when it comes: hardly any work is done after that.

The clock stands still and jumps ahead when it has been looked at so many times, so that nothing depends on how quick
the machine is.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.collision import contacts, motions
from kinopt_ros.errors import NotReadyError
from kinopt_ros.geometry.shapes import Box, PlacedShape, PointCloud
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.pauses import OutOfTime
from kinopt_ros.planning import trajectories
from kinopt_ros.planning.cartesian import plan
from kinopt_ros.planning.cartesian.plan import plan_cartesian_path
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject
from kinopt_ros.solvers import scene_ready
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.cpu.kernels import nearest
from kinopt_ros.solvers.cpu.paths.kernels import connect, levenberg_marquardt
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.status import Status
from kinopt_ros.trajectory import path_law
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.sweep import free_segment, least_clearance

START = np.array([-0.6, 0.5, 0.0, -1.6, 0.0, 2.1, 0.8])
GOAL = np.array([0.7, 0.6, 0.1, -1.5, 0.0, 2.1, 0.8])
SIDE = np.array([-1.5, 1.2, 0.0, -1.2, 0.0, 1.8, 0.8])
OTHER_SIDE = np.array([1.5, 1.2, 0.0, -1.2, 0.0, 1.8, 0.8])
SECONDS = 100.0
"""Time to the deadline, s, of which none passes before the clock jumps."""
MOST = 3
"""Pieces of work that may be done when the deadline has come: each ends before somebody looks at the clock."""


def box(name: str, size: tuple[float, float, float], *xyz: float) -> SceneObject:
    T = np.eye(4)
    T[:3, 3] = xyz
    return SceneObject(name, (PlacedShape(Box(*size), np.eye(4)),), T)


def scene_of(*things: SceneObject) -> Scene:
    return Scene(objects={thing.id: thing for thing in things})


WALL = scene_of(box("wall", (0.5, 0.04, 0.5), 0.55, 0.0, 0.25))
CAGE = scene_of(
    box("front", (3.0, 0.02, 6.0), 1.7, 0.0, 0.0),
    box("back", (3.0, 0.02, 6.0), -1.7, 0.0, 0.0),
    box("top", (6.0, 0.02, 3.0), 0.0, 0.0, 2.0),
)


class Clock:
    """Stands still until it has been looked at so many times; then the deadline is long past.

    Looks of other threads, which earlier tests may have left to their end, do not count.
    """

    def __init__(self, looks: int) -> None:
        self.begin = time.monotonic()
        self._thread = threading.get_ident()
        self.looks, self.until = 0, looks
        self.after: list[str] = []

    @property
    def jumped(self) -> bool:
        return self.looks > self.until

    def __call__(self) -> float:
        self.looks += threading.get_ident() == self._thread
        return self.begin + (1e6 if self.jumped else 0.0)

    def counted(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Work that is noted if it is done when the deadline has passed."""

        def done(*arguments: Any, **options: Any) -> Any:
            if self.jumped:
                self.after.append(name)
            return work(*arguments, **options)

        return done


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    robot = load_robot("panda")
    prepare_collisions(robot)
    return robot


@pytest.fixture(scope="module")
def solver(robot: RobotModel) -> Iterator[Solver]:
    solver = create_solver("cpu", robot)
    solver.warm_up()
    yield solver
    solver.close()


@pytest.fixture
def clock_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Clock]:
    def made(looks: int) -> Clock:
        monkeypatch.undo()
        clock = Clock(looks)
        monkeypatch.setattr(time, "monotonic", clock)
        for module, name in (
            (motions, "sweep"),
            (contacts, "near_pairs"),
            (contacts, "in_collision"),
            (contacts, "distance"),
            (levenberg_marquardt, "improve"),
            (connect, "grow"),
            (connect, "shorten"),
            (nearest, "come_near"),
        ):
            monkeypatch.setattr(module, name, clock.counted(name, getattr(module, name)))
        improve = path_law.TimeLaw.improve
        monkeypatch.setattr(path_law.TimeLaw, "improve", clock.counted("timing", improve))
        return clock

    return made


MOMENTS = (*range(1, 20), *range(20, 100, 9), *range(100, 600, 41))
"""Looks at the clock at which it jumps: early ones all, later ones some."""


@pytest.mark.parametrize(
    ("scene", "start", "goal"), [(WALL, START, GOAL), (CAGE, SIDE, OTHER_SIDE)], ids=["wall", "cage"]
)
def test_whatever_a_search_does_it_ends(
    robot: RobotModel,
    solver: Solver,
    clock_of: Callable[[int], Clock],
    scene: Scene,
    start: Float64,
    goal: Float64,
) -> None:
    whole = robot.default_q.copy()
    whole[:7] = start
    for looks in MOMENTS:
        clock = clock_of(looks)
        problem = trajectory_problem(
            robot, goal, start=whole, scene=scene, deadline=clock.begin + SECONDS, velocity_scaling=0.5
        )
        result = plan_trajectory(solver, problem)
        # The last look at the attempt's path, and its contact's name, are all.
        assert len(clock.after) <= MOST, (looks, clock.after)
        if not clock.jumped:
            assert result.success
            return
        if not result.success:
            assert result.status is Status.TIMED_OUT, (looks, result.message)


def test_long_lines_pause(robot: RobotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little is done between two pauses, what is found is the same; and a pause may end it."""
    a, b = robot.default_q.copy(), robot.default_q.copy()
    a[:7], b[:7] = SIDE, START
    variables = np.arange(7)
    names = tuple(f"panda_joint{k}" for k in range(1, 8))
    still = np.zeros((2, 7))
    motion = JointTrajectory(names, np.array([0.0, 3.0]), np.stack([SIDE, START]), still, still.copy())

    def found(effort: int) -> tuple[bool, float, int]:
        pauses = [0]

        def pause() -> None:
            pauses[0] += 1

        monkeypatch.setattr(motions, "_EFFORT", effort)
        free = free_segment(robot, WALL, a, b, pause=pause)
        return free, least_clearance(robot, WALL, a, variables, motion, pause=pause), pauses[0]

    *whole, few = found(10**9)
    *pieces, many = found(1)
    assert pieces == whole
    assert many > few + 5

    def enough() -> None:
        raise OutOfTime("enough")

    with pytest.raises(OutOfTime):
        free_segment(robot, WALL, a, b, pause=enough)


def test_a_batch_in_a_scene_is_not_looked_at_to_its_end(
    robot: RobotModel, solver: Solver, clock_of: Callable[[int], Clock]
) -> None:
    rng = np.random.default_rng(0)
    q = np.repeat(robot.default_q[None], 40, axis=0)
    q[:, :7] += rng.uniform(-0.3, 0.3, (40, 7))
    T = forward_kinematics(robot, q, ("panda_link0", "panda_link8"))[:, 1]
    for looks in (3, 6, 10, 20, 40, 80, 160):
        clock = clock_of(looks)
        problem = ik_problem(
            robot, T, tip_link="panda_link8", scene=CAGE, num_solutions=4, deadline=clock.begin + SECONDS
        )
        result = solver.solve_ik(problem)
        assert len(clock.after) <= MOST, (looks, clock.after)
        if clock.jumped:
            assert (result.status[~result.success] == Status.TIMED_OUT).any() or result.cut_short.any()


@pytest.mark.parametrize("scene", [None, EMPTY_SCENE], ids=["anyhow", "free"])
def test_what_is_as_near_as_possible_is_not_searched_to_the_end(
    scene: Scene | None, robot: RobotModel, solver: Solver, clock_of: Callable[[int], Clock]
) -> None:
    q = robot.default_q + np.random.default_rng(0).uniform(-0.5, 0.5, (12, robot.nq))
    T = forward_kinematics(robot, q, ("panda_link8",))[:, 0]
    T[:, 0, 3] += 1.0
    seen = set()
    for looks in (1, 2, 3, 5, 8, 13, 20, 40, 80, 160):
        clock = clock_of(looks)
        result = solver.solve_ik(
            ik_problem(robot, T, nearest=PoseWeights(), scene=scene, deadline=clock.begin + SECONDS)
        )
        assert len(clock.after) <= MOST, (looks, clock.after)
        if clock.jumped:
            assert (result.cut_short | (result.status != Status.TIMED_OUT)).all()
        seen |= {Status(code) for code in result.status.tolist()}
    assert seen <= {Status.NEAREST, Status.TIMED_OUT, Status.GOAL_IN_COLLISION}
    assert {Status.NEAREST, Status.TIMED_OUT} <= seen


PILE = scene_of(*(box(f"box {k}", (0.4, 0.4, 0.02), 0.3, 0.0, 0.2 + 0.015 * k) for k in range(40)))


@pytest.mark.parametrize(("start", "goal"), [(START, SIDE), (SIDE, START)], ids=["start", "goal"])
def test_what_an_end_is_in_collision_with_is_not_found_out_to_the_last(
    robot: RobotModel, solver: Solver, clock_of: Callable[[int], Clock], start: Float64, goal: Float64
) -> None:
    whole = robot.default_q.copy()
    whole[:7] = start
    cut = 0
    for looks in range(2, 40, 3):
        clock = clock_of(looks)
        problem = trajectory_problem(
            robot, goal, start=whole, scene=PILE, deadline=clock.begin + SECONDS, velocity_scaling=0.5
        )
        result = plan_trajectory(solver, problem)
        assert len(clock.after) <= MOST, (looks, clock.after)
        assert result.status in (
            Status.START_STATE_IN_COLLISION,
            Status.GOAL_IN_COLLISION,
            Status.TIMED_OUT,
        )
        cut += "there was no time to find out with what" in result.message
    assert cut > 3
    clock_of(10**9)
    problem = trajectory_problem(robot, goal, start=whole, scene=PILE, deadline=clock.begin + SECONDS)
    assert "box" in plan_trajectory(solver, problem).message


def ahead(robot: RobotModel) -> Float64:
    """A pose of the tip beside where it is."""
    T = forward_kinematics(robot, robot.default_q[None], ("panda_link8",))[0, 0]
    T[1, 3] += 0.05
    return T


def test_a_cartesian_path_is_not_looked_at_to_its_end(
    robot: RobotModel, solver: Solver, clock_of: Callable[[int], Clock]
) -> None:
    q = robot.default_q.copy()
    q[:7] = START
    T = forward_kinematics(robot, q[None], ("panda_link8",))[0, 0]
    T[1, 3] += 0.1
    for looks in (5, 20, 60, 120, 160, 200, 240, 300):
        clock = clock_of(looks)
        result = plan_cartesian_path(
            robot, solver.solve_ik, T, link="panda_link8", start=q, scene=WALL, deadline=clock.begin + SECONDS
        )
        assert len(clock.after) <= MOST, (looks, clock.after)
        if clock.jumped and result.trajectory is None:
            assert result.status is Status.TIMED_OUT


def test_a_deadline_does_not_wait_for_timing_to_be_compiled(
    robot: RobotModel, solver: Solver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a new machine, without ``warm_up``: the answer came 27 s late."""

    def not_compiled() -> None:
        raise NotReadyError("not compiled")

    for module in (plan, trajectories):
        monkeypatch.setattr(module, "check_compiled", not_compiled)
    goal = robot.default_q[:7] + 0.1
    with pytest.raises(NotReadyError):
        plan_trajectory(solver, trajectory_problem(robot, goal, deadline=time.monotonic() + 60.0))
    with pytest.raises(NotReadyError):
        plan_cartesian_path(robot, solver.solve_ik, ahead(robot), deadline=time.monotonic() + 60.0)
    assert plan_trajectory(solver, trajectory_problem(robot, goal)).success
    assert plan_cartesian_path(robot, solver.solve_ik, ahead(robot)).status is Status.SUCCESS


@pytest.mark.parametrize("kind", ["pose", "motion", "lines"])
def test_a_deadline_does_not_wait_for_a_scene_or_a_robot(
    robot: RobotModel, solver: Solver, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Straight lines in a new scene of 1,000 objects were answered 8 s late."""
    go = threading.Event()

    def slow(robot: RobotModel, scene: Scene) -> None:
        assert go.wait(60.0)

    def ask(robot: RobotModel, solver: Solver, scene: Scene) -> None:
        what: dict[str, Any] = {"scene": scene, "deadline": time.monotonic()}
        if kind == "pose":
            solver.solve_ik(ik_problem(robot, ahead(robot), **what))
        elif kind == "motion":
            plan_trajectory(solver, trajectory_problem(robot, robot.default_q[:7] + 0.1, **what))
        else:
            plan_cartesian_path(robot, solver.solve_ik, ahead(robot), **what)

    monkeypatch.setattr(scene_ready, "prepare_scene", slow)
    points = np.random.default_rng(0).random((scene_ready.LARGE, 3)) + 5.0
    cloud = SceneObject("cloud", (PlacedShape(PointCloud(points, 0.01), np.eye(4)),), np.eye(4))
    with pytest.raises(NotReadyError, match="prepare_scene"):
        ask(robot, solver, scene_of(cloud))
    go.set()
    new = load_robot("panda")
    with pytest.raises(NotReadyError, match="prepare_collisions"):
        ask(new, create_solver("cpu", new), EMPTY_SCENE)


def test_a_motion_without_a_deadline_prepares_what_it_needs() -> None:
    """Around an obstacle of a robot that nobody has prepared: the search has a deadline of its own."""
    pytest.importorskip("coal")
    new = load_robot("panda")
    start = new.default_q.copy()
    start[:7] = START
    problem = trajectory_problem(new, GOAL, group="panda_arm", start=start, scene=WALL)
    assert plan_trajectory(create_solver("cpu", new), problem).status is Status.SUCCESS
