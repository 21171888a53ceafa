"""How far the shapes of two bodies can move against each other while joints move by so much: never less than that."""

from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.collision.bodies import WORLD, Bodies
from kinopt_ros.robot.chain import Motion, joint_motions
from kinopt_ros.robot.model import Joint, RobotModel


def pair_levers(
    robot: RobotModel,
    bodies: Bodies,
    variables: Annotated[Int64, "n"],
    largest: Annotated[Float64, "nq"],
) -> Annotated[Float64, "P n"]:
    """``levers @ change`` bounds how much nearer a pair's shapes can come when the variables change by at most so much.

    A point moves by no more than its distance from a joint's axis times the angle, joint by joint; the distance is
    at most the length of the way along the links between. Joints that carry both shapes do not count.

    Args:
        robot: the robot.
        bodies: what is compared.
        variables: those that change, of joints with one variable each.
        largest: the largest absolute value that every variable of the robot takes, rad or m.
    """
    S = len(bodies.shapes)
    T, halves = bodies.boxes
    extent = np.linalg.norm(T[:, :3, 3], axis=1) + np.linalg.norm(halves, axis=1)
    extent[bodies.without_end] = np.inf
    levers, carried = np.zeros((S, len(variables))), np.zeros((S, len(variables)), dtype=np.bool_)
    shapes_on = {link: np.flatnonzero(bodies.link == number) for number, link in enumerate(bodies.links)}
    assert WORLD not in range(len(bodies.links))
    for column, variable in enumerate(variables.tolist()):
        for joint in robot.joints:
            # Several joints follow one variable where there are mimic joints: what they do adds up.
            if joint.first_variable != variable:
                continue
            lengths = _lengths_below(robot, joint, largest)
            for step in joint_motions(joint):
                turns = step.motion is Motion.ROTATION
                for link, shapes in shapes_on.items():
                    if link in lengths:
                        lever = lengths[link] + extent[shapes] if turns else 1.0
                        levers[shapes, column] += abs(step.multiplier) * lever
                        carried[shapes, column] = True
    a, b = bodies.pairs.T
    # What carries both by one and the same joint moves neither against the other, unless that joint has followers.
    both = carried[a] & carried[b] & ~_followed(robot, variables)
    return np.where(both, 0.0, levers[a] + levers[b])


def _lengths_below(robot: RobotModel, joint: Joint, largest: Float64) -> dict[str, float]:
    """For every link that a joint carries an upper bound of the distance of its origin from the joint's axis, m."""
    lengths = {joint.child_link: 0.0}
    for other in robot.joints:  # parents come first
        if other is joint or other.parent_link not in lengths:
            continue
        way = float(np.linalg.norm(other.T_parent_joint[:3, 3]))
        for step in joint_motions(other):
            if step.motion is Motion.TRANSLATION:
                way += abs(step.multiplier) * float(largest[step.variable]) + abs(step.offset)
        lengths[other.child_link] = lengths[other.parent_link] + way
    return lengths


def _followed(robot: RobotModel, variables: Int64) -> Annotated[np.ndarray, "n"]:
    """Which variables drive more than one joint."""
    drivers = [joint.first_variable for joint in robot.joints]
    return np.array([drivers.count(variable) > 1 for variable in variables.tolist()], dtype=np.bool_)
