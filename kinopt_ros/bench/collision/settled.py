"""Robots that touch themselves where they stand, with the SRDF that their users would write."""

from collections.abc import Collection
from xml.sax.saxutils import quoteattr

from kinopt_ros.collision.pairs import checked_pairs
from kinopt_ros.robot.chain import chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.srdf import apply_srdf
from kinopt_ros.robot.srdf_line import disable_collisions
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.verification.collision import check_collisions


def settled(robot: RobotModel, moved: Collection[int]) -> RobotModel:
    """Return the robot with links allowed to touch that do so at the default configuration.

    They are pairs that none of the variables ``moved`` brings nearer: fingers of a hand that the benchmark does not
    move. All other pairs are checked as before.
    """
    if robot.disabled_collisions:
        return robot
    [contacts] = check_collisions(robot, EMPTY_SCENE, robot.default_q[None]).contacts
    touching = {
        (contact.a, contact.b)
        for contact in contacts
        if not set(chain_between(robot, contact.a, contact.b).variables.tolist()) & set(moved)
    }
    if not touching:
        return robot
    pairs = sorted({*checked_pairs(robot).excluded, *touching})
    lines = "".join(disable_collisions(*pair, "Default") for pair in pairs)
    return apply_srdf(robot, f"<robot name={quoteattr(robot.name)}>{lines}</robot>")
