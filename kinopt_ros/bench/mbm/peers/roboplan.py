"""RoboPlan (https://github.com/open-planning/roboplan): RRT-Connect, shortcuts and TOPP-RA on Pinocchio and coal.

It reads the same URDF, SRDF and meshes. Obstacles are checked against one another there unless that is switched off.
"""

import json
import tempfile
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.mbm.attempt import SEARCH, SHORTENING, PeerPath
from kinopt_ros.bench.mbm.problems import RobotFiles
from kinopt_ros.errors import InvalidRequestError, KinoptError, SolverUnavailableError
from kinopt_ros.geometry.shapes import Box, Cylinder, Shape, Sphere
from kinopt_ros.problems.trajectory import JointGoal, TrajectoryProblem
from kinopt_ros.robot.sources import read_description
from kinopt_ros.scene.scene import Scene
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

STEP = 0.02
"""Longest step between two collision checks of a line, rad; its default of 0.05 misses thin boards."""
MOST_NODES = 1_000_000
SHORTCUTS = 200
"""Shortcuts that are tried; its default is 100."""
SAMPLE = 0.01
"""Time between points of a timed motion, s: its default."""
_GROUP = "mbm_joints"
_WORLD = "universe"


class RoboPlanPeer:
    """Planner and time law of one robot's moving joints."""

    name = "roboplan"

    def __init__(self, files: RobotFiles, joints: tuple[str, ...]) -> None:
        """
        Raises:
            SolverUnavailableError: RoboPlan is not installed, or does not take this robot.
        """
        for part in ("core", "rrt", "toppra"):
            if find_spec("roboplan") is None or find_spec(f"roboplan.{part}") is None:
                raise SolverUnavailableError("RoboPlan is not installed (pip install roboplan)")
        from roboplan import core, rrt, toppra

        self.version = version("roboplan")
        self._core: Any = core
        self._rrt: Any = rrt
        self._toppra: Any = toppra
        self._joints = list(joints)
        self._robot = files.robot
        try:
            description = core.loadUrdfSceneDescription(str(files.urdf), [str(files.urdf.parent)])
            self._scene: Any = core.Scene(files.name, description)
            self._scene.importSrdf(read_description(files.srdf, "SRDF"))
            self._scene.addGroup(_GROUP, self._joints)
            self._set_limits()
        except RuntimeError as error:
            raise SolverUnavailableError(f"RoboPlan does not take robot {files.name}: {error}") from None
        self._obstacles: list[str] = []
        self._entered: Scene | None = None

    def enter(self, problem: TrajectoryProblem) -> None:
        """Take in the scene, and the values of joints that do not move."""
        if problem.scene is not self._entered:
            for name in self._obstacles:
                self._scene.removeGeometry(name)
            self._obstacles = []
            for thing in problem.scene.objects.values() if problem.scene is not None else ():
                for placed in thing.shapes:
                    self._add(placed.shape, thing.T_root_object @ placed.T_frame_shape)
            others = self._obstacles
            pairs = [(a, b) for k, a in enumerate(others) for b in others[:k]]
            if pairs:
                self._scene.setCollisions(pairs, False)
            self._entered = problem.scene
        q = self._scene.getCurrentJointPositions().copy()
        for name, value in zip(self._robot.variable_names, problem.start.tolist(), strict=True):
            q[self._scene.getJointPositionIndices([name])] = value
        self._scene.setJointPositions(q)

    def plan(self, problem: TrajectoryProblem, seconds: float, seed: int) -> PeerPath:
        """Search a path by RRT-Connect, and shorten it."""
        [goal] = problem.goals
        assert isinstance(goal, JointGoal)
        options = self._rrt.RRTOptions(
            group_name=_GROUP,
            max_nodes=MOST_NODES,
            collision_check_step_size=STEP,
            max_planning_time=seconds,
            rrt_connect=True,
        )
        stages = {}
        begin = time.perf_counter()
        try:
            planner = self._rrt.RRT(self._scene, options)
            planner.setRngSeed(seed)
            path = planner.plan(self._at(problem.start[problem.variables]), self._at(goal.q))
        except RuntimeError as error:
            return PeerPath(None, str(error))
        stages[SEARCH] = time.perf_counter() - begin
        if path is None:
            return PeerPath(None, "no path", stages)
        begin = time.perf_counter()
        shorter = self._core.PathShortcuttingOptions(
            group_name=_GROUP, max_step_size=STEP, max_iters=SHORTCUTS, seed=seed
        )
        path = self._core.PathShortcutter(self._scene, shorter).shortcut(path)
        stages[SHORTENING] = time.perf_counter() - begin
        assert list(path.joint_names) == self._joints
        return PeerPath(np.array(path.positions), "", stages)

    def timed(self, problem: TrajectoryProblem, corners: Annotated[Float64, "K n"]) -> JointTrajectory:
        """Time a path of whomever by TOPP-RA along a spline that is adapted until it is free of collisions.

        Raises:
            KinoptError: TOPP-RA finds no time law.
        """
        self.enter(problem)
        path = self._core.JointPath()
        path.joint_names, path.positions = self._joints, list(corners)
        options = self._toppra.TOPPRAOptions(
            dt=SAMPLE,
            mode=self._toppra.SplineFittingMode.Adaptive,
            velocity_scale=problem.velocity_scaling,
            acceleration_scale=problem.acceleration_scaling,
        )
        try:
            found = self._toppra.PathParameterizerTOPPRA(self._scene, _GROUP).generate(path, options)
        except RuntimeError as error:
            raise KinoptError(f"TOPP-RA: {error}") from None
        return JointTrajectory(
            tuple(found.joint_names),
            np.array(found.times),
            np.array(found.positions),
            np.array(found.velocities),
            np.array(found.accelerations),
        )

    def _at(self, q: Float64) -> Any:
        return self._core.JointConfiguration(self._joints, np.ascontiguousarray(q))

    def _set_limits(self) -> None:
        """Give it the limits that we have; a URDF knows none of acceleration."""
        robot = self._robot
        limits = {}
        for name in self._joints:
            [variable] = robot.variables_of(name)
            limits[name] = {
                "has_velocity_limits": True,
                "max_velocity": [float(robot.limits.velocity[variable])],
                "has_acceleration_limits": True,
                "max_acceleration": [float(robot.limits.acceleration[variable])],
            }
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "joint_limits.yaml"
            file.write_text(json.dumps({"joint_limits": limits}), encoding="utf-8")  # which is YAML, too
            self._scene.importJointLimitsFromConfig(self._core.loadJointLimitsConfig(str(file)))

    def _add(self, shape: Shape, T: Annotated[Float64, "4 4"]) -> None:
        name = f"obstacle {len(self._obstacles)}"
        place, colour = np.asfortranarray(T), np.ones(4)
        match shape:
            case Box(x, y, z):
                self._scene.addBoxGeometry(name, _WORLD, self._core.Box(x, y, z), place, colour)
            case Cylinder(radius, length):
                self._scene.addCylinderGeometry(
                    name, _WORLD, self._core.Cylinder(radius, length), place, colour
                )
            case Sphere(radius):
                self._scene.addSphereGeometry(name, _WORLD, self._core.Sphere(radius), place, colour)
            case _:
                raise InvalidRequestError(f"RoboPlan takes no {type(shape).__name__} here")
        self._obstacles.append(name)
