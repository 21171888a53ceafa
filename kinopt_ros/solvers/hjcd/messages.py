"""Messages between the plugin and its child process, as pickles over a socket."""

from dataclasses import dataclass
from typing import Any

from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.hjcd.chain import ChainShape


@dataclass(frozen=True, eq=False)
class Setup:
    """First message. Answered by ``Ready`` or a ``Refusal``."""

    robot: RobotModel
    options: dict[str, Any]
    """Options of the plugin, complete and legal."""
    shapes: tuple[ChainShape, ...]
    """Shapes of the chains whose kernels are to be loaded."""


@dataclass(frozen=True)
class Ready:
    """Message that requests may come."""


@dataclass(frozen=True, eq=False)
class Question:
    """A request. Answered by ``IkCandidates`` or a ``Refusal``. Its deadline holds as it is: processes share the clock
    of ``time.monotonic``."""

    problem: IkProblem
    every_lane: bool


@dataclass(frozen=True)
class Refusal:
    """Message that there is no answer, and why."""

    sentence: str
    later: bool = False
    """Whether it may be asked again, as kernels are being compiled."""
