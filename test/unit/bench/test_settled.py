"""The benchmark's robots stand as their users' robots do: with an SRDF where they touch themselves."""

import numpy as np
import pytest

pytest.importorskip("coal")

from kinopt_ros.bench.collision.settled import settled
from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.verification.collision import check_collisions


def _robot() -> RobotModel:
    """An arm of one joint, and two fingers on it that touch where they stand."""
    shape = '<collision><origin xyz="0.1 0 0"/><geometry><sphere radius="0.03"/></geometry></collision>'
    links = "".join(f'<link name="{name}">{shape}</link>' for name in ("base", "arm", "left", "right"))
    joints = "".join(
        f'<joint name="j_{child}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
        for parent, child, xyz in (
            ("base", "arm", "0.5 0 0"),
            ("arm", "left", "0.2 0.02 0"),
            ("arm", "right", "0.2 -0.02 0"),
        )
    )
    return robot_from_urdf(f'<robot name="two &amp; fingers">{links}{joints}</robot>')


def test_what_touches_where_it_stands_and_is_not_moved_may_touch() -> None:
    robot = _robot()
    assert not check_collisions(robot, EMPTY_SCENE, robot.default_q[None]).free[0]
    moved = [robot.variable_index["j_arm"]]
    allowed = settled(robot, moved)
    assert check_collisions(allowed, EMPTY_SCENE, allowed.default_q[None]).free[0]
    assert set(checked_pairs(robot).checked) - set(checked_pairs(allowed).checked) == {("left", "right")}
    np.testing.assert_array_equal(allowed.default_q, robot.default_q)


def test_what_the_benchmark_moves_is_checked_as_before() -> None:
    robot = _robot()
    assert settled(robot, [robot.variable_index["j_left"]]) is robot
