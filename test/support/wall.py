"""A wall that is put in the way of a moving Panda's first joint, and the judge of whether the robot has touched it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from geometry_msgs.msg import Point, Pose
from support.moveit_moves import PANDA

from kinopt_msgs.msg import CollisionObject, SceneOperation, Shape
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.scene.scene import Scene, SceneObject

EDGES = (0.6, 0.02, 0.6)
AT = (0.4, 0.35, 0.5)
"""Where its middle is, m; only y differs between tests."""


def box(y: float) -> SceneOperation:
    """Puts it beside the robot."""
    given = CollisionObject(id="wall", shapes=[Shape(type="box", dimensions=list(EDGES))])
    given.pose = Pose(position=Point(x=AT[0], y=y, z=AT[2]))
    return SceneOperation(operation="add", object=given)


def free_of_the_wall(path: Iterable[np.ndarray]) -> None:
    """Judge positions of the arm's joints by the shapes themselves, with the wall at AT."""
    from kinopt_ros.verification.collision import check_collisions

    T = np.eye(4)
    T[:3, 3] = AT
    scene = Scene(objects={"wall": SceneObject("wall", (PlacedShape(Box(*EDGES), np.eye(4)),), T)})
    rows = np.array(list(path))
    q = np.repeat(PANDA.default_q[None], len(rows), axis=0)
    q[:, :7] = rows
    assert check_collisions(PANDA, scene, q, contacts=False).free.all()
    turned = np.repeat(q[-1:], 50, axis=0)
    turned[:, 0] = np.linspace(0.0, 1.5, len(turned))
    assert not check_collisions(PANDA, scene, turned, contacts=False).free.all()  # the judge knows the wall
