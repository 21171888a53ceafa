"""Stand-in that goes on in a child process once the device is lost for this one."""

import threading
from collections.abc import Mapping
from typing import Any

from kinopt_ros.errors import NotReadyError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.hjcd.chain import ChainShape
from kinopt_ros.solvers.hjcd.child import Child, ChildError
from kinopt_ros.solvers.result import IkCandidates


class StandIn:
    """At most one child process at a time; a new one when a request comes after its end. May be used from several
    threads."""

    def __init__(
        self, robot: RobotModel, options: Mapping[str, Any], shapes: tuple[ChainShape, ...], reason: str
    ) -> None:
        """Starts nothing.

        Args:
            robot: the robot.
            options: complete and legal; the device that was lost is named.
            shapes: of chains whose requests were served, which shall not have to wait.
            reason: why the device is lost.
        """
        self._robot, self._options, self._shapes, self.reason = robot, options, shapes, reason
        self._child: Child | None = None
        self._closed = False
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        """Process id of the child; None if there is none."""
        child = self._child
        return None if child is None else child.pid

    def begin(self) -> None:
        """Start a child, and do not wait for it.

        Raises:
            ChildError: there cannot be one.
        """
        self._some_child()

    def solve(self, problem: IkProblem, every_lane: bool) -> IkCandidates:
        """Return the child's answer.

        Raises:
            ChildError: it did not start, died, hung, or said no; it is ended.
            NotReadyError: it is starting, or compiles, and there is no time to wait.
        """
        child = self._some_child()
        if problem.deadline is not None and not child.started.done():
            raise NotReadyError(
                f"solver hjcd has lost its device ({self.reason}) and starts a child process, which no deadline waits "
                "for; ask again soon"
            )
        try:
            child.started.result()
            return child.solve(problem, every_lane)
        except ChildError:
            self._drop(child)
            raise

    def close(self) -> None:
        """End the child. No other one is started."""
        with self._lock:
            self._closed = True
            child = self._child
        if child is not None:
            self._drop(child)

    def _some_child(self) -> Child:
        with self._lock:
            if self._closed:
                raise ChildError("the solver is closed")
            if self._child is None:
                self._child = Child(self._robot, self._options, self._shapes)
            return self._child

    def _drop(self, child: Child) -> None:
        with self._lock:
            if self._child is child:
                self._child = None
        child.end()
