"""`kinopt fk`: poses of links."""

import argparse

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kinopt_ros.commands.arguments import add_json, add_robot, joint_values, print_json, robot_of
from kinopt_ros.errors import UnknownJointError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse, matrix_to_quaternion, matrix_to_rpy
from kinopt_ros.robot.model import RobotModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    add_robot(parser)
    parser.add_argument(
        "--joints",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="rad or m; joints not named keep their default",
    )
    parser.add_argument("--links", nargs="+", metavar="LINK", help="(default: all)")
    parser.add_argument("--frame", metavar="LINK", help="frame of the poses (default: the root link)")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command; return 0."""
    robot = robot_of(args)
    q = _configuration(robot, args.joints)
    links = tuple(args.links or robot.link_names)
    T = forward_kinematics(robot, q, links=(args.frame or robot.root_link, *links))
    T = inverse(T[0]) @ T[1:]
    if args.json:
        print_json(
            {
                "robot": robot.name,
                "frame": args.frame or robot.root_link,
                "links": {
                    link: {
                        "position": pose[:3, 3].tolist(),
                        "quaternion_xyzw": np.roll(matrix_to_quaternion(pose[:3, :3]), -1).tolist(),
                    }
                    for link, pose in zip(links, T, strict=True)
                },
            }
        )
        return 0
    table = Table(
        "link",
        "x",
        "y",
        "z",
        "roll",
        "pitch",
        "yaw",
        title=escape(f"{robot.name} in {args.frame or robot.root_link}"),
    )
    for link, pose in zip(links, T, strict=True):
        numbers = [*pose[:3, 3], *matrix_to_rpy(pose[:3, :3])]
        table.add_row(escape(link), *(f"{number + 0.0:.6f}" for number in numbers))
    Console().print(table)
    return 0


def _configuration(robot: RobotModel, given: list[str]) -> np.ndarray:
    q = robot.default_q.copy()
    for name, value in joint_values("--joints", given).items():
        if name not in robot.variable_index:
            raise UnknownJointError(name, robot.variable_names)
        q[robot.variable_index[name]] = value
    return q
