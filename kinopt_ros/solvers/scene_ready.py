"""Preparation of scenes with large shapes, or many: it takes seconds, once, and no request waits beyond its
deadline."""

import threading
import time
from weakref import WeakKeyDictionary

from kinopt_ros.errors import KinoptError, NotReadyError
from kinopt_ros.geometry.shapes import HeightMap, Mesh, Octomap, PointCloud, Shape
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.readiness import is_prepared, prepare_scene

LARGE = 2_000
"""Number of triangles, points or cells from which on preparation is done apart; fewer take less than 0.1 s."""
ORDINARY = 10
"""Number that a box, or another shape of a few numbers, counts as: it takes 0.3 ms, as it is compared with every
link."""
PAIRS = 8
"""Pairs of the robot's shapes with each other, and with those of the scene, that count as one: they take microseconds,
but a robot of hundreds of links has 100,000."""


class PreparingSceneError(NotReadyError):
    """A scene takes longer to be prepared than a request may wait."""


def wait_for_scene(robot: RobotModel, scene: Scene, deadline: float) -> None:
    """Have a scene with large or many shapes, or any scene for a robot of many shapes, prepared for a robot that is, by
    a thread that others wait for, too.

    Args:
        robot: the robot.
        scene: what is asked about.
        deadline: value of time.monotonic().

    Raises:
        PreparingSceneError: the deadline came before. The work goes on, so that a later request finds it done.
    """
    if is_prepared(robot, scene):
        return
    shapes = [thing.shapes for thing in scene.objects.values()]
    shapes += [carried.shapes for carried in scene.attached.values()]
    size = sum(_size(placed.shape) for group in shapes for placed in group)
    alone, own = _pairs_of(robot)
    if size + (alone + own * sum(map(len, shapes))) // PAIRS < LARGE:
        return
    with _lock:
        known = _under_way.setdefault(scene, WeakKeyDictionary())
        done = known.get(robot)
        if done is None:
            done = known[robot] = threading.Event()
            threading.Thread(target=_prepare, args=(robot, scene, done), daemon=True).start()
    if not done.wait(max(deadline - time.monotonic(), 0.0)):
        raise PreparingSceneError(
            "the scene is being prepared, as it or the robot has large shapes, or many: no deadline waits for that; "
            "ask again later, or call prepare_scene(robot, scene) before"
        )


def _size(shape: Shape) -> int:
    match shape:
        case Mesh():
            return len(shape.triangles)
        case HeightMap():
            return int(shape.heights.size)
        case PointCloud():
            return len(shape.points)
        case Octomap():
            return len(shape.centers)
        case _:
            return ORDINARY


@remembered
def _pairs_of(robot: RobotModel) -> tuple[int, int]:
    """Return the number of pairs of a robot's shapes that are compared, and of its shapes."""
    from kinopt_ros.collision.pairs import checked_pairs  # imports numba

    shapes = {link: len(placed) for link, placed in robot.collision_shapes.items()}
    return sum(shapes[a] * shapes[b] for a, b in checked_pairs(robot).checked), sum(shapes.values())


def _prepare(robot: RobotModel, scene: Scene, done: threading.Event) -> None:
    try:
        prepare_scene(robot, scene)
    except KinoptError:  # those who wait get the error themselves, and report it
        pass
    finally:
        done.set()


_under_way: WeakKeyDictionary[Scene, WeakKeyDictionary[RobotModel, threading.Event]] = WeakKeyDictionary()
"""Set when a scene is ready for a robot."""
_lock = threading.Lock()
