"""Arms of the paper: Panda, Fetch, and Pandas with more joints."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.extended_panda import extended_panda
from kinopt_ros.bench.hjcd.fetch import fetch
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.sampling import halton_configurations
from kinopt_ros.robot.chain import KinematicChain, chain_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf

ENDS = {"panda": ("panda_link0", "panda_link8"), "fetch": ("torso_lift_link", "wrist_roll_link")}


@dataclass(frozen=True, eq=False)
class Arm:
    """A chain of a robot, and targets of a Halton sequence, which can be reached."""

    name: str
    robot: RobotModel
    chain: KinematicChain
    T_base_target: Annotated[Float64, "N 4 4"]


def arm(name: str, targets: int, seed: int) -> Arm:
    """``panda``, ``fetch`` (the seven joints of its arm), or ``panda_<joints>``.

    Raises:
        InvalidRequestError: another name.
    """
    if name in ENDS:
        robot, (base, tip) = fetch() if name == "fetch" else load_robot(name), ENDS[name]
    elif name.startswith("panda_") and name[6:].isdecimal():
        robot, base, tip = (
            robot_from_urdf(extended_panda(int(name[6:]))),
            "panda_link0",
            f"panda_link{name[6:]}",
        )
    else:
        raise InvalidRequestError(f"robot is {name!r}; allowed are {', '.join(ENDS)} and panda_<joints>")
    chain = chain_between(robot, base, tip)
    q = halton_configurations(robot, targets, seed)[:, chain.variables]
    return Arm(name, robot, chain, np.ascontiguousarray(chain_pose(chain, q)))
