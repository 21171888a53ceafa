"""Tests of what is compared with what, in the order that simple loops would have it."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("numba")
from kinopt_ros.collision.bodies import WORLD, Bodies, bodies_of, self_pairs
from kinopt_ros.collision.kernels.near import BALLS, BOXES, GROUND, HULLS
from kinopt_ros.collision.packed_bodies import PackedBodies, packed_bodies_of
from kinopt_ros.geometry.shapes import Box, Cylinder, HeightMap, PlacedShape, Plane, Shape, Sphere
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject

URDF = """<robot name="arm"><link name="base"/>
  <link name="one"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>
    <collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <link name="two"><collision><geometry><cylinder radius="0.05" length="0.2"/></geometry></collision></link>
  <link name="three"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <joint name="a" type="revolute"><parent link="base"/><child link="one"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="b" type="revolute"><parent link="one"/><child link="two"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="c" type="revolute"><parent link="two"/><child link="three"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""
ROBOT = robot_from_urdf(URDF)


def placed(*shapes: Shape) -> tuple[PlacedShape, ...]:
    return tuple(PlacedShape(shape, np.eye(4)) for shape in shapes)


def some_scene() -> Scene:
    rough = HeightMap(np.array([[0.0, 0.1], [0.1, 0.0]]), 0.5)
    things = {
        "box": placed(Box(0.1, 0.2, 0.3), Sphere(0.2)),
        "ground": placed(Plane()),
        "both": placed(Plane(), Cylinder(0.1, 0.2), Box(0.1, 0.1, 0.1)),
        "rough": placed(rough),
    }
    cup = AttachedObject(
        "cup", placed(Box(0.1, 0.1, 0.1), Sphere(0.1)), "three", np.eye(4), frozenset({"three"})
    )
    return Scene(
        objects={name: SceneObject(name, shapes, np.eye(4)) for name, shapes in things.items()},
        attached={"cup": cup},
    )


def pairs_by_loops(scene: Scene, bodies: Bodies) -> list[tuple[int, int]]:
    own = {name: [s for s, k in enumerate(bodies.body) if bodies.names[k] == name] for name in bodies.names}
    found = [pair for a, b in self_pairs(ROBOT, scene, bodies.names) for pair in product(own[a], own[b])]
    for thing in scene.objects:
        for moving in (name for name in bodies.names if name not in scene.objects):
            if not scene.may_touch(moving, thing):
                found += product(own[moving], own[thing])
    return found


def expected_bound(packed: PackedBodies, a: int, b: int) -> tuple[int, int, int]:
    """The two shapes in their order, and how they are bounded."""
    shapes, counts = packed.bodies.shapes, packed.shapes.numbers
    hulls = [last > first for _, first, last, *_ in counts.tolist()]
    if hulls[a] and hulls[b]:
        return a, b, HULLS
    one, other = (a, b) if hulls[a] else (b, a)
    if not hulls[one]:
        return a, b, BOXES
    if isinstance(shapes[other], Plane):
        return one, other, GROUND
    return (one, other, BALLS) if counts[other, 0] == WORLD else (a, b, BOXES)


@pytest.mark.parametrize("scene", [Scene(), some_scene()], ids=["empty", "full"])
def test_pairs_are_those_of_simple_loops(scene: Scene) -> None:
    bodies = bodies_of(ROBOT, scene)
    assert list(map(tuple, bodies.pairs.tolist())) == pairs_by_loops(scene, bodies)
    packed = packed_bodies_of(ROBOT, scene)
    expected = [expected_bound(packed, a, b) for a, b in bodies.pairs.tolist()]
    assert list(map(tuple, packed.pairs.numbers[:, :3].tolist())) == expected
    balls = packed.pairs.numbers[:, 2] == BALLS
    assert (packed.pairs.numbers[~balls, 4] == 0).all()
    if scene.objects:
        assert {HULLS, GROUND, BALLS} <= set(packed.pairs.numbers[:, 2].tolist())


def test_ways_to_the_root_meet_at_the_first_link_of_both() -> None:
    packed = packed_bodies_of(ROBOT, some_scene())
    parents, world = packed.tree.parent.tolist(), len(packed.tree.parent)

    def way(link: int) -> list[int]:
        return [world] if link == WORLD else [link, *way(parents[link])]

    carriers = packed.shapes.numbers[:, 0].tolist()
    for a, b, _, meeting, _ in packed.pairs.numbers.tolist():
        assert meeting == next(link for link in way(carriers[a]) if link in way(carriers[b]))


def test_many_objects_are_compared_with_links_only() -> None:
    """What a scene of many objects takes grows with their number, not with its square."""

    class Counted(dict[str, SceneObject]):
        looks = 0

        def __contains__(self, name: object) -> bool:
            Counted.looks += 1
            return super().__contains__(name)

    count = 200
    one = placed(Box(0.1, 0.1, 0.1))
    objects = Counted({f"box {k}": SceneObject(f"box {k}", one, np.eye(4)) for k in range(count)})
    bodies = bodies_of(ROBOT, Scene(objects=objects))
    assert len(bodies.names) == count + 3
    assert 0 < Counted.looks < 20 * count
