"""Forward kinematics of all links of every robot of example-robot-data against Pinocchio."""

from pathlib import Path

import numpy as np
import pytest
from support.pinocchio_states import pinocchio_configuration

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.kinematics.forward import chain_pose, forward_kinematics
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.sources import installed_robots
from kinopt_ros.robot.urdf import robot_from_urdf

pin = pytest.importorskip("pinocchio")
pytestmark = pytest.mark.peers

ROBOTS = {name: path for name, path in installed_robots().items() if "example-robot-data" in str(path)}
XACRO_REMNANT = "ur3"
DRIVER_COMES_LATER = {"alex_psyonic_hands", "romeo", "talos_full_v2", "talos_full_v2_box"}
"""Pinocchio refuses these with mimic=True; there its mimic joints are set one by one."""


def reference(name: str, path: Path):
    return pin.buildModelFromUrdf(str(path), mimic=name not in DRIVER_COMES_LATER)


def worst_difference(model, robot, states):
    data = model.createData()
    ours = forward_kinematics(robot, states)
    frames = [model.getFrameId(link, pin.FrameType.BODY) for link in robot.link_names]
    worst = 0.0
    for q, poses in zip(states, ours, strict=True):
        pin.framesForwardKinematics(model, data, pinocchio_configuration(model, robot, q))
        theirs = np.array([data.oMf[frame].homogeneous for frame in frames])
        worst = max(worst, np.abs(poses - theirs).max())
    return worst


def test_there_are_robots():
    assert len(ROBOTS) >= 60


@pytest.mark.parametrize("name", sorted(set(ROBOTS) - {XACRO_REMNANT}))
def test_all_links_agree(name):
    robot = robot_from_urdf(ROBOTS[name].read_text())
    states = random_configurations(robot, 100, 0)
    assert worst_difference(reference(name, ROBOTS[name]), robot, states) < 1e-9


def test_xacro_remnant_is_refused():
    with pytest.raises(RobotDescriptionError, match="run xacro first"):
        robot_from_urdf(ROBOTS[XACRO_REMNANT].read_text())


def test_planar_and_floating_agree(urdf, tmp_path):
    inside = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/><limit effort="1" velocity="1"/>'
    path = tmp_path / "made.urdf"
    path.write_text(
        urdf(
            f"nav floating world base {inside}",
            f'slide planar base torso {inside}<axis xyz="0 0 1"/>',
            f'turn continuous torso arm {inside}<axis xyz="1 2 3"/>',
        )
    )
    robot = robot_from_urdf(path.read_text())
    states = random_configurations(robot, 100, 0)
    assert worst_difference(pin.buildModelFromUrdf(str(path)), robot, states) < 1e-12


@pytest.mark.parametrize(
    "name", ["panda", "baxter", "talos_reduced", "tiago_dual", "g1_29dof_with_hand_rev_1_0"]
)
def test_chains_between_random_links(name):
    robot = robot_from_urdf(ROBOTS[name].read_text())
    rng = np.random.default_rng(0)
    q = random_configurations(robot, 3, 0)
    poses = forward_kinematics(robot, q)
    for i, j in rng.integers(len(robot.link_names), size=(40, 2)):
        chain = build_chain(robot, robot.link_names[i], robot.link_names[j])
        expected = np.linalg.inv(poses[:, i]) @ poses[:, j]
        np.testing.assert_allclose(chain_pose(chain, q[:, chain.variables]), expected, atol=1e-12)


@pytest.mark.parametrize(("name", "tip"), [("ur5_robot", "tool0"), ("panda", "panda_link7"), ("so101", None)])
def test_jacobian_agrees(name, tip):
    robot = robot_from_urdf(ROBOTS[name].read_text())
    tip = tip or robot.link_names[-1]
    model = reference(name, ROBOTS[name])
    data = model.createData()
    chain = build_chain(robot, robot.root_link, tip)
    frame = model.getFrameId(tip, pin.FrameType.BODY)
    columns = [model.joints[model.getJointId(robot.variable_names[i])].idx_v for i in chain.variables]
    for q in random_configurations(robot, 20, 0):
        theirs = pin.computeFrameJacobian(
            model, data, pinocchio_configuration(model, robot, q), frame, pin.LOCAL_WORLD_ALIGNED
        )
        ours = geometric_jacobian(chain, q[chain.variables])
        np.testing.assert_allclose(ours, theirs[:, columns], atol=1e-12)
