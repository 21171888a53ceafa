"""Center of mass of a robot and its Jacobian, in float64."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Immutable, taken_over
from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import cross
from kinopt_ros.robot.chain import Motion, joint_motions
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.variables import velocity_columns


def center_of_mass(robot: RobotModel, q: Annotated[Float64, "... nq"]) -> Annotated[Float64, "... 3"]:
    """Compute the center of mass of all links that have a mass (m), in the frame of the root link.

    The root link counts, too, although it does not move; programs that take it for a part of the world leave it out.
    Nothing that the robot carries counts.

    Args:
        robot: the robot; ``robot.inertials`` says which links have a mass.
        q: configurations (rad, m) for any number of states, also none.

    Raises:
        RobotDescriptionError: no link has a mass above 0.
        InvalidStateError: the last dimension is not nq, or a quaternion is zero.
    """
    masses = _masses(robot)
    T = forward_kinematics(robot, q, masses.links)
    center: Float64 = np.einsum("l,...lij,lj->...i", masses.share, T[..., :3, :], masses.center)
    return center


def center_of_mass_jacobian(
    robot: RobotModel, q: Annotated[Float64, "... nq"]
) -> Annotated[Float64, "... 3 nv"]:
    """Compute the velocity of the center of mass, along the axes of the root link, per unit velocity of the variables.

    Columns: one per variable of the whole robot, in their order (m/rad or m/m), but three for the four numbers of a
    quaternion: the angular velocity of a floating joint in its child's frame (see ``kinematics.jacobian``). A variable
    that drives mimic joints moves them all.

    The part of the mass that a joint moves is taken as one body at its own center of mass (D. E. Orin, A. Goswami,
    S.-H. Lee, "Centroidal dynamics of a humanoid robot", Autonomous Robots 35, 2013).

    Args:
        robot: the robot.
        q: configurations (rad, m) for any number of states, also none.

    Raises:
        RobotDescriptionError: no link has a mass above 0.
        InvalidStateError: the last dimension is not nq, or a quaternion is zero.
    """
    masses = _masses(robot)
    T = forward_kinematics(robot, q)
    leading = T.shape[:-3]
    T = T.reshape(-1, len(robot.link_names), 4, 4)
    below_share, below_moment = _below(robot, masses, T)
    columns, nv = velocity_columns(robot)
    J = np.zeros((len(T), 3, nv))
    for joint in robot.joints:
        link = robot.link_index[joint.child_link]
        if below_share[link] == 0.0:
            continue
        T_root_child = T[:, link]
        lever = below_moment[:, link] - below_share[link] * T_root_child[:, :3, 3]
        R = T[:, robot.link_index[joint.parent_link], :3, :3] @ joint.T_parent_joint[:3, :3]
        for motion in joint_motions(joint):
            column = columns[motion.variable]
            if motion.motion is Motion.QUATERNION:
                axes = np.swapaxes(T_root_child[:, :3, :3], -1, -2)
                J[:, :, column : column + 3] += np.swapaxes(cross(axes, lever[:, None]), -1, -2)
                continue
            axis = R @ (motion.multiplier * np.array(motion.axis))
            J[:, :, column] += (
                cross(axis, lever) if motion.motion is Motion.ROTATION else below_share[link] * axis
            )
    return J.reshape(*leading, 3, nv)


@dataclass(frozen=True, eq=False)
class _Masses(Immutable):
    """Links that have a mass above 0."""

    links: tuple[str, ...]
    share: Annotated[Float64, "L"]
    """Of the robot's mass."""
    center: Annotated[Float64, "L 4"]
    """Center of mass in the link's frame (m), and 1."""

    def __post_init__(self) -> None:
        taken_over(self, "share", "center")


@remembered
def _masses(robot: RobotModel) -> _Masses:
    links = tuple(
        name for name in robot.link_names if name in robot.inertials and robot.inertials[name].mass > 0.0
    )
    if not links:
        raise RobotDescriptionError(
            f"robot {robot.name!r} has no center of mass: none of its {len(robot.link_names)} links has an <inertial> "
            "with a mass above 0; give the links of the URDF their masses"
        )
    mass = np.array([robot.inertials[name].mass for name in links])
    center = np.array([[*robot.inertials[name].center_of_mass, 1.0] for name in links])
    return _Masses(links, mass / mass.sum(), center)


def _below(
    robot: RobotModel, masses: _Masses, T_root_link: Annotated[Float64, "B L 4 4"]
) -> tuple[Annotated[Float64, "L"], Annotated[Float64, "B L 3"]]:
    """Return for every link the share of the mass that it and the links below it have, and the share's moment (m)."""
    share = np.zeros(len(robot.link_names))
    moment = np.zeros((len(T_root_link), len(robot.link_names), 3))
    for name, own, center in zip(masses.links, masses.share, masses.center, strict=True):
        i = robot.link_index[name]
        share[i] = own
        moment[:, i] = own * (T_root_link[:, i, :3] @ center)
    for joint in reversed(robot.joints):
        parent, child = robot.link_index[joint.parent_link], robot.link_index[joint.child_link]
        share[parent] += share[child]
        moment[:, parent] += moment[:, child]
    return share, moment
