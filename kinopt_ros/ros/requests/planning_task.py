"""Base of the tasks that take their time: those of requests for motions."""

import time
from abc import abstractmethod
from collections.abc import Sequence

from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.requests.timeouts import check_in_time
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.scene.scene import Scene


class PlanningTask(Task):
    """Task of a request for a motion. Never quick; what it needs is prepared when it begins, and its time not up."""

    def __init__(
        self, client: str, loaded: LoadedRobot, scene: Scene | None, timeout: float, arrived: float
    ) -> None:
        """
        Args:
            client: who asks.
            loaded: robot that was in service when the request came.
            scene: what the motion must be free of collisions with; None: nobody looks.
            timeout: time that the request may take, s.
            arrived: when it came, as a value of time.monotonic().
        """
        super().__init__(client, slow=True)
        self._pool = loaded.pool
        self._checks_collisions = scene is not None
        self._timeout = timeout
        self.arrived = arrived
        self.waited = 0.0
        """Seconds from the request's arrival to the beginning of the work."""

    def check(self) -> None:
        """Look whether it can be answered, as far as the request tells; tasks that can tell override it.

        Raises:
            KinoptError: it cannot, whatever the robot does.
        """

    def must_wait(self) -> bool:
        """Check whether what it needs is still being prepared, and there is time to wait for that."""
        return self._pool.must_wait(self._checks_collisions, True, self.arrived + self._timeout)

    def quick(self, others: Sequence[Task], hurried: bool = False) -> Sequence[Task]:
        """Leave it to the slow lane."""
        return [self, *others]

    def slow(self) -> None:
        """Plan the motion, and answer."""
        self.waited = time.monotonic() - self.arrived
        try:
            self._pool.check_prepared(self._checks_collisions, True)
            check_in_time(self.waited, self._timeout)
            self.answer()
        except Exception as error:  # nothing ends a worker
            self.refuse(error)

    @abstractmethod
    def answer(self) -> None:
        """Plan the motion, and answer; what it raises is the answer, too."""

    @abstractmethod
    def refuse(self, error: Exception) -> None:
        """Answer with an error."""
