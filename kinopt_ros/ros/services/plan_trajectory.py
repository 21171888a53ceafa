"""~/plan_trajectory: a goal in, one verified motion out, for those who want to wait for it."""

import time
from typing import Any

from kinopt_msgs.srv import PlanTrajectory
from kinopt_ros.planning.statistics import Statistics
from kinopt_ros.ros.requests.planning_task import PlanningTask
from kinopt_ros.ros.requests.trajectory import TrajectoryRequest, read_trajectory_request
from kinopt_ros.ros.requests.trajectory_work import check_request, plan
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


class _PlanTask(PlanningTask):
    """One request."""

    def __init__(self, client: str, asked: TrajectoryRequest, reply: Reply, statistics: Statistics) -> None:
        super().__init__(client, asked.loaded, asked.problem.scene, asked.timeout, reply.arrived)
        self.asked = asked
        self._reply = reply
        self._statistics = statistics

    def check(self) -> None:
        """Look whether it can be answered, as far as the request tells."""
        check_request(self.asked)

    def answer(self) -> None:
        """Plan the motion, and answer."""
        response = self._reply.response()
        response.queue_time = self._reply.queue_time = self.waited
        plan(self.asked, response, self._statistics, None)
        response.wall_time = time.monotonic() - self._reply.arrived
        self._reply.send(response)

    def refuse(self, error: Exception) -> None:
        """Answer with an error."""
        self._reply.queue_time = self.waited
        self._reply.refuse(error)
