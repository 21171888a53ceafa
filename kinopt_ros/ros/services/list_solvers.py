"""~/list_solvers: what is installed, what can run, and for which robot."""

from typing import Any

from kinopt_msgs.msg import SolverInfo
from kinopt_msgs.srv import ListSolvers
from kinopt_ros.errors import KinoptError
from kinopt_ros.ros.messages.conversions import error_message, status_message
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.serving.service import ImmediateService
from kinopt_ros.solvers.registry import list_solvers, solver_class
from kinopt_ros.status import Status


class ListSolversService(ImmediateService):
    """Service that lists solvers, groups and the robot."""

    name = "list_solvers"
    type = ListSolvers

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response. Answers also while no robot is loaded; the status then says why."""
        del request  # empty
        for info in list_solvers():
            capabilities = info.capabilities
            reason = info.unavailable_reason or self._context.trouble(info.name)
            response.solvers.append(
                SolverInfo(
                    name=info.name,
                    version=info.version,
                    available=reason is None,
                    reason=reason or self._context.remark(info.name),
                    features=list(info.features),
                    joint_types=sorted(t.value for t in capabilities.joint_types) if capabilities else [],
                )
            )
        try:
            response.default_solver = solver_class(parameters.ik_solver(self._context.node)).name
            robot = self._context.loaded.model
        except KinoptError as error:
            response.status = error_message(error)
            return
        response.robot = robot.name
        first = self._context.group_name(robot) if robot.groups else ""
        response.groups = [first, *(name for name in robot.groups if name != first)] if first else []
        response.status = status_message(Status.SUCCESS)
