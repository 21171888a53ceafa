"""Start of Warp: the only place that touches the process."""

import logging
import os
import re
import threading
from pathlib import Path
from typing import Any

import warp as wp

from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError
from kinopt_ros.private_files import cache_folder, private_folder, temporary_folder

_lock = threading.Lock()
_folder: list[Path] = []
"""Folder in which kernels are kept, once Warp was told."""
_log = logging.getLogger(__name__)


def start(device: str) -> Any:
    """Return the Warp device of a name: ``auto`` (the first CUDA device, else the CPU), ``cpu``, ``cuda`` or
    ``cuda:N``.

    Raises:
        InvalidRequestError: another name.
        SolverUnavailableError: no such device here; the message says what there is.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise InvalidRequestError(f"device is {device!r}; allowed are auto, cpu, cuda, cuda:0, cuda:1, ...")
    with _lock:
        if wp.config.log_level == wp.LOG_INFO:  # nobody has chosen: no banner, no line per module
            wp.config.log_level = wp.LOG_WARNING
        if not _folder:
            _folder.append(_kernel_folder(wp.config.kernel_cache_dir))
            wp.config.kernel_cache_dir = str(_folder[0])
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


def _kernel_folder(chosen: str | None) -> Path:
    """Return the folder in which Warp keeps compiled kernels, which it loads as code.

    It is a private one below what the program has chosen, or who started it: Warp makes files as umask says, which may
    let others write to them. Where others can write to what was chosen, it is one of the user's.
    """
    chosen = chosen or os.environ.get("WARP_CACHE_PATH")
    if chosen:
        try:
            return private_folder(Path(chosen).absolute() / "kinopt_ros")
        except OSError as error:
            _log.warning("the folder that was chosen for Warp's kernels is not used: %s", error)
    try:
        return private_folder(cache_folder("warp"))
    except (OSError, RuntimeError) as error:  # the latter where a user has no home
        _log.warning("compiled kernels are not kept, and made anew with every start: %s", error)
        return temporary_folder()
