"""Base of the node's services: name, type, and who answers the requests."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from kinopt_ros.planning.scheduler import Task
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.serving.reply import Reply


class Service:
    """A service of the node. ``services/every.py`` lists all of them; ``docs/security/policy.xml`` names them, too."""

    name: ClassVar[str]
    """Name of the service, as in ``~/name``, and of the file that it is in."""
    type: ClassVar[Any]
    """Service type, from kinopt_msgs or from ROS."""

    def __init__(self, context: Context) -> None:
        self._context = context


class QueuedService(Service, ABC):
    """Service whose requests wait for a thread, by the scheduler's rules."""

    counts: ClassVar[bool] = False
    """Whether the service checks the lengths of a request's lists itself, before it reads them."""
    takes_seconds: ClassVar[bool] = False
    """Whether its requests go to the threads that plan trajectories."""

    @abstractmethod
    def task(self, request: Any, reply: Reply) -> Task:
        """Return the task of a request; KinoptError if it cannot be answered."""


class ImmediateService(Service, ABC):
    """Service that costs little and is answered at once, whatever else is going on."""

    urgent: ClassVar[bool] = False
    """Whether the service is answered even while large messages are read."""

    @abstractmethod
    def handle(self, request: Any, response: Any) -> None:
        """Fill the response; raises KinoptError if the request cannot be answered."""
