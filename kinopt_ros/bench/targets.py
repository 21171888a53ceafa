"""Task of a benchmark: a robot, a chain, and targets that can be reached."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Int64
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.sampling import halton_configurations, random_configurations
from kinopt_ros.problems.builder import resolve_chain
from kinopt_ros.robot.chain import KinematicChain, build_chain, joints_between
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import find_robot, load_robot

SAMPLINGS = ("random", "halton")


@dataclass(frozen=True, eq=False)
class IkTask:
    """Targets for one chain. Variables that are not solved for stay at the robot's default configuration."""

    robot: RobotModel
    urdf_text: str
    base_link: str
    tip_link: str
    chain: KinematicChain
    """Chain from base to tip, variables that are not solved for folded in."""
    lower: Annotated[Float64, "n"]
    upper: Annotated[Float64, "n"]
    T_base_target: Annotated[Float64, "N 4 4"]

    @property
    def variables(self) -> Annotated[Int64, "n"]:
        """Indices in the robot's q of the columns of an answer."""
        return self.chain.variables

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables."""
        return tuple(self.robot.variable_names[i] for i in self.variables)

    @property
    def has_mimic_joints(self) -> bool:
        """Whether a mimic joint is on the chain."""
        parts = joints_between(self.robot, self.base_link, self.tip_link)
        return any(joint.mimics is not None for part in parts for joint in part)


def ik_task(
    robot: str | Path, base: str | None, tip: str | None, count: int, sampling: str, seed: int
) -> IkTask:
    """Make poses of the tip at configurations inside the limits.

    Args:
        robot: URDF file or known name.
        base: link in which the targets are given; default: that of the robot's first group.
        tip: link to place; likewise.
        count: number of targets, at least 1.
        sampling: ``random`` (uniform in every joint) or ``halton`` (evenly spread).
        seed: of the sampling; the same seed gives the same targets.
    """
    if count < 1:
        raise InvalidRequestError(f"targets is {count}; allowed is 1 or more")
    if sampling not in SAMPLINGS:
        raise InvalidRequestError(f"sampling is {sampling!r}; allowed is {' or '.join(SAMPLINGS)}")
    model = load_robot(robot)
    base_link, tip_link, joints = resolve_chain(model, None, base, tip)
    moving = [i for name in joints for i in model.variables_of(name)]
    held = {i: float(model.default_q[i]) for i in range(model.nq) if i not in moving}
    chain = build_chain(model, base_link, tip_link, held)
    sample = random_configurations if sampling == "random" else halton_configurations
    T = chain_pose(chain, sample(model, count, seed)[:, chain.variables])
    return IkTask(
        robot=model,
        urdf_text=find_robot(robot)[0].read_text(encoding="utf-8"),
        base_link=base_link,
        tip_link=tip_link,
        chain=chain,
        lower=model.limits.lower[chain.variables],
        upper=model.limits.upper[chain.variables],
        T_base_target=np.ascontiguousarray(T),
    )
