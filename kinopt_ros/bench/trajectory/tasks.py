"""The problems of the benchmark: the same for the same seed, whatever solver is to solve them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.bench.trajectory.scenes import FAMILIES, Setting, SettingMaker
from kinopt_ros.errors import InvalidRequestError, UnsupportedFeatureError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import sampling_range
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.problems.builder import resolve_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot, robot_names
from kinopt_ros.scene.scene import Scene
from kinopt_ros.verification.collision import check_collisions
from kinopt_ros.verification.sweep import free_segment

PER_SCENE = 5
"""Number of problems in one scene."""
DRAWS = 6000
"""Number of configurations that are drawn for them at a time."""
CANDIDATES = 12
"""Number of free configurations to choose starts and goals from."""
END_CLEARANCE = 0.005
"""Distance that starts and goals keep from obstacles, m."""
NEAREST_OF = 4
"""Number of configurations of which the goal is the nearest to the start, as users choose near ones."""
LEAST_WAY = 0.3
"""Least way of some joint from start to goal, rad."""
MOST_SCENES = 40
"""Most scenes in a row that may leave no problem."""
WIDEST = np.pi
"""Largest angle from 0 that configurations are drawn within, rad."""


@dataclass(frozen=True)
class Arm:
    """What moves, and the direction (rad, about z of the root frame) in which it works."""

    base: str
    tip: str
    front: float = 0.0


ARMS = {
    "panda": Arm("panda_link0", "panda_link8"),
    "ur5": Arm("base_link", "tool0"),
    "tiago_pro": Arm("torso_lift_link", "arm_left_tool_link", 0.6),
}
"""Arms with 7, 6 and 7 joints."""


@dataclass(frozen=True, eq=False)
class Task:
    """One problem."""

    robot: str
    family: str
    number: int
    """Number among the problems of the robot, family and seed."""
    scene: Scene
    start: Annotated[Float64, "nq"]
    goal: Annotated[Float64, "nq"]
    """Configuration that is at the goal; the goal itself if it is no pose."""
    T_base_tip: Annotated[Float64, "4 4"]
    """Pose of the tip at the goal."""
    is_pose: bool
    """Whether the pose is asked for, rather than the configuration."""
    straight_collides: bool
    """Whether the straight line of joint values from start to goal is in collision."""

    @property
    def digest(self) -> str:
        """Hash of the rounded problem, under which what was found out about it is kept."""
        numbers = [self.start, self.goal, *(thing.T_root_object for thing in self.scene.objects.values())]
        text = repr([np.round(array, 5).tolist() for array in numbers])
        text += repr((self.robot, self.is_pose, sorted(self.scene.objects)))
        return hashlib.sha256(text.replace("-0.0,", "0.0,").encode()).hexdigest()[:16]


class TaskMaker:
    """Problems of one robot."""

    def __init__(self, name: str) -> None:
        """
        Raises:
            UnsupportedFeatureError: the robot is not installed.
        """
        if name not in robot_names():
            raise UnsupportedFeatureError(f"{name}: not installed (pip install example-robot-data)")
        self.name, self.arm = name, ARMS[name]
        self.robot: RobotModel = load_robot(name)
        _, _, joints = resolve_chain(self.robot, None, self.arm.base, self.arm.tip)
        self.joints: tuple[str, ...] = tuple(joints)
        moved = [i for joint in joints for i in self.robot.variables_of(joint)]
        self.variables: Annotated[Int64, "n"] = np.array(moved, dtype=np.int64)
        self._settings = SettingMaker(self.robot, self.arm.tip, moved, self.arm.front)

    def tasks(self, family: str, count: int, seed: int) -> Iterator[Task]:
        """Yield the first so many problems of a family.

        Raises:
            InvalidRequestError: the scenes leave hardly any configuration free.
        """
        made = scene_number = failures = 0
        while made < count:
            rng = np.random.default_rng(
                [seed, list(ARMS).index(self.name), FAMILIES.index(family), scene_number]
            )
            setting = self._settings.setting(family, scene_number, rng)
            scene_number += 1
            found = self._in_scene(family, made, setting, rng)
            failures = 0 if found else failures + 1
            if failures > MOST_SCENES:
                raise InvalidRequestError(
                    f"{self.name}: hardly any configuration is free in scenes with a {family}"
                )
            for task in found[: count - made]:
                made += 1
                yield task

    def _in_scene(self, family: str, first: int, setting: Setting, rng: np.random.Generator) -> list[Task]:
        """Return up to ``PER_SCENE`` problems; always all of them or none, so that numbers do not depend on the
        count."""
        starts, goals = self._free_ends(setting, rng)
        if len(starts) < 2 or len(goals) < 2:
            return []
        found: list[Task] = []
        for number in range(first, first + PER_SCENE):
            task = self._task(family, number, setting.scene, starts, goals, rng, found)
            if task is None:
                return []
            found.append(task)
        return found

    def _task(
        self,
        family: str,
        number: int,
        scene: Scene,
        starts: Float64,
        goals: Float64,
        rng: np.random.Generator,
        others: list[Task],
    ) -> Task | None:
        must_collide = number % 8 not in (3, 6)  # a quarter is taken as it comes
        for _ in range(40):
            start = starts[rng.integers(len(starts))]
            choice = goals[rng.permutation(len(goals))[:NEAREST_OF]]
            choice = choice[np.abs(choice - start).max(axis=1) > LEAST_WAY]
            if not len(choice):
                continue
            goal = choice[np.argmin(np.linalg.norm(choice - start, axis=1))]
            if any((task.start == start).all() and (task.goal == goal).all() for task in others):
                continue
            collides = not free_segment(self.robot, scene, start, goal)
            if must_collide and not collides:
                continue
            poses = forward_kinematics(self.robot, goal[None], (self.arm.base, self.arm.tip))[0]
            pose = inverse(poses[0]) @ poses[1]
            return Task(self.name, family, number, scene, start, goal, pose, number % 2 == 1, collides)
        return None

    def _free_ends(self, setting: Setting, rng: np.random.Generator) -> tuple[Float64, Float64]:
        low, high = (limit[self.variables] for limit in sampling_range(self.robot))
        low, high = np.maximum(low, -WIDEST), np.minimum(high, WIDEST)
        q = np.repeat(self.robot.default_q[None], DRAWS, axis=0)
        q[:, self.variables] = np.round(rng.uniform(low, high, (DRAWS, len(self.variables))), 6)
        np.clip(q, self.robot.limits.lower, self.robot.limits.upper, out=q)
        tips = forward_kinematics(self.robot, q, (self.arm.tip,))[:, 0, :3, 3]
        return (
            self._some_free(setting.scene, q[setting.start(tips)]),
            self._some_free(setting.scene, q[setting.goal(tips)][::-1]),
        )

    def _some_free(self, scene: Scene, q: Float64) -> Float64:
        free: list[Float64] = []
        padded = replace(scene, default_padding=END_CLEARANCE)
        for row in q:
            if check_collisions(self.robot, padded, row[None], contacts=False).free[0]:
                free.append(row)
                if len(free) == CANDIDATES:
                    break
        return np.array(free).reshape(-1, self.robot.nq)
