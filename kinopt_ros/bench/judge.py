"""Pinocchio as the judge: errors and limit violations of answers, independent of this project's kinematics."""

from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import SolverUnavailableError


class Verdict(NamedTuple):
    """Verdict on every answer: distance (m), geodesic angle (rad), how far outside the limits (rad or m)."""

    position_error: Annotated[Float64, "N"]
    orientation_error: Annotated[Float64, "N"]
    limit_violation: Annotated[Float64, "N"]


class Judge:
    """Forward kinematics by Pinocchio for the variables of a task."""

    def __init__(self, task: IkTask) -> None:
        if find_spec("pinocchio") is None:
            raise SolverUnavailableError(
                "the benchmark is judged by Pinocchio; install it with `pip install pin`"
            )
        import pinocchio

        self._pin: Any = pinocchio
        self._task = task
        # Pinocchio refuses some mimic joints that precede their leader; none on the chain, none needed.
        self.model: Any = pinocchio.buildModelFromXML(task.urdf_text, mimic=task.has_mimic_joints)
        self.data: Any = self.model.createData()
        self.base, self.tip = (
            self.model.getFrameId(link, pinocchio.FrameType.BODY) for link in (task.base_link, task.tip_link)
        )
        self._default = self.configuration(
            task.robot.default_q, range(task.robot.nq), pinocchio.neutral(self.model)
        )

    def configuration(self, q: Float64, variables: Any, start: Float64 | None = None) -> Float64:
        """Return Pinocchio's configuration vector for values of some of the robot's variables."""
        full = (self._default if start is None else start).copy()
        for variable, value in zip(variables, q, strict=True):
            name = self._task.robot.variable_names[variable]
            if not self.model.existJointName(name):  # planar and floating joints have several variables each
                continue
            joint = self.model.joints[self.model.getJointId(name)]
            if joint.nq == 2:  # continuous: a point on the unit circle
                full[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
            else:
                full[joint.idx_q] = value
        return full

    def pose(self, q: Annotated[Float64, "n"]) -> Any:
        """Return T_base_tip as pinocchio.SE3."""
        self._pin.framesForwardKinematics(self.model, self.data, self.configuration(q, self._task.variables))
        return self.data.oMf[self.base].actInv(self.data.oMf[self.tip])

    def __call__(self, answers: Annotated[Float64, "N n"]) -> Verdict:
        """Judge one answer per target of the task; NaN rows get infinite errors."""
        n = len(answers)
        position, orientation = np.full(n, np.inf), np.full(n, np.inf)
        violation = np.maximum(self._task.lower - answers, answers - self._task.upper).max(
            axis=1, initial=0.0
        )
        for i, (q, T) in enumerate(zip(answers, self._task.T_base_target, strict=True)):
            if not np.isfinite(q).all():
                violation[i] = 0.0
                continue
            reached = self.pose(q)
            position[i] = np.linalg.norm(reached.translation - T[:3, 3])
            orientation[i] = np.linalg.norm(self._pin.log3(T[:3, :3].T @ reached.rotation))
        return Verdict(position, orientation, violation)
