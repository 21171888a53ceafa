"""Arrays of frozen dataclasses: what was checked stays as it was."""

from dataclasses import fields

import numpy as np
import pytest

from kinopt_ros.array import all_set
from kinopt_ros.conformance.robots import seven_revolute
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError
from kinopt_ros.geometry.shapes import Box, HeightMap, Mesh, Octomap, PlacedShape, PointCloud
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import PoseTarget
from kinopt_ros.problems.trajectory import JointGoal
from kinopt_ros.scene.scene import AttachedObject, SceneObject
from kinopt_ros.solvers.registry import create_solver
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

POSES = np.repeat(np.eye(4)[None], 3, axis=0)
CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
TRIANGLES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
BOX = (PlacedShape(Box(0.1, 0.1, 0.1), np.eye(4)),)


@pytest.mark.parametrize(
    ("memory", "make", "name"),
    [
        (POSES, lambda a: SceneObject("box", BOX, a[1]), "T_root_object"),
        (POSES, lambda a: AttachedObject("box", BOX, "hand", a[1], frozenset()), "T_link_object"),
        (POSES, lambda a: PlacedShape(Box(1.0, 1.0, 1.0), a[1]), "T_frame_shape"),
        (np.zeros((5, 4)), lambda a: PointCloud(a[:, :3], 0.01), "points"),
        (np.ones((5, 4)), lambda a: Octomap(a[:, :3], np.ones(5)), "centers"),
        (np.ones((5, 4)), lambda a: Octomap(np.zeros((5, 3)), a[:, 3]), "sizes"),
        (np.zeros((5, 4)), lambda a: HeightMap(a[:3], 0.1), "heights"),
        (CORNERS, lambda a: Mesh(a[:], TRIANGLES.copy()), "vertices"),
        (TRIANGLES, lambda a: Mesh(CORNERS.copy(), a[:]), "triangles"),
        (POSES[0], lambda a: PoseTarget("hand", a[None]), "T_base_target"),
        (POSES, lambda a: PoseTarget("hand", np.eye(4)[None], T_link_tool=a[1]), "T_link_tool"),
        (np.zeros((2, 7)), lambda a: JointGoal(a[1]), "q"),
        (
            np.zeros((2, 2, 1)),
            lambda a: JointTrajectory(("j",), np.arange(2.0), a[0], np.zeros((2, 1)), np.zeros((2, 1))),
            "position",
        ),
        (np.zeros(15).tobytes(), lambda a: PointCloud(np.frombuffer(a).reshape(5, 3), 0.01), "points"),
        (bytearray(120), lambda a: PointCloud(np.frombuffer(a).reshape(5, 3), 0.01), "points"),
    ],
)
def test_a_part_of_somebodys_memory_is_copied(memory, make, name) -> None:  # type: ignore[no-untyped-def]
    memory = memory.copy() if isinstance(memory, np.ndarray) else memory
    made = make(memory)
    before = getattr(made, name).copy()
    if isinstance(memory, np.ndarray):
        memory += 1
    elif isinstance(memory, bytearray):
        memory[:] = b"\xff" * len(memory)
    np.testing.assert_array_equal(getattr(made, name), before)
    assert not getattr(made, name).flags.writeable


def test_an_array_of_its_own_is_taken_over() -> None:
    points = np.zeros((5, 3))
    assert PointCloud(points, 0.01).points is points
    assert not points.flags.writeable
    assert PointCloud(points[:3], 0.01).points.base is points  # nobody can write to it


@pytest.mark.parametrize("flags", [[], [True], [False], [True, True], [True, False]])
def test_all_set(flags: list[bool]) -> None:
    assert all_set(np.array(flags, dtype=np.bool_)) is all(flags)
    assert all_set(np.array([flags], dtype=np.bool_)) is all(flags)


def test_lists_are_taken_for_goals_and_refused_by_name_elsewhere() -> None:
    goal = JointGoal([0.0, 1.0])  # type: ignore[arg-type]
    assert goal.q.tolist() == [0.0, 1.0]
    target = PoseTarget("tip", [np.eye(4).tolist()])  # type: ignore[arg-type]
    np.testing.assert_array_equal(target.T_base_target, np.eye(4)[None])
    with pytest.raises(InvalidGoalError, match="q must be an array of real numbers"):
        JointGoal([[0.0], [1.0, 2.0]])  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match=r"T_frame_shape of PlacedShape is .*; allowed is an array"):
        PlacedShape(Box(1.0, 1.0, 1.0), np.eye(4).tolist())  # type: ignore[arg-type]


def test_what_is_filled_at_once_has_all_fields() -> None:
    robot = seven_revolute()
    pose = np.eye(4)
    pose[2, 3] = 0.5
    problem = ik_problem(robot, pose)
    for made in (problem, problem.targets[0], create_solver("cpu", robot).solve_ik(problem)):
        assert {field.name for field in fields(made)} <= set(vars(made)), type(made).__name__


def test_what_is_filled_at_once_takes_over_its_arrays() -> None:
    writable = np.eye(4)[None].repeat(2, axis=0)
    given = {"link": "hand", "T_base_target": writable[:1], "T_link_tool": None, "weights": None}
    target = PoseTarget.filled(given | {"position_tolerance": 1e-3, "orientation_tolerance": 1e-2})
    assert target.plain == (1e-3, 1e-2)
    assert not target.T_base_target.flags.writeable
    writable[0, 0, 3] = 1.0
    assert target.T_base_target[0, 0, 3] == 0.0
