"""An independent judge: Pinocchio's kinematics, limits and mimic joints read from the URDF here, tolerances by the
judge's own formulas. It shares no code with the solvers, nor with the verification that they pass."""

import math
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.verify.robots import Subject
from kinopt_ros.problems.ik import IkProblem, PoseTarget, Tolerance
from kinopt_ros.solvers.result import IkResult

_POSITION_ROUNDING = 1e-9
_ANGLE_ROUNDING = 2e-8
"""Two ways to compute a pose differ by some 1e-15; an angle of a rotation near 0, by log3, by some 1e-8 (rad)."""
_MIMIC_ROUNDING = 1e-12
_MIMIC_SAMPLES = 2001
_MISTAKEN = 0.05
"""Share of a range; limits of a mimic joint and of its driver that have no more in common are a mistake of the file."""


@dataclass(frozen=True)
class Objection:
    """Reason why a success is none."""

    request: int
    solution: int
    reason: str


class Judge:
    """Judges answers for one robot."""

    def __init__(self, subject: Subject) -> None:
        import pinocchio

        self._pin: Any = pinocchio
        self.model: Any = pinocchio.buildModelFromXML(subject.urdf, mimic=False)
        self.data: Any = self.model.createData()
        self._frames = {
            link: self.model.getFrameId(link, pinocchio.FrameType.BODY)
            for link in (subject.base, *subject.tips)
        }
        self._places: dict[str, tuple[int, bool]] = {}
        for name in list(self.model.names)[1:]:
            joint = self.model.joints[self.model.getJointId(name)]
            self._places[name] = (joint.idx_q, joint.nq == 2)
        self._limits: dict[str, tuple[float, float]] = {}
        self._mimics: dict[str, tuple[str, float, float]] = {}
        for element in ElementTree.fromstring(subject.urdf).iter("joint"):
            limit, mimic = element.find("limit"), element.find("mimic")
            if limit is not None and element.get("type") in ("revolute", "prismatic"):
                self._limits[element.attrib["name"]] = (
                    float(limit.get("lower", 0.0)),
                    float(limit.get("upper", 0.0)),
                )
            if mimic is not None:
                self._mimics[element.attrib["name"]] = (
                    mimic.attrib["joint"],
                    float(mimic.get("multiplier", 1.0)),
                    float(mimic.get("offset", 0.0)),
                )
        self._mimic_limits = self._limits_that_count()
        self.worst = 0.0
        """Largest error of a success in units of its tolerance."""

    def __call__(
        self, problem: IkProblem, result: IkResult, names: tuple[str, ...], locked: dict[str, Float64]
    ) -> list[Objection]:
        """Return objections to the successes of a result.

        Args:
            problem: what was asked.
            result: the answer.
            names: names of the robot's variables.
            locked: variables that must not be among the answer's, with the values they were to keep.
        """
        objections = []
        for name in locked:
            if name in result.joint_names:
                objections.append(Objection(0, 0, f"locked joint {name} was solved for"))
        for b in np.flatnonzero(result.success):
            state = dict(zip(names, problem.state[b].tolist(), strict=True))
            found = [q for q in result.q[b] if not np.isnan(q).any()]
            if not found:
                objections.append(Objection(int(b), 0, "a success without a solution"))
            for k, q in enumerate(found):
                values = state | dict(zip(result.joint_names, q.tolist(), strict=True))
                reason = self._limit_objection(values, result.joint_names) or self._pose_objection(
                    problem, int(b), values
                )
                if reason:
                    objections.append(Objection(int(b), k, reason))
            if len(found) > 1:
                reason = self._distinct_objection(problem, result, found)
                if reason:
                    objections.append(Objection(int(b), 0, reason))
        return objections

    def _value(self, name: str, values: dict[str, float]) -> float:
        if name in self._mimics:
            leader, multiplier, offset = self._mimics[name]
            return multiplier * self._value(leader, values) + offset
        return values[name]

    def _limit_objection(self, values: dict[str, float], solved: tuple[str, ...]) -> str:
        for name in solved:
            lower, upper = self._limits.get(name, (-math.inf, math.inf))
            if not lower <= values[name] <= upper:
                return f"{name} is at {values[name]!r}, outside {lower} to {upper}"
        for name, (lower, upper) in self._mimic_limits.items():
            if self._root(name) in solved:
                value = self._value(name, values)
                if not self._inside(name, values):
                    return f"mimic joint {name} is at {value!r}, outside {lower} to {upper}"
        return ""

    def _limits_that_count(self) -> dict[str, tuple[float, float]]:
        """Limits of mimic joints, but those that leave the driver (nearly) nothing: there the driver's alone hold, as
        MoveIt and Pinocchio always have it. Found by trying values, joint by joint in the order of the file."""
        found = {}
        possible = dict(self._limits)
        for name in (name for name in self._mimics if name in self._limits):
            lower, upper = self._limits[name]
            root = self._root(name)
            if root in possible:
                low, high = possible[root]
                driver = np.linspace(low, high, _MIMIC_SAMPLES)
                kept = [value for value in driver.tolist() if self._inside(name, {root: value})]
                # It follows on a straight line: where its driver must be for each of its own values.
                zero, one = self._value(name, {root: 0.0}), self._value(name, {root: 1.0})
                own = np.linspace(lower, upper, _MIMIC_SAMPLES if zero != one and lower < upper else 0)
                where = (own - zero) / (one - zero or 1.0)
                needed = [value for value in where.tolist() if low <= value <= high]
                share = max(len(kept), len(needed)) / _MIMIC_SAMPLES
                if not share or (low < high and share <= _MISTAKEN):
                    continue
                possible[root] = min(kept + needed), max(kept + needed)
            found[name] = lower, upper
        return found

    def _inside(self, name: str, values: dict[str, float]) -> bool:
        lower, upper = self._limits[name]
        return lower - _MIMIC_ROUNDING <= self._value(name, values) <= upper + _MIMIC_ROUNDING

    def _root(self, name: str) -> str:
        while name in self._mimics:
            name = self._mimics[name][0]
        return name

    def configuration(self, values: dict[str, float]) -> Float64:
        """Return Pinocchio's q of the robot's variables."""
        q = np.empty(self.model.nq)
        for name, (place, circular) in self._places.items():
            value = self._value(name, values)
            if circular:
                q[place], q[place + 1] = math.cos(value), math.sin(value)
            else:
                q[place] = value
        return q

    def _pose_objection(self, problem: IkProblem, b: int, values: dict[str, float]) -> str:
        q = self.configuration(values)
        self._pin.framesForwardKinematics(self.model, self.data, q)
        base = self.data.oMf[self._frames[problem.base_link]]
        for target in problem.targets:
            tip = base.actInv(self.data.oMf[self._frames[target.link]])
            reason = self._target_objection(target, b, tip)
            if reason:
                return f"{target.link}: {reason}"
        return ""

    def _target_objection(self, target: PoseTarget, b: int, tip: Any) -> str:
        if target.T_link_tool is not None:
            tip = tip * self._pin.SE3(target.T_link_tool)
        T = target.T_base_target[b]
        error = self._pin.SE3(T).actInv(tip)
        ratio = max(
            _ratio(error.translation, target.position_tolerance, _POSITION_ROUNDING),
            _ratio(
                self._rotation(error.rotation, target.orientation_tolerance),
                target.orientation_tolerance,
                _ANGLE_ROUNDING,
            ),
        )
        self.worst = max(self.worst, ratio)
        if ratio > 1.0:
            return f"off by {ratio:.6g} times the tolerance"
        return ""

    def _rotation(self, R: Float64, tolerance: Tolerance) -> Float64:
        """Return the rotation error by components; see kinematics/pose_errors.py for what they mean."""
        free = [
            math.isinf(value) for value in (tolerance if isinstance(tolerance, tuple) else (tolerance,) * 3)
        ]
        if sum(free) == 3:
            return np.zeros(3)
        if sum(free) == 0:
            return np.asarray(self._pin.log3(R))
        q = self._pin.Quaternion(R)
        w, v = q.w, np.array([q.x, q.y, q.z])
        axis = (
            np.array([float(f) for f in free]) if sum(free) == 1 else np.array([float(not f) for f in free])
        )
        # Twist about the axis, and the swing that is left: R = swing twist.
        twist = self._pin.Quaternion(w, *(axis * (axis @ v)))
        if twist.norm() < 1e-12:
            return np.full(3, math.pi)
        twist.normalize()
        if sum(free) == 2:
            angle = 2.0 * math.atan2(float(axis @ v), w)
            return axis * math.remainder(angle, 2.0 * math.pi)
        return np.asarray(self._pin.log3((q * twist.inverse()).toRotationMatrix()))

    def _distinct_objection(self, problem: IkProblem, result: IkResult, found: list[Float64]) -> str:
        for i, a in enumerate(found):
            for b in found[:i]:
                difference = np.abs(a - b)
                if not problem.turns:
                    turned = np.abs(np.remainder(a - b + math.pi, 2.0 * math.pi) - math.pi)
                    rotates = [name in self._rotating() for name in result.joint_names]
                    difference = np.where(rotates, np.minimum(difference, turned), difference)
                if difference.max(initial=0.0) <= problem.min_separation * (1.0 - 1e-9):
                    return f"two solutions differ by {difference.max(initial=0.0):.3g} only"
        return ""

    def _rotating(self) -> set[str]:
        """Return joints that a whole turn leaves as they are."""
        if not hasattr(self, "_turning"):
            partly = {
                self._root(leader) for leader, multiplier, _ in self._mimics.values() if multiplier % 1.0
            }
            shortnames = (self.model.joints[self.model.getJointId(n)].shortname() for n in self._places)
            self._turning = {
                name
                for name, short in zip(self._places, shortnames, strict=True)
                if "P" not in short.removeprefix("JointModel") and name not in partly
            }
        return self._turning


def _ratio(error: Any, tolerance: Tolerance, rounding: float) -> float:
    """Return the error in units of the tolerance."""
    if not isinstance(tolerance, tuple):
        return 0.0 if math.isinf(tolerance) else max(0.0, math.hypot(*error) - rounding) / tolerance
    return max(
        0.0 if math.isinf(limit) else max(0.0, abs(float(value)) - rounding) / limit
        for value, limit in zip(error, tolerance, strict=True)
    )
