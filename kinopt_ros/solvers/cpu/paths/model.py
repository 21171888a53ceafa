"""Model of a robot in a scene for the kernels, made once per scene."""

import threading
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.problems.trajectory import TrajectoryProblem
from kinopt_ros.robot.memo import remembered, remembered_with
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.cpu.paths.compiling import check_compiled, load_or_compile
from kinopt_ros.solvers.cpu.paths.moving_tree import MovingTree, moving_tree
from kinopt_ros.solvers.cpu.paths.surroundings import Surroundings, surroundings
from kinopt_ros.solvers.lru import LruCache
from kinopt_ros.solvers.usual_gaps import usual_gaps

MOST_MODELS = 16
"""Most models kept per scene. Noise in a joint that a motion holds makes a new one each time, of some megabytes."""


def need_compiled(problem: TrajectoryProblem) -> None:
    """Load or compile the kernels; raise NotReadyError if a problem with a deadline would wait for the compiler."""
    if problem.deadline is None:
        load_or_compile(may_compile=True)
    else:
        check_compiled()


@dataclass(frozen=True, eq=False)
class PathModel:
    """Model of a robot in a scene of which some variables move and the others stay."""

    tree: MovingTree
    around: Surroundings
    floor: Annotated[Float64, "S S"]
    """Distance that two spheres need not exceed, as free configurations have it, m; infinite where there is none."""


def path_model(robot: RobotModel, problem: TrajectoryProblem) -> PathModel:
    """Return the model of a problem; the last ones are kept as long as the scene lives."""
    held = problem.start.copy()
    held[problem.variables] = 0.0
    tree = _tree(robot, tuple(problem.variables.tolist()), held.tobytes())
    if problem.scene is None:
        return _build(robot, tree, None)
    models = _models(robot, problem.scene)
    with _lock:
        model = models.get(tree)
    if model is None:
        model = _build(robot, tree, problem.scene)
        with _lock:
            models.put(tree, model)
    return model


@remembered_with
def _models(robot: RobotModel, scene: Scene) -> LruCache[MovingTree, PathModel]:
    return LruCache(MOST_MODELS)


_lock = threading.Lock()


@remembered
def _tree(robot: RobotModel, variables: tuple[int, ...], held: bytes) -> MovingTree:
    return moving_tree(robot, np.array(variables, dtype=np.int64), np.frombuffer(held))


def _build(robot: RobotModel, tree: MovingTree, scene: Scene | None) -> PathModel:
    around = surroundings(robot, tree, scene)
    S = len(around.radii)
    floor = np.full((S, S), np.inf)
    if scene is not None:
        own = np.flatnonzero(around.source >= 0)
        floor[np.ix_(own, own)] = usual_gaps(robot)[np.ix_(around.source[own], around.source[own])]
    return PathModel(tree, around, floor)
