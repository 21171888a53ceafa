"""Torso and arm of a Fetch, without shapes."""

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf

_JOINTS = (
    ("torso_lift", "prismatic", "-0.086875 0 0.37743", "0 0 1", (0.0, 0.38615)),
    ("shoulder_pan", "revolute", "0.119525 0 0.34858", "0 0 1", (-1.6056, 1.6056)),
    ("shoulder_lift", "revolute", "0.117 0 0.06", "0 1 0", (-1.221, 1.518)),
    ("upperarm_roll", "continuous", "0.219 0 0", "1 0 0", None),
    ("elbow_flex", "revolute", "0.133 0 0", "0 1 0", (-2.251, 2.251)),
    ("forearm_roll", "continuous", "0.197 0 0", "1 0 0", None),
    ("wrist_flex", "revolute", "0.1245 0 0", "0 1 0", (-2.16, 2.16)),
    ("wrist_roll", "continuous", "0.1385 0 0", "1 0 0", None),
)
"""Name, type, place on the link before (m), axis, limits (m or rad); numbers of Fetch Robotics' fetch_description."""


def fetch() -> RobotModel:
    """Return the arm from ``base_link`` over ``torso_lift_link``, the base of its seven joints, to
    ``wrist_roll_link``."""
    text, parent = '<link name="base_link"/>', "base_link"
    for name, kind, xyz, axis, limits in _JOINTS:
        ends = "" if limits is None else f'lower="{limits[0]}" upper="{limits[1]}"'
        text += (
            f'<link name="{name}_link"/><joint name="{name}_joint" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{name}_link"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>'
            f'<limit {ends} velocity="1" effort="30"/></joint>'
        )
        parent = f"{name}_link"
    return robot_from_urdf(f'<robot name="fetch">{text}</robot>')
