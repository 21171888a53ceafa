"""Pandas with more joints, as in the paper of HJCD-IK (Table II): its seven joints and links over and over."""

import copy
import xml.etree.ElementTree as ET

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.robot.sources import find_robot

_JOINTS = 7


def extended_panda(joints: int) -> str:
    """Return the URDF text of an arm from ``panda_link0`` to ``panda_link<joints>``, without shapes.

    Joint k is a copy of the Panda's joint (k - 1) mod 7 + 1: where it sits on the link before, axis, limits.

    Raises:
        InvalidRequestError: less than 7 joints, or more than 700.
    """
    if not _JOINTS <= joints <= 100 * _JOINTS:
        raise InvalidRequestError(f"number of joints is {joints}; allowed is 7 to 700")
    panda = ET.fromstring(find_robot("panda")[0].read_text())
    originals = {joint.get("name"): joint for joint in panda.findall("joint")}
    robot = ET.Element("robot", name=f"panda_{joints}")
    for k in range(joints + 1):
        ET.SubElement(robot, "link", name=f"panda_link{k}")
    for k in range(1, joints + 1):
        joint = copy.deepcopy(originals[f"panda_joint{(k - 1) % _JOINTS + 1}"])
        joint.set("name", f"panda_joint{k}")
        for part, link in (("parent", k - 1), ("child", k)):
            element = joint.find(part)
            assert element is not None
            element.set("link", f"panda_link{link}")
        robot.append(joint)
    return ET.tostring(robot, encoding="unicode")
