"""Boxes that are put in the way of a robot that moves: it stops before each, by the judgement of coal.

In simulated time the node has a processor core of its own, so that what counts is the time that it needs, and not who
else is at work on the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from shape_msgs.msg import SolidPrimitive
from support.moveit_moves import ABORTED, PANDA, SUCCEEDED, Moving
from support.moveit_requests import joint_goal
from support.patient_clock import LockedRobot, PatientClock
from support.ros_requests import READY, StartNode
from support.trajectory_goals import until_prepared

from kinopt_ros.geometry.shapes import Box, Capsule, Cylinder, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.trajectory.simulated_robot import SimulatedRobot

coal = pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(7200)

BOXES = int(os.environ.get("KINOPT_BOXES", "5"))
"""How many; 100 takes half an hour."""
SAYS = BOXES > 5
"""Whether each box is a line of the output."""
WALL = (0.4, 0.02, 0.6)
HEARD = 0.25
"""Time from the message with the box to the beginning of the stop that the robot is given, s."""
ARM_REACH = 0.4
"""Half of the angle that the arm covers as seen from joint 1, rad: nearer the box would be in it at once."""


@pytest.fixture(scope="module")
def moving(
    moveit: Any, control_msgs: None, start_shared_node: StartNode, panda_parameters: dict[str, object]
) -> Iterator[Moving]:
    clock = PatientClock()
    clock.start()
    process, client = start_shared_node(
        "kinopt",
        {
            **panda_parameters,
            "controllers": ["panda_arm_controller=panda_arm"],
            "state_timeout": 10.0,
            "use_sim_time": True,
        },
    )
    robot = LockedRobot(clock, client.node, SimulatedRobot(PANDA, start=READY), [], rate=100.0)
    client.spin(0.3)
    until_prepared(client)
    clock.pid = process.pid
    yield Moving(client, robot, moveit)
    clock.close()
    robot.close()


class Judge:
    """Distances of the robot's shapes to the wall: coal's, with nothing of what the node computes."""

    def __init__(self) -> None:
        self._bodies = [
            (link, np.array(placed.T_frame_shape), _solid(placed.shape))
            for link, shapes in PANDA.collision_shapes.items()
            for placed in shapes
        ]
        self._links = tuple(sorted({link for link, *_ in self._bodies}))
        self._wall = coal.Box(*WALL)

    def least(self, path: list[np.ndarray], T_root_wall: np.ndarray) -> float:
        """The least distance on a path of the arm, m; what is deep has less than 0."""
        least = np.inf
        for arm in path:
            q = PANDA.default_q.copy()
            q[:7] = arm
            T = dict(zip(self._links, forward_kinematics(PANDA, q, links=self._links), strict=True))
            for link, T_link_shape, shape in self._bodies:
                apart = coal.distance(
                    shape,
                    _placed(T[link] @ T_link_shape),
                    self._wall,
                    _placed(T_root_wall),
                    coal.DistanceRequest(),
                    coal.DistanceResult(),
                )
                least = min(least, apart)
        return float(least)


def _placed(T: np.ndarray) -> Any:
    return coal.Transform3s(T[:3, :3], T[:3, 3])


def _solid(shape: Any) -> Any:
    if isinstance(shape, Box):
        return coal.Box(shape.x, shape.y, shape.z)
    if isinstance(shape, Sphere):
        return coal.Sphere(shape.radius)
    if isinstance(shape, Cylinder):
        return coal.Cylinder(shape.radius, shape.length)
    assert isinstance(shape, Capsule), shape
    return coal.Capsule(shape.radius, shape.length)


class Wall:
    """Puts the wall into the planning scene and takes it away."""

    def __init__(self, moving: Moving) -> None:
        self._moving = moving
        types = moving.types
        self._apply = moving.client.node.create_client(types.srv.ApplyPlanningScene, "apply_planning_scene")
        assert moving.client.spin_until(self._apply.service_is_ready, 60.0)

    def put(self, angle: float) -> np.ndarray:
        """Put it before joint 1 at an angle, its face towards the arm; return its pose."""
        T = np.eye(4)
        T[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        T[:3, 3] = 0.5 * np.cos(angle), 0.5 * np.sin(angle), 0.5
        made = self._moving.types.msg.CollisionObject(id="wall", operation=b"\x00")
        made.primitives = [SolidPrimitive(type=SolidPrimitive.BOX, dimensions=list(WALL))]
        made.primitive_poses = [Pose()]
        p, q = made.pose.position, made.pose.orientation
        p.x, p.y, p.z = T[:3, 3].tolist()
        q.z, q.w = float(np.sin(angle / 2.0)), float(np.cos(angle / 2.0))
        self._change(made)
        return T

    def take_away(self) -> None:
        self._change(self._moving.types.msg.CollisionObject(id="wall", operation=b"\x01"))

    def _change(self, made: Any) -> None:
        made.header.frame_id = "panda_link0"
        scene = self._moving.types.msg.PlanningScene(is_diff=True)
        scene.robot_state.is_diff = True
        scene.world.collision_objects = [made]
        request = self._moving.types.srv.ApplyPlanningScene.Request(scene=scene)
        assert self._moving.call(self._apply, request).success


def room_to_stop(speed: float, scaling: float) -> float:
    """The way of joint 1 until it stands: what it does until the stop begins, and the stop itself, rad."""
    braking = scaling * PANDA.limits.acceleration[0] / 1.5  # as its jerk is limited, too
    return float(abs(speed) * HEARD + speed**2 / (2.0 * braking))


def test_the_robot_stops_before_each_box(moving: Moving) -> None:
    wall, judge, random = Wall(moving), Judge(), np.random.default_rng(5)
    passed = 0
    nearest: list[float] = []
    touched: list[Any] = []
    while len(nearest) < BOXES:
        assert passed <= 10 + BOXES, "hardly any box was in the way"
        sign = -1.0 if moving.at()[0] > 0.0 else 1.0  # towards the farther end: there is way for a box
        goal = joint_goal(moving.types, **{**READY, "panda_joint1": 1.5 * sign})
        scaling = float(random.choice([0.3, 0.5]))
        sent = moving.send(moving.move, moving.goal(goal, scaling=scaling))
        begin, by = moving.at()[0], random.uniform(0.03, 0.5)
        assert moving.client.spin_until(
            lambda at=begin, by=by, sent=sent: abs(moving.at()[0] - at) > by or sent.done, 300.0
        )
        assert not sent.done, sent.result()
        _, position, velocity = moving.robot.robot.states(moving.robot.now())
        room = ARM_REACH + room_to_stop(velocity[0], scaling)
        angle = position[0] + sign * (room + random.uniform(0.0, 0.3))
        first = len(moving.robot.path)
        put = moving.robot.now() / 1e9
        T = wall.put(float(angle))
        status, result = sent.result()
        path = [arm for _, arm, _ in moving.robot.path[first:]]
        away = judge.least(path, T)
        if SAYS:
            times = np.array([time for time, *_ in moving.robot.path[first:]])
            speed = np.abs([v[0] for *_, v in moving.robot.path[first:]])
            begun = times[np.flatnonzero(speed >= 0.98 * speed.max())[-1]] - put
            stood = times[np.flatnonzero(speed > 1e-6)[-1]] - put
            print(
                f"box {len(nearest) + passed}: {scaling} at {velocity[0]:.3f} rad/s, the stop began {begun:.3f} s "
                f"after the box and was over at {stood:.3f} s, room {room:.3f} rad, box at {angle:.3f}, from "
                f"{position[0]:.3f} to {path[-1][0]:.3f}, {away:.4f} m",
                flush=True,
            )
        if away <= 0.0:
            touched.append((len(nearest), scaling, float(velocity[0]), away, result.error_code.message))
        if status == SUCCEEDED:  # it was out of the way
            passed += 1
        else:
            code = result.error_code
            assert status == ABORTED
            assert code.val == code.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE, code
            nearest.append(away)
        wall.take_away()
        moving.robot.path.clear()
    print(
        f"{len(nearest)} boxes, nearest {min(nearest):.4f} m, median {np.median(nearest):.4f} m, passed {passed}"
    )
    assert not touched
