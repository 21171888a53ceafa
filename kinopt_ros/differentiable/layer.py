"""Forward kinematics as a layer of a neural network."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from kinopt_ros.differentiable.forward import ForwardKinematics, forward_kinematics
from kinopt_ros.differentiable.parameters import KinematicParameters
from kinopt_ros.robot.model import RobotModel


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KinematicsLayer:
    """Poses of links: (..., nq) -> (..., L, 4, 4). A pytree whose leaves, if there are any, are what can be trained, so
    that equinox and plain JAX take it as a part of a model; in flax use it as any other function."""

    parameters: KinematicParameters | None
    """Trainable parameters; None if the description's numbers are used."""
    function: ForwardKinematics = field(metadata={"static": True})

    def __call__(self, q: Any) -> jax.Array:
        """Compute ``T_base_link`` of every link, as ``ForwardKinematics`` does."""
        return self.function(q, self.parameters)


def kinematics_layer(
    robot: RobotModel,
    links: Sequence[str] | None = None,
    base_link: str | None = None,
    trainable: bool = False,
) -> KinematicsLayer:
    """Build forward kinematics as a layer.

    Args:
        robot: the robot.
        links: as in ``forward_kinematics``.
        base_link: as in ``forward_kinematics``.
        trainable: whether the model parameters are leaves, which an optimizer may change (calibration).

    Raises:
        UnknownLinkError: a link that the robot does not have.
    """
    parameters = KinematicParameters.of(robot) if trainable else None
    return KinematicsLayer(parameters, forward_kinematics(robot, links, base_link))
