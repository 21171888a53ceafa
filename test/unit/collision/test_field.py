"""The field of spheres: on the safe side of the judge, and its gradient is that of its cost."""

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.collision.field import SphereField
from kinopt_ros.collision.kernels import field as field_kernel
from kinopt_ros.geometry.shapes import Box, Capsule, PlacedShape, Sphere
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import AttachedObject, Scene, SceneObject
from kinopt_ros.verification.collision import check_collisions

URDF = """<robot name="crane">
  <link name="ground"/>
  <link name="cart"><collision><geometry><box size="0.3 0.3 0.1"/></geometry></collision></link>
  <link name="post"><collision><origin xyz="0 0 0.4"/><geometry><cylinder radius="0.05" length="0.8"/></geometry>
    </collision></link>
  <link name="boom"><collision><origin xyz="0.3 0 0" rpy="0 1.5708 0"/><geometry><cylinder radius="0.04" length="0.6"/>
    </geometry></collision></link>
  <link name="rod"><collision><origin xyz="0.1 0 0"/><geometry><box size="0.4 0.03 0.03"/></geometry></collision></link>
  <link name="flap"><collision><geometry><sphere radius="0.06"/></geometry></collision></link>
  <joint name="drive" type="planar"><parent link="ground"/><child link="cart"/><axis xyz="0 0.3 0.954"/></joint>
  <joint name="fix" type="fixed"><parent link="cart"/><child link="post"/></joint>
  <joint name="turn" type="continuous"><parent link="post"/><child link="boom"/><origin xyz="0.05 0 0.7"/>
    <axis xyz="0.2 1 0.1"/></joint>
  <joint name="slide" type="prismatic"><parent link="boom"/><child link="rod"/><origin xyz="0.5 0 0"/>
    <axis xyz="1 0 0"/><limit lower="-0.3" upper="0.4" effort="1" velocity="1"/></joint>
  <joint name="tilt" type="revolute"><parent link="rod"/><child link="flap"/><origin xyz="0.3 0 0.02"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="1" velocity="1"/>
    <mimic joint="slide" multiplier="-1.5" offset="0.2"/></joint>
</robot>"""
MARGIN = 0.1


def at(x: float, y: float, z: float) -> Float64:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return robot_from_urdf(URDF)


@pytest.fixture(scope="module")
def scene() -> Scene:
    objects = {
        name: SceneObject(name, (PlacedShape(shape, np.eye(4)),), T)
        for name, shape, T in (
            ("a", Box(0.4, 0.5, 0.3), at(0.8, 0.2, 0.5)),
            ("b", Sphere(0.3), at(-0.6, 0.5, 0.6)),
            ("c", Capsule(0.1, 0.6), at(0.0, -0.8, 0.4)),
        )
    }
    load = AttachedObject(
        "load",
        (PlacedShape(Box(0.1, 0.2, 0.1), at(0.1, 0.0, 0.0)),),
        "flap",
        at(0.0, 0.0, -0.1),
        frozenset({"flap"}),
    )
    return Scene(
        objects=objects,
        attached={"load": load},
        allowed=frozenset({frozenset({"load", "rod"}), frozenset({"post", "b"})}),
        padding={"boom": 0.02, "a": 0.01},
    )


def test_the_gradient_is_that_of_the_cost(robot: RobotModel, scene: Scene) -> None:
    field = SphereField(robot, scene)
    q = random_configurations(robot, 200, 3)
    near = field.closeness(q, MARGIN)
    assert (near.cost > 0.0).sum() > 50
    h = 1e-6
    for k in range(robot.nq):
        step = np.zeros(robot.nq)
        step[k] = h
        plus, minus = (field.costs(q + sign * step, MARGIN)[1] for sign in (1.0, -1.0))
        # The cost has kinks where another obstacle becomes the nearest one.
        error = np.abs((plus - minus) / (2.0 * h) - near.gradient[:, k])
        assert (error < 1e-6).mean() > 0.98, robot.variable_names[k]
        assert np.abs(near.gradient[:, k]).max() > 1e-3


def test_what_is_free_by_its_spheres_is_free(robot: RobotModel, scene: Scene) -> None:
    field = SphereField(robot, scene)
    q = random_configurations(robot, 600, 4)
    distance, cost = field.costs(q, MARGIN)
    free = check_collisions(robot, scene, q, contacts=False).free
    assert 50 < free.sum() < 550
    assert free[distance > 0.0].all()
    assert (distance > 0.0).sum() > 0.5 * free.sum()
    np.testing.assert_array_equal(cost == 0.0, ~(distance < MARGIN))


def test_a_lone_robot_costs_what_it_does_to_itself(robot: RobotModel) -> None:
    field = SphereField(robot, Scene())
    q = random_configurations(robot, 100, 5)
    near = field.closeness(q, MARGIN)
    np.testing.assert_allclose(near.gradient[:, :3], 0.0, atol=1e-9)  # where it stands changes nothing
    assert near.cost.max() > 0.0


def test_batches_of_any_size_run_what_was_compiled_for_one(robot: RobotModel, scene: Scene) -> None:
    """Else the first batch waits for the compiler."""
    field, q = SphereField(robot, scene), random_configurations(robot, 3, 2)
    alone = [field.closeness(row[None], MARGIN) for row in q]
    kernels = field_kernel.world_closeness, field_kernel.self_closeness
    compiled = [len(kernel.signatures) for kernel in kernels]
    together = field.closeness(q, MARGIN)
    assert [len(kernel.signatures) for kernel in kernels] == compiled
    np.testing.assert_array_equal(together.cost, [one.cost[0] for one in alone])
    np.testing.assert_array_equal(together.distance, [one.distance[0] for one in alone])
