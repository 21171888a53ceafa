"""Whether what collision checks need is prepared for a robot and a scene, and preparing it.

It takes seconds, or a compiler a minute: no request with a deadline waits for it.
"""

import threading
from collections.abc import Iterable
from itertools import chain
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from kinopt_ros.collision.coal_geometry import load_coal
from kinopt_ros.errors import KinoptError, MissingPackageError, NotReadyError, said_by
from kinopt_ros.geometry.shapes import Box, Mesh, Octomap, PlacedShape, PointCloud, Sphere
from kinopt_ros.kinematics.angled_robot import angled_robot
from kinopt_ros.pauses import give_way
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.clear_moves import MARGIN
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.collision import check_collisions, clearance_of
from kinopt_ros.verification.sweep import first_contact, free_segment, least_clearance
from kinopt_ros.wanted import AbandonedError, check_wanted


class PreparingError(NotReadyError):
    """Something that a request needs takes longer than requests may wait, and is not done yet."""

    def __init__(self, what: str, remedy: str) -> None:
        """What is not ready, and what a caller of the library can do."""
        super().__init__(f"{what}, which no deadline waits for; {remedy}")
        self.what = what


def check_ready(robot: RobotModel) -> None:
    """Raise ``PreparingError`` unless ``prepare_collisions`` was called for the robot, or the error that it raised."""
    with _lock:
        ready, refusal = robot in _prepared, _refused.get(robot)
    if refusal is not None:
        kind, sentence = refusal
        raise kind(sentence)
    if not ready:
        raise PreparingError(
            "collision checks of this robot are being prepared",
            "ask again later, or call prepare_collisions(robot) before",
        )


def make_ready(robot: RobotModel) -> None:
    """Call ``prepare_collisions`` unless that was done before: for requests that have the time. Raises as it does."""
    try:
        check_ready(robot)
    except PreparingError:
        prepare_collisions(robot)


def prepare_collisions(robot: RobotModel) -> None:
    """Read the robot's shapes, fit spheres to them, choose pairs and compile, so that no request waits for that.

    Raises:
        AbandonedError: nobody wants it any more (``wanted.py``).
        MissingPackageError: coal or numba is not installed.
        KinoptError: it is not possible for this robot.
    """
    robots = [robot, angled_robot(robot).robot] if robot.floating_joints else [robot]
    try:
        for one in robots:
            _prepare(one)
    except AbandonedError:
        raise
    except Exception as error:
        kind = MissingPackageError if isinstance(error, MissingPackageError) else KinoptError
        sentence = said_by(error)
        with _lock:  # not the error itself: its traceback would keep the robot for ever
            _refused[robot] = kind, f"collisions cannot be checked: {sentence}"
        raise
    with _lock:
        _prepared.update(robots)
        _refused.pop(robot, None)


def _prepare(robot: RobotModel) -> None:
    # Something to compare with, of a kind that coal and one that the compiled distances are for.
    far = np.eye(4)
    far[0, 3] = 100.0
    shapes = tuple(PlacedShape(shape, np.eye(4)) for shape in (Box(1.0, 1.0, 1.0), Sphere(1.0)))
    scene = Scene(objects={"far away": SceneObject("far away", shapes, far)})
    q = robot.default_q[None]
    load_coal()  # before anybody waits for a compiler in vain
    check_collisions(robot, scene, q)
    check_wanted()
    clearance_of(robot, scene, q[0])
    check_wanted()
    from kinopt_ros.collision.field import field_of  # imports numba, which is there if the check was possible

    field_of(robot, scene).closeness(q, MARGIN)
    from kinopt_ros.collision import judge
    from kinopt_ros.collision.contacts import group_distances
    from kinopt_ros.collision.nearby import FEWEST
    from kinopt_ros.collision.packed_bodies import packed_bodies_of
    from kinopt_ros.solvers.usual_gaps import usual_gaps

    judge.prepare_kernels()
    usual_gaps(robot)
    check_wanted()
    packed = packed_bodies_of(robot, scene)
    pairs = packed.every_pair
    group_distances(packed, q, pairs, np.zeros_like(pairs), np.ones((1, 1), dtype=np.bool_), MARGIN)
    check_wanted()
    crowd = Scene(objects={f"far away {k}": SceneObject(f"far away {k}", shapes, far) for k in range(FEWEST)})
    packed_bodies_of(robot, crowd).nearby(q[0], MARGIN)
    check_wanted()
    _prepare_motions(robot, scene)


def _prepare_motions(robot: RobotModel, scene: Scene) -> None:
    names = [name for name in robot.active_joints if robot.joint(name).type.num_variables == 1][:1]
    variables = np.array([robot.joint(name).first_variable for name in names], dtype=np.int64)
    if not names:
        return
    still = np.zeros((2, 1))
    position = np.repeat(robot.default_q[None, variables], 2, axis=0)
    motion = JointTrajectory(tuple(names), np.array([0.0, 1.0]), position, still, still.copy())
    first_contact(robot, scene, robot.default_q, variables, motion)
    least_clearance(robot, scene, robot.default_q, variables, motion)
    free_segment(robot, scene, robot.default_q, robot.default_q)


def prepare_scene(robot: RobotModel, scene: Scene) -> None:
    """Build what requests in a scene would have to wait for (trees of large shapes take seconds), if the robot is
    prepared; else nothing is done."""
    shapes = [thing.shapes for thing in scene.objects.values()]
    shapes += [carried.shapes for carried in scene.attached.values()]
    with _lock:
        if robot not in _prepared:
            return
    from kinopt_ros.collision import judge  # imports numba
    from kinopt_ros.collision.field import field_of
    from kinopt_ros.collision.packed_bodies import packed_bodies_of

    for item in chain.from_iterable(shapes):
        judge.prepare(item.shape)
    packed_bodies_of(robot, scene)
    field_of(robot, scene)
    with _lock:
        _scenes.setdefault(scene, WeakSet()).add(robot)


def prepare_shapes(robot: RobotModel, shapes: Iterable[PlacedShape]) -> None:
    """Build what ``prepare_scene`` builds of single shapes: for those that shall be in a scene, before others have to
    wait for it.

    Large ones are built one at a time: each step holds Python's lock for milliseconds, and stops shall be heard.
    """
    with _lock:
        if robot not in _prepared:
            return
    from kinopt_ros.collision import judge  # imports numba

    for placed in shapes:
        if isinstance(placed.shape, Mesh | PointCloud | Octomap):
            give_way()
            with _one_at_a_time:
                judge.prepare(placed.shape)
        else:
            judge.prepare(placed.shape)


def is_prepared(robot: RobotModel, scene: Scene) -> bool:
    """Check whether ``prepare_scene`` has been called for both."""
    with _lock:
        return robot in _scenes.get(scene, ())


_scenes: WeakKeyDictionary[Scene, WeakSet[RobotModel]] = WeakKeyDictionary()
_one_at_a_time = threading.Lock()
_prepared: WeakSet[RobotModel] = WeakSet()
_refused: WeakKeyDictionary[RobotModel, tuple[type[KinoptError], str]] = WeakKeyDictionary()
"""Robots that could not be prepared, and why."""
_lock = threading.Lock()
