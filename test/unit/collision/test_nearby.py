"""What is passed over among many shapes changes no answer: each equals, to the last bit, that of looking at all."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

numba = pytest.importorskip("numba")
import itertools

from support.shape_cases import PRIMITIVES, random_pose, random_primitive

import kinopt_ros
from kinopt_ros.array import Float64
from kinopt_ros.collision.contacts import Placement
from kinopt_ros.collision.kernels import layout
from kinopt_ros.collision.kernels.memory import new_bits, tree_at
from kinopt_ros.collision.kernels.nearby import mark_nearby, next_marked
from kinopt_ros.collision.motions import Motions
from kinopt_ros.collision.nearby import FEWEST, MOST, sphere_tree
from kinopt_ros.collision.obstacles import Obstacles, nearest, pack
from kinopt_ros.collision.packed_bodies import PackedBodies, packed_bodies_of
from kinopt_ros.geometry.shapes import (
    Box,
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Primitive,
    Shape,
    Sphere,
)
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject
from kinopt_ros.verification.collision import check_collisions

COUNTS = (0, 1, FEWEST - 1, FEWEST, FEWEST + 1, 63, 64, 65, 200, 1000)


def big_shape(rng: np.random.Generator, number: int) -> Shape:
    """A mesh, a cloud, an octomap or ground, in turn."""
    match number % 4:
        case 0:
            corners = rng.uniform(-0.3, 0.3, (4, 3))
            a, b, c, d = corners
            if np.dot(np.cross(b - a, c - a), d - a) > 0.0:
                corners = corners[[0, 2, 1, 3]]
            return Mesh(corners, np.array([[0, 1, 2], [0, 3, 1], [1, 3, 2], [2, 3, 0]]))
        case 1:
            return PointCloud(rng.uniform(-0.3, 0.3, (20, 3)), 0.02)
        case 2:
            return Octomap(rng.integers(-3, 4, (15, 3)) * 0.1, rng.choice([0.05, 0.1], 15))
        case _:
            return HeightMap(rng.uniform(-0.1, 0.0, (3, 4)), 0.2)


def some_shape(rng: np.random.Generator, size: float) -> Shape:
    """Any shape; one of eight is a big one."""
    if rng.random() < 0.125:
        return big_shape(rng, int(rng.integers(4)))
    kinds: tuple[type[Primitive], ...] = PRIMITIVES if rng.random() < 0.1 else PRIMITIVES[:-1]
    return random_primitive(rng, kinds[rng.integers(len(kinds))], 0.1 * size, size)


def some_obstacles(rng: np.random.Generator, count: int) -> list[PlacedShape]:
    """Shapes of all kinds, some of them twice, so that distances are equal."""
    far = 0.2 + 0.4 * count ** (1.0 / 3.0)
    placed = [PlacedShape(some_shape(rng, 0.4), random_pose(rng, far)) for _ in range(count)]
    for k in range(0, count - 1, 5):
        placed[int(rng.integers(count))] = placed[k]
    return placed


def one_after_the_other(obstacles: Obstacles) -> Obstacles:
    """The same obstacles without a tree of their spheres."""
    integers = obstacles.integers.copy()
    integers[:, layout.NEARBY] = 0
    return replace(obstacles, integers=integers)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("most", [-0.1, 0.0, 0.03, 0.3, 10.0, np.inf])
def test_distances_are_those_of_looking_at_all(count: int, most: float) -> None:
    rng = np.random.default_rng([count, int(100 * min(most, 100.0)) + 100])
    obstacles = pack(some_obstacles(rng, count))
    assert (count >= 63) <= bool((obstacles.integers[:, layout.NEARBY] != 0).any())
    far = 0.3 + 0.4 * count ** (1.0 / 3.0)
    balls = np.column_stack([rng.uniform(-far, far, (400, 3)), rng.choice([0.0, 0.05, 0.3], 400)])
    balls[: count // 2, :3] = obstacles.numbers[: min(count // 2, 400), :3]  # in the middle of some
    for skipped in (None, rng.random(count) < 0.3):
        found = nearest(obstacles, balls, most, skipped)
        expected = nearest(one_after_the_other(obstacles), balls, most, skipped)
        for name in ("distances", "gradients", "obstacles"):
            assert getattr(found, name).tobytes() == getattr(expected, name).tobytes()


def some_scene(rng: np.random.Generator, count: int) -> Scene:
    """Objects of one to three shapes, an attached one, paddings, pairs that may touch."""
    objects = {}
    for k in range(count):
        own = tuple(
            PlacedShape(some_shape(rng, 0.1), random_pose(rng, 0.05)) for _ in range(int(rng.integers(1, 4)))
        )
        T = random_pose(rng, 1.3)
        T[2, 3] += 0.3
        objects[f"thing {k}"] = SceneObject(f"thing {k}", own, T)
    cup = AttachedObject(
        "cup", (PlacedShape(Sphere(0.05), np.eye(4)),), "panda_hand", np.eye(4), frozenset({"panda_hand"})
    )
    names = list(objects)
    return Scene(
        objects=objects,
        attached={"cup": cup},
        allowed=frozenset(frozenset({"panda_link5", name}) for name in names[::7]),
        padding=dict.fromkeys(names[::11], 0.02) | {"panda_link3": 0.01},
    )


def without_crowd(packed: PackedBodies) -> PackedBodies:
    """The same bodies, whose pairs are looked at one after the other."""
    return replace(packed, crowd=None)


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return kinopt_ros.load_robot("panda")


@pytest.fixture(scope="module", params=[0, 1, 30, 100, 500])
def packed(request: pytest.FixtureRequest, panda: RobotModel) -> PackedBodies:
    rng = np.random.default_rng(request.param)
    packed = packed_bodies_of(panda, some_scene(rng, request.param))
    assert (packed.crowd is not None) == (request.param >= 30)
    return packed


@pytest.mark.parametrize("enough", [-0.02, 0.0, 1e-6, 0.1, np.inf])
def test_near_pairs_are_those_of_looking_at_all(
    panda: RobotModel, packed: PackedBodies, enough: float
) -> None:
    for q in random_configurations(panda, 6 if enough == np.inf else 40, 3):
        for least in (-np.inf, enough):
            found = Placement(packed, q).near(enough, least)
            expected = Placement(without_crowd(packed), q).near(enough, least)
            assert found[0].tobytes() == expected[0].tobytes()
            assert found[1].tobytes() == expected[1].tobytes()


def test_contacts_are_those_of_looking_at_all(panda: RobotModel, packed: PackedBodies) -> None:
    touching = 0
    for q in random_configurations(panda, 3 if len(packed.bodies.names) > 200 else 10, 4):
        found, expected = Placement(packed, q), Placement(without_crowd(packed), q)
        assert found.contacts(0.0) == expected.contacts(0.0)
        touching += len(found.contacts(0.0))
        one, other = found.clearance(), expected.clearance()
        assert (one.distance, one.a, one.b) == (other.distance, other.a, other.b)
    assert touching > 0 or len(packed.bodies.names) < 30


@pytest.mark.parametrize("way", [0.0, 0.01, 0.3, 2.0])
def test_motions_are_those_of_looking_at_all(panda: RobotModel, packed: PackedBodies, way: float) -> None:
    rng = np.random.default_rng(5)
    variables = np.arange(7)
    doubts = 0
    for q in random_configurations(panda, 5, 6):
        corners = q[:7] + np.cumsum(rng.normal(size=(5, 7)), axis=0) * way / 5.0
        control = np.stack([np.linspace(a, b, 6) for a, b in itertools.pairwise(corners)])
        times = np.arange(5.0)

        def asked(bodies: PackedBodies, ask: Callable[[Motions], object], q: Float64 = q) -> object:
            return ask(Motions(bodies, q, variables))

        def doubt(
            motions: Motions, control: Float64 = control, times: Float64 = times
        ) -> tuple[int, list[tuple[object, ...]]]:
            parts, looked = motions.in_doubt(control, times, 1e-6, ahead=1)
            return looked, [(p.pair, p.begin, p.end, p.nearer, p.control.tobytes()) for p in parts]

        def least(motions: Motions, control: Float64 = control, times: Float64 = times) -> float:
            return motions.least_distance(control, times, 0.1, 1e-3)

        found = asked(packed, doubt)
        assert found == asked(without_crowd(packed), doubt)
        assert isinstance(found, tuple)
        doubts += len(found[1])
        assert asked(packed, least) == asked(without_crowd(packed), least)
    assert doubts > 0 or len(packed.bodies.names) < 30


@numba.njit
def marked(address: int, count: int, place: Float64, limit: float, found: Float64) -> None:
    bits = new_bits()
    mark_nearby(tree_at(address), place[0], place[1], place[2], limit, bits)
    number = next_marked(bits, 0, count)
    while number < count:
        found[number] += 1.0
        number = next_marked(bits, number + 1, count)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("count", [FEWEST, 500, MOST])
def test_no_sphere_is_lost_to_rounding(scale: float, count: int) -> None:
    """Limits at which spheres are just near enough, far from the origin and next to it."""
    rng = np.random.default_rng(count)
    centres = rng.normal(size=(count, 3)) * scale + rng.choice([0.0, 1e3], 3)
    reaches = rng.choice([0.0, 1e-9, 0.1, 1.0], count) * scale
    reaches[FEWEST + 1 :: 40] = np.inf
    tree = sphere_tree(centres, reaches)
    assert tree is not None
    passed_over = 0
    for _ in range(60):
        place = centres[rng.integers(count)] + rng.normal(size=3) * scale * rng.choice([0.0, 0.1, 3.0])
        gaps = np.sqrt(((centres - place) ** 2).sum(axis=1)) - reaches
        limit = float(rng.choice(gaps[np.isfinite(gaps)]))
        found = np.zeros(count)
        marked(tree.ctypes.data, count, place, limit, found)
        assert (found <= 1.0).all()
        assert found[gaps <= limit].all()
        passed_over += int((found == 0.0).sum())
    assert passed_over > 0


def test_few_and_far_too_many_have_no_tree() -> None:
    def tree_of(count: int, endless: int = 0) -> Float64 | None:
        return sphere_tree(np.zeros((count, 3)), np.r_[np.ones(count - endless), np.full(endless, np.inf)])

    assert tree_of(0) is None
    assert tree_of(FEWEST - 1) is None
    assert tree_of(FEWEST + 3, endless=4) is None
    assert tree_of(FEWEST) is not None
    assert tree_of(MOST) is not None
    assert tree_of(MOST + 1) is None


def test_planes_beside_many_count_everywhere() -> None:
    rng = np.random.default_rng(1)
    placed = [PlacedShape(Sphere(0.1), random_pose(rng, 2.0)) for _ in range(100)]
    placed.insert(50, PlacedShape(Plane(), np.eye(4)))
    found = nearest(pack(placed), np.array([[1e3, 1e3, 0.05, 0.0]]), 0.1)
    assert found.obstacles.tolist() == [50]
    assert found.distances.tolist() == [0.05]


@pytest.mark.parametrize("count", [FEWEST - 1, FEWEST + 8])
def test_what_an_attached_plane_cuts_is_found_beside_many(panda: RobotModel, count: int) -> None:
    """Pairs with it are compared the other way round: the one contact was lost from 32 boxes on."""

    def at(x: float, y: float, z: float) -> Float64:
        T = np.eye(4)
        T[:3, 3] = x, y, z
        return T

    cube = (PlacedShape(Box(0.05, 0.05, 0.05), np.eye(4)),)
    boxes = {
        f"box {k}": SceneObject(f"box {k}", cube, at(2.0 + 0.1 * k, 2.0, -0.5 if k == count // 2 else 1.0))
        for k in range(count)
    }
    touches = frozenset(panda.link_names)
    tray = AttachedObject(
        "tray", (PlacedShape(Plane(), np.eye(4)),), panda.root_link, np.eye(4), touch_links=touches
    )
    report = check_collisions(panda, Scene(objects=boxes, attached={"tray": tray}), panda.default_q[None])
    (contact,) = report.contacts[0]
    assert {contact.a, contact.b} == {"tray", f"box {count // 2}"}
    assert contact.depth == pytest.approx(0.525)
