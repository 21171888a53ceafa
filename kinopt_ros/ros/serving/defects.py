"""Answer to an error, wherever it is raised: a caller's mistake is explained, a defect is logged, too."""

import traceback
from typing import Any

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.errors import KinoptError, writable
from kinopt_ros.ros.messages.conversions import error_message, status_message
from kinopt_ros.status import Status


def log_defect(logger: Any, where: str, error: BaseException, seconds: float = 0.0) -> str:
    """Log an error that nobody expected; return the sentence for who asked.

    Args:
        logger: of the node.
        where: what was done, as in "internal error in ...".
        error: what was raised.
        seconds: least time between two such lines, s; 0: each is logged.
    """
    trace = writable("".join(traceback.format_exception(error)))
    options = {"throttle_duration_sec": seconds} if seconds else {}
    logger.error(f"internal error {where}:\n{trace}", **options)
    return f"internal error ({type(error).__name__}); the node's log says more"


def error_status(logger: Any, where: str, error: Exception) -> StatusMsg:
    """Return the status message of an error: its own if it is the caller's, else FAILURE after a line in the log."""
    if isinstance(error, KinoptError):
        return error_message(error)
    return status_message(Status.FAILURE, log_defect(logger, where, error))
