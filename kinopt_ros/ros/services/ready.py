"""~/ready: whether a robot is in service, and what is still being prepared for it."""

from typing import Any

from std_srvs.srv import Trigger

from kinopt_ros.errors import KinoptError
from kinopt_ros.ros.serving.service import ImmediateService


class ReadyService(ImmediateService):
    """Service that says whether a robot is in service, what is still being prepared for it, and if none is, why."""

    name = "ready"
    type = Trigger
    urgent = True

    def handle(self, request: Any, response: Any) -> None:
        """Fill the response."""
        del request  # empty
        try:
            loaded = self._context.loaded
        except KinoptError as error:
            response.message = str(error)
            return
        missing = loaded.pool.missing
        # The README's first commands wait for these words.
        still = f"being prepared: {', '.join(missing)}" if missing else "all is prepared"
        response.message = f"robot {loaded.model.name!r}; {still}"
        response.success = True
