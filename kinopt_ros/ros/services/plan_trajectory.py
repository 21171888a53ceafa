"""~/plan_trajectory: a goal in, one verified motion out, for those who want to wait for it."""

import time
from collections.abc import Sequence
from typing import Any

from kinopt_msgs.srv import PlanTrajectory
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import Task
from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.ros.requests.trajectory import TrajectoryRequest, read_trajectory_request
from kinopt_ros.ros.requests.trajectory_work import check_in_time, plan
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.service import QueuedService


class PlanTrajectoryService(QueuedService):
    """Service that plans one motion, as the action ~/optimize_trajectory does; it moves nothing."""

    name = "plan_trajectory"
    type = PlanTrajectory
    takes_seconds = True

    def task(self, request: Any, reply: Reply) -> "_PlanTask":
        """Return the task of a request, as QueuedService has it."""
        asked = read_trajectory_request(self._context, request, reply.arrived)
        return _PlanTask(request.client, asked, reply, self._context.statistics)


class _PlanTask(Task):
    """One request; never quick."""

    def __init__(self, client: str, asked: TrajectoryRequest, reply: Reply, statistics: Statistics) -> None:
        super().__init__(client, slow=True)
        self.asked = asked
        self._reply = reply
        self._statistics = statistics

    def must_wait(self) -> bool:
        """Check whether what it needs is still being prepared, and there is time to wait for that."""
        until = self._reply.arrived + self.asked.timeout
        return self.asked.loaded.pool.must_wait(self.asked.problem.scene is not None, True, until)

    def quick(self, others: Sequence[Task], hurried: bool = False) -> Sequence[Task]:
        """Leave it to the slow lane."""
        return [self, *others]

    def slow(self) -> None:
        """Plan the motion, and answer."""
        response = self._reply.response()
        response.queue_time = self._reply.queue_time = time.monotonic() - self._reply.arrived
        try:
            self.asked.loaded.pool.check_prepared(self.asked.problem.scene is not None, True)
            check_in_time(response.queue_time, self.asked.timeout)
            plan(self.asked, response, self._statistics, None)
        except Exception as error:  # nothing ends a worker
            self._reply.refuse(error)
            return
        response.wall_time = time.monotonic() - self._reply.arrived
        self._reply.send(response)

    def refuse(self, error: KinoptError) -> None:
        """Answer with an error."""
        self._reply.refuse(error)
