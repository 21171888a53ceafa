"""Collision cost of a robot's spheres and its gradient, for searches.

The spheres contain the robot's shapes: a configuration that is collision-free here really is.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.collision.bodies import self_pairs
from kinopt_ros.collision.box_cover import covering_spheres
from kinopt_ros.collision.kernels import field as field_kernel
from kinopt_ros.collision.link_poses import link_poses
from kinopt_ros.collision.obstacles import Obstacles, pack
from kinopt_ros.collision.spheres import robot_spheres
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import cross
from kinopt_ros.robot.chain import Motion, joint_motions
from kinopt_ros.robot.memo import remembered_with
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.scene import Scene


@dataclass(frozen=True, eq=False)
class Closeness:
    """Distances and collision costs of M configurations."""

    distance: Annotated[Float64, "M"]
    """Signed distance of the nearest two spheres, or sphere and obstacle, m, paddings subtracted.

    It is never larger than the true distance of the shapes."""
    cost: Annotated[Float64, "M"]
    """Sum of ``activation`` over all spheres, m."""
    gradient: Annotated[Float64, "M nq"]
    """Gradient of the cost with respect to the robot's variables, m/rad or 1; 0 for the numbers of a quaternion."""


class SphereField:
    """Computes collision costs of one robot in one scene."""

    def __init__(self, robot: RobotModel, scene: Scene) -> None:
        self._robot = robot
        spheres = robot_spheres(robot)
        names = [robot.link_names[i] for i in spheres.link.tolist()]
        carriers = list(names)
        centers, radii = [spheres.centers], [spheres.radii]
        for carried in scene.attached.values():
            for item in carried.shapes:
                cover = covering_spheres(PlacedShape(item.shape, carried.T_link_object @ item.T_frame_shape))
                centers.append(cover.centers)
                radii.append(cover.radii)
                names += [carried.id] * len(cover.radii)
                carriers += [carried.link] * len(cover.radii)
        self._centers, self._radii = np.concatenate(centers), np.concatenate(radii)
        self._links = tuple(dict.fromkeys(carriers))
        index = {link: k for k, link in enumerate(self._links)}
        self._carrier = np.array([index[link] for link in carriers], dtype=np.int64)
        bodies = {name: np.flatnonzero(np.array(names) == name) for name in dict.fromkeys(names)}
        self._world = _world(scene, bodies, self._radii)
        self._ranges = _ranges(robot, scene, bodies)
        self._moves = _Moves(robot, carriers)

    def closeness(self, q: Annotated[Float64, "M nq"], margin: float) -> Closeness:
        """Compute distances, costs and gradients of configurations.

        Spheres nearer than ``margin`` (m) cost something. Distances beyond it are infinite.
        """
        p, distance, cost, force = self._near(q, margin)
        return Closeness(distance, cost, self._moves.generalized(q, p, force))

    def costs(
        self, q: Annotated[Float64, "M nq"], margin: float
    ) -> tuple[Annotated[Float64, "M"], Annotated[Float64, "M"]]:
        """Compute the distance and cost of ``closeness`` without the gradient."""
        _, distance, cost, _ = self._near(q, margin)
        return distance, cost

    def _near(self, q: Float64, margin: float) -> tuple[Float64, Float64, Float64, Float64]:
        M, S = len(q), len(self._radii)
        poses = link_poses(self._robot, q, self._links)[:, self._carrier]
        # Of one layout, whatever M: for each the kernels would be compiled anew.
        p = np.ascontiguousarray((poses[..., :3, :3] @ self._centers[:, :, None])[..., 0] + poses[..., :3, 3])
        distance, cost, force = np.full(M, np.inf), np.zeros(M), np.zeros((M, S, 3))
        for part in self._world:
            obstacles = part.obstacles
            field_kernel.world_closeness(
                obstacles.numbers,
                obstacles.integers,
                part.skipped,
                part.spheres,
                part.radii,
                margin,
                p,
                distance,
                cost,
                force,
            )
        field_kernel.self_closeness(*self._ranges, self._radii, margin, p, distance, cost, force)
        return p, distance, cost, force


@remembered_with
def field_of(robot: RobotModel, scene: Scene) -> SphereField:
    """Return the sphere field of a robot in a scene; it is made once for each."""
    return SphereField(robot, scene)


@dataclass(frozen=True, eq=False)
class _WorldPart:
    """Spheres of bodies that the same obstacles count for, with the same padding."""

    spheres: Annotated[Int64, "s"]
    obstacles: Obstacles
    skipped: Annotated[Bool, "o"]
    radii: Annotated[Float64, "s"]
    """Radii of the spheres, paddings added."""


def _world(scene: Scene, bodies: dict[str, Int64], radii: Float64) -> list[_WorldPart]:
    placed, owner = [], []
    for thing in scene.objects.values():
        placed += [PlacedShape(s.shape, thing.T_root_object @ s.T_frame_shape) for s in thing.shapes]
        owner += [thing.id] * len(thing.shapes)
    if not placed:
        return []
    obstacles = pack(placed)
    # Obstacles have no padding of their own here: all get the largest, which is on the safe side.
    most = max(scene.padding_of(name) for name in scene.objects)
    together: dict[tuple[bytes, float], list[Int64]] = {}
    masks: dict[bytes, Bool] = {}
    for name, spheres in bodies.items():
        skipped = np.array([scene.may_touch(name, other) for other in owner], dtype=np.bool_)
        if skipped.all():
            continue
        masks[skipped.tobytes()] = skipped
        together.setdefault((skipped.tobytes(), scene.padding_of(name) + most), []).append(spheres)
    parts = []
    for (mask, padding), lists in together.items():
        spheres = np.concatenate(lists)
        parts.append(_WorldPart(spheres, obstacles, masks[mask], radii[spheres] + padding))
    return parts


def _ranges(robot: RobotModel, scene: Scene, bodies: dict[str, Int64]) -> tuple[Int64, ...]:
    """Return ranges as ``self_closeness`` takes them; the spheres of a body follow one another."""
    table = [
        (bodies[a][0], bodies[a][-1] + 1, bodies[b][0], bodies[b][-1] + 1)
        for a, b in self_pairs(robot, scene, list(bodies))
        if a in bodies and b in bodies
    ]
    first, last, other_first, other_last = np.array(table, dtype=np.int64).reshape(-1, 4).T.copy()
    return first, last, other_first, other_last


class _Moves:
    """Maps forces on spheres to forces on variables."""

    def __init__(self, robot: RobotModel, carriers: list[str]) -> None:
        self._robot = robot
        below = _links_below(robot)
        joints, motion, axis, variable, multiplier, rows = [], [], [], [], [], []
        for joint in robot.joints:
            moved = np.array([carrier in below[joint.child_link] for carrier in carriers], dtype=np.float64)
            if not moved.any():
                continue
            for step in joint_motions(joint):
                if step.motion is Motion.QUATERNION:
                    continue
                joints.append(joint)
                motion.append(step.motion)
                axis.append(step.axis)
                variable.append(step.variable)
                multiplier.append(step.multiplier)
                rows.append(moved)
        self._children = tuple(dict.fromkeys(joint.child_link for joint in joints))
        index = {name: k for k, name in enumerate(self._children)}
        self._child = np.array([index[joint.child_link] for joint in joints], dtype=np.int64)
        self._turns = np.array(motion, dtype=np.int64) == Motion.ROTATION
        self._axis = np.array(axis, dtype=np.float64).reshape(-1, 3)
        self._variable = np.array(variable, dtype=np.int64)
        self._multiplier = np.array(multiplier)
        self._moved = np.array(rows).reshape(len(rows), len(carriers))
        self._planar = [k for k, joint in enumerate(joints) if joint.type.num_variables == 3]
        self._joints = joints

    def generalized(
        self,
        q: Annotated[Float64, "M nq"],
        p: Annotated[Float64, "M S 3"],
        force: Annotated[Float64, "M S 3"],
    ) -> Annotated[Float64, "M nq"]:
        """Compute ``dp/dq^T force``, summed over spheres."""
        torque = np.zeros((len(q), self._robot.nq))
        if not len(self._joints):
            return torque
        frames = link_poses(self._robot, q, self._children)[:, self._child]
        # A joint's own motion leaves the direction of its axis alone, and its child's origin on it.
        axes = (frames[..., :3, :3] @ self._axis[:, :, None])[..., 0]
        for k in self._planar:  # but a planar joint's turn comes last: undo it
            if not self._turns[k]:
                joint = self._joints[k]
                T = forward_kinematics(self._robot, q, [joint.parent_link])[:, 0] @ joint.T_parent_joint
                axes[:, k] = T[:, :3, :3] @ self._axis[k]
        pushed = self._moved @ force
        turned = self._moved @ cross(p, force) - cross(frames[..., :3, 3], pushed)
        values = self._multiplier * np.where(self._turns, (axes * turned).sum(-1), (axes * pushed).sum(-1))
        for k, variable in enumerate(self._variable.tolist()):
            torque[:, variable] += values[:, k]
        return torque


def _links_below(robot: RobotModel) -> dict[str, set[str]]:
    """Return the links that move with each link: itself and all that it carries."""
    below = {name: {name} for name in robot.link_names}
    for joint in reversed(robot.joints):
        below[joint.parent_link] |= below[joint.child_link]
    return below
