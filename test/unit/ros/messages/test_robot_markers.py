"""Markers of robots, ways and ellipsoids."""

import dataclasses

import numpy as np
import pytest
from visualization_msgs.msg import Marker

from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.collision_shapes import CollisionModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.messages.conversions import matrices_from_poses
from kinopt_ros.ros.messages.marker_shapes import color
from kinopt_ros.ros.messages.robot_markers import (
    ELLIPSOID_SCALE,
    carried_markers,
    manipulability_ellipsoid,
    manipulability_marker,
    robot_drawing,
    text_marker,
    way_markers,
)
from kinopt_ros.scene.changes import attach_new
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.scene.tool_frames import Tip

PANDA = load_robot("panda")
GREEN = color(0.0, 1.0, 0.0, 0.5)
Q = np.array([0.3, -0.7, 0.2, -2.2, 0.1, 1.6, 0.8, *PANDA.default_q[7:]])


def test_a_robot_is_drawn_where_its_links_are() -> None:
    drawn = robot_drawing(PANDA).markers(Q, GREEN)
    own = [(link, placed) for link in PANDA.link_names for placed in PANDA.collision_shapes.get(link, ())]
    assert len(drawn) >= len(own)
    assert {marker.header.frame_id for marker in drawn} == {"panda_link0"}
    link, placed = own[0]
    expected = forward_kinematics(PANDA, Q, links=(link,))[0] @ placed.T_frame_shape
    at = matrices_from_poses([marker.pose for marker in drawn])
    assert min(np.abs(T - expected).max() for T in at) < 1e-9


def test_what_is_carried_is_drawn_with_it() -> None:
    box = (PlacedShape(Box(0.1, 0.1, 0.1), np.eye(4)),)
    scene = attach_new(EMPTY_SCENE, PANDA, "box", box, "panda_hand", np.eye(4), None, {})
    drawn, alone = (robot_drawing(PANDA, one).markers(Q, GREEN) for one in (scene, EMPTY_SCENE))
    assert len(drawn) == len(alone) + 1
    T = forward_kinematics(PANDA, Q, links=("panda_hand",))[0]
    np.testing.assert_allclose(matrices_from_poses([drawn[-1].pose])[0], T, atol=1e-9)


def test_a_robot_without_shapes_has_bones() -> None:
    bare = dataclasses.replace(PANDA, collision=CollisionModel())
    [lines] = robot_drawing(bare).markers(Q, GREEN)
    assert lines.type == Marker.LINE_LIST
    assert len(lines.points) == 2 * len(PANDA.joints)


def test_the_gripper_hangs_on_its_tip() -> None:
    tool = np.eye(4)
    tool[:3, 3] = 0.0, 0.0, 0.1
    for T_link_tip in (None, tool):
        at_home, elsewhere = (
            carried_markers(PANDA, Tip("panda_link8", T_link_tip), q, GREEN) for q in (PANDA.default_q, Q)
        )
        assert at_home  # hand and fingers
        assert {marker.header.frame_id for marker in at_home} == {""}
        np.testing.assert_allclose(
            matrices_from_poses([m.pose for m in at_home]),
            matrices_from_poses([m.pose for m in elsewhere]),
            atol=1e-9,
        )


def test_the_way_of_a_tip() -> None:
    q = np.linspace(PANDA.default_q, Q, 5)
    line, balls = way_markers(PANDA, Tip("panda_link8"), q, GREEN)
    T = forward_kinematics(PANDA, q, links=("panda_link8",))[:, 0, :3, 3]
    assert (line.type, balls.type) == (Marker.LINE_STRIP, Marker.SPHERE_LIST)
    np.testing.assert_allclose([(p.x, p.y, p.z) for p in line.points], T, atol=1e-12)


def test_the_ellipsoid_is_that_of_the_eigenvalues() -> None:
    axes, semi = manipulability_ellipsoid(np.array([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.5]]))
    np.testing.assert_allclose(semi, [0.5, 2.0, 3.0])
    assert np.linalg.det(axes) == pytest.approx(1.0)
    J = np.random.default_rng(0).normal(size=(3, 7))
    axes, semi = manipulability_ellipsoid(J)
    np.testing.assert_allclose(axes @ np.diag(semi**2) @ axes.T, J @ J.T, atol=1e-12)
    np.testing.assert_allclose(semi, np.sort(np.linalg.svd(J, compute_uv=False)), atol=1e-12)


@pytest.mark.parametrize("base", ["panda_link0", "panda_link2"])
@pytest.mark.parametrize("tool", [None, (0.05, 0.02, 0.1)])
def test_the_ellipsoid_of_a_tip_is_at_the_tip(base: str, tool: tuple[float, ...] | None) -> None:
    T_link_tip = None if tool is None else np.eye(4)
    if T_link_tip is not None:
        T_link_tip[:3, 3] = tool
    marker = manipulability_marker(PANDA, base, Tip("panda_link8", T_link_tip), Q, GREEN)
    T_base, T = forward_kinematics(PANDA, Q, links=(base, "panda_link8"))
    center = T if T_link_tip is None else T @ T_link_tip
    at = matrices_from_poses([marker.pose])[0]
    np.testing.assert_allclose(at[:3, 3], center[:3, 3], atol=1e-12)
    # Velocities of the tip by small steps of the joints, in the frame of the root.
    chain = chain_between(PANDA, base, "panda_link8")
    J, step = np.zeros((3, len(chain.variables))), 1e-6
    for k, variable in enumerate(chain.variables):
        ends = []
        for sign in (1.0, -1.0):
            q = Q.copy()
            q[variable] += sign * step
            moved_base, moved = forward_kinematics(PANDA, q, links=(base, "panda_link8"))
            tip = moved if T_link_tip is None else moved @ T_link_tip
            ends.append((T_base @ np.linalg.inv(moved_base) @ tip)[:3, 3])
        J[:, k] = (ends[0] - ends[1]) / (2.0 * step)
    semi = np.array([marker.scale.x, marker.scale.y, marker.scale.z]) / (2.0 * ELLIPSOID_SCALE)
    np.testing.assert_allclose(at[:3, :3] @ np.diag(semi**2) @ at[:3, :3].T, J @ J.T, atol=1e-7)
    if base == "panda_link0" and tool is None:
        whole = geometric_jacobian(chain, Q[chain.variables])[:3]
        np.testing.assert_allclose(whole @ whole.T, J @ J.T, atol=1e-7)


def test_a_singular_configuration_has_a_flat_ellipsoid_that_is_drawn() -> None:
    marker = manipulability_marker(PANDA, "panda_link0", Tip("panda_link8"), np.zeros(PANDA.nq), GREEN)
    assert min(marker.scale.x, marker.scale.y, marker.scale.z) > 0.0


def test_a_text() -> None:
    made = text_marker("base", np.array([1.0, 2.0, 3.0]), "hello", 0.05, GREEN)
    assert (made.text, made.scale.z, made.pose.position.z) == ("hello", 0.05, 3.0)
