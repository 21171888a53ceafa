"""Starts Warp: the only place that touches the process."""

import re
import threading
from typing import Any

import warp as wp

from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError

_lock = threading.Lock()


def start(device: str) -> Any:
    """The Warp device of a name: ``auto`` (the first CUDA device, else the CPU), ``cpu``, ``cuda`` or ``cuda:N``.

    Raises:
        InvalidRequestError: another name.
        SolverUnavailableError: no such device here; the message says what there is.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise InvalidRequestError(f"device is {device!r}; allowed are auto, cpu, cuda, cuda:0, cuda:1, ...")
    with _lock:
        if wp.config.log_level == wp.LOG_INFO:  # nobody has chosen: no banner, no line per module
            wp.config.log_level = wp.LOG_WARNING
        try:
            wp.init()
        except Exception as error:
            raise SolverUnavailableError(f"Warp does not start: {error}") from error
    count = wp.get_cuda_device_count()
    if device == "cpu" or (device == "auto" and count == 0):
        return wp.get_device("cpu")
    number = int(device.partition(":")[2] or 0)
    if number >= count:
        found = (
            f"{count} CUDA devices" if count else "no CUDA device (none is there, or its driver is too old)"
        )
        raise SolverUnavailableError(f"device {device!r} does not exist; Warp {wp.__version__} finds {found}")
    return wp.get_device(f"cuda:{number}")
