"""Reader of joint states that requests give as flat arrays."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidStateError, UnknownJointError
from kinopt_ros.problems.validation import check_state
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context


def states_from_positions(
    context: Context,
    robot: RobotModel,
    joint_names: Sequence[str],
    positions: Sequence[float],
    base: Annotated[Float64, "nq"],
) -> Annotated[Float64, "N nq"]:
    """Return ``base`` with what each of N rows of positions names; ``base`` alone if nothing is named.

    Fixed and mimic joints may be named: their values follow from the others.

    Raises:
        KinoptError: an unknown joint, one twice, a number that is not finite, or too many or too few of them.
    """
    names = list(joint_names)
    if not names:
        if positions:
            raise InvalidRequestError(f"{len(positions)} positions were given, but no joint_names")
        return base[None]
    if len(set(names)) != len(names):
        raise InvalidRequestError("joint_names has a name twice")
    for name in names:
        if name not in robot.variable_index and name not in robot.joint_by_name:
            raise UnknownJointError(name, robot.variable_names)
    values = np.array(positions)
    if values.size == 0 or values.size % len(names):
        raise InvalidStateError(
            f"{values.size} positions were given for {len(names)} joint_names; allowed is a multiple of those"
        )
    rows = values.reshape(-1, len(names))
    context.check_batch(len(rows), "states")
    q = np.repeat(base[None], len(rows), axis=0)
    columns = [i for i, name in enumerate(names) if name in robot.variable_index]
    q[:, [robot.variable_index[names[i]] for i in columns]] = rows[:, columns]
    for index, state in enumerate(q):
        check_state(state, robot, f"state {index}")
    return q
