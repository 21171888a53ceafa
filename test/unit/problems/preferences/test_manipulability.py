"""The manipulability index, against Pinocchio and against differences of forward kinematics."""

import numpy as np
import pytest

from kinopt_ros.conformance.robots import two_arms
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import inverse, pose, so3_exp, so3_log
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.preferences.base import sorting_cost
from kinopt_ros.problems.preferences.manipulability import Manipulability
from kinopt_ros.problems.task import Task
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.sources import find_robot, load_robot

TIP = "panda_link8"
TOOL = pose(so3_exp(np.array([0.3, -0.4, 0.8])), np.array([0.1, 0.2, -0.3]))


def test_the_index_of_an_arm_is_that_of_pinocchio_wherever_the_tool_is():
    pinocchio = pytest.importorskip("pinocchio")
    model = pinocchio.buildModelFromUrdf(str(find_robot("panda")[0]))
    data, frame = model.createData(), model.getFrameId(TIP)
    panda = load_robot("panda")
    q = random_configurations(panda, 20, 1)
    T = forward_kinematics(panda, q, links=(TIP,))[:, 0]
    expected = []
    for values in q:
        by_name = dict(zip(panda.variable_names, values, strict=True))
        theirs = np.array([by_name.get(name, 0.0) for name in model.names[1:]])
        J = pinocchio.computeFrameJacobian(model, data, theirs, frame)[:, :7]
        expected.append(np.sqrt(np.linalg.det(J @ J.T)))
    for tool in (None, TOOL):
        problem = ik_problem(panda, T, group="panda_arm", T_link_tool=tool)
        chains = [chain_between(panda, problem.base_link, TIP)]
        index = Manipulability().value(Task(problem, chains), q[:, problem.variables], np.arange(20))
        np.testing.assert_allclose(index, expected, rtol=1e-8)
        problem = ik_problem(panda, T, group="panda_arm", T_link_tool=tool, prefer="manipulability")
        np.testing.assert_allclose(
            -sorting_cost(problem, chains, q[:, None, problem.variables])[:, 0], expected, rtol=1e-8
        )


def test_the_task_is_what_two_links_do_along_axes_that_are_not_free():
    robot, tips = two_arms(), ("l7", "l13")
    q = random_configurations(robot, 3, 2)
    T = forward_kinematics(robot, q, links=tips) @ TOOL
    problem = ik_problem(
        robot, T, tip_link=tips, T_link_tool=TOOL, free_axes=["y", "rz"], locked_joints=["left_2"], state=q
    )
    task = Task(problem, [chain_between(robot, problem.base_link, tip) for tip in tips])
    solved, requests = q[:, problem.variables], np.arange(3)
    J = task.jacobian(solved, requests)
    np.testing.assert_allclose(task.errors(solved, requests), 0.0, atol=1e-12)

    def seen(values):
        """Poses of both tools in their targets, less what is free."""
        full = q.copy()
        full[:, problem.variables] = values
        T_target_tool = inverse(T) @ forward_kinematics(robot, full, links=tips) @ TOOL
        rows = np.concatenate([T_target_tool[..., :3, 3], so3_log(T_target_tool[..., :3, :3])], axis=-1)
        return rows[..., [0, 2, 3, 4]].reshape(3, -1)

    step = 1e-6
    for k in range(len(problem.variables)):
        change = step * np.eye(len(problem.variables))[k]
        slope = (seen(solved + change) - seen(solved - change)) / (2 * step)
        np.testing.assert_allclose(J[:, :, k], slope, atol=1e-8)
    expected = np.sqrt(np.linalg.det(J @ np.swapaxes(J, 1, 2)))
    np.testing.assert_allclose(Manipulability().value(task, solved, requests), expected, rtol=1e-7)


def test_the_score_weighs_the_index_against_the_posture():
    panda = load_robot("panda")
    q = random_configurations(panda, 2, 3)
    T = forward_kinematics(panda, q, links=(TIP,))[:, 0]
    options = {"group": "panda_arm", "prefer": "mid_range"}
    chains = [chain_between(panda, panda.root_link, TIP)]
    plain = ik_problem(panda, T, **options)
    weighed = ik_problem(panda, T, manipulability_weight=3.0, **options)
    given = q[:, None, plain.variables]
    index = Manipulability().value(Task(plain, chains), given[:, 0], np.arange(2))
    score = sorting_cost(weighed, chains, np.concatenate([given, np.full_like(given, np.nan)], axis=1))
    np.testing.assert_allclose(score[:, 0], sorting_cost(plain, chains, given)[:, 0] ** 2 - 3.0 * index)
    assert np.isnan(score[:, 1]).all()
