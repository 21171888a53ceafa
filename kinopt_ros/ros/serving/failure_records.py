"""Records of failed IK requests for `kinopt replay`, where parameter record_failures names a folder."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from rclpy.node import Node

from kinopt_ros.errors import InvalidRequestError, cut, quoted
from kinopt_ros.files import is_folder, path_of
from kinopt_ros.problems.record import make_record, save_record
from kinopt_ros.problems.rows import rows_of
from kinopt_ros.ros.requests.ik import IkRequest
from kinopt_ros.ros.robot import parameters
from kinopt_ros.ros.robot.description import Description
from kinopt_ros.solvers.result import IkResult

MOST_FILES = 1000
"""Most records in the folder; when it holds so many, no more are written."""
MOST_ROWS = 16
"""Most failed targets of one request that are kept."""
_MOST_WAITING = 50
"""Most records that wait for the disk; more are dropped."""


def checked_folder(given: str) -> Path | None:
    """Return the folder of the parameter; None if it is empty.

    Raises:
        InvalidRequestError: it does not exist or cannot be written to.
    """
    if not given:
        return None
    try:
        folder = path_of(given, "record_failures").expanduser()
    except RuntimeError as error:  # the home of a user who has none
        folder, why = Path(given), f" ({cut(str(error), 200)})"
    else:
        why = ""
    if not is_folder(folder) or not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidRequestError(
            f"record_failures is {quoted(given)}; allowed is an existing folder that can be written to{why}"
        )
    return folder


class FailureRecords:
    """Writes records off the serving path. What cannot be written is lost, with one warning."""

    def __init__(self, node: Node, description: Description) -> None:
        self._node = node
        self._description = description
        self._folder: Path | None = None
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="failure_records")
        self._waiting = 0
        self._closed = False
        self._lock = threading.Lock()

    def use(self, folder: str) -> None:
        """Write to a folder from now on; nothing if the name is empty. Raises as ``checked_folder``."""
        self._folder = checked_folder(folder)

    def note(self, asked: IkRequest, result: IkResult) -> None:
        """Keep the targets of a request that failed."""
        folder = self._folder
        if folder is None or not result.failed.any():
            return
        with self._lock:
            if self._closed or self._waiting >= _MOST_WAITING:
                return
            self._waiting += 1
            self._writer.submit(self._write, folder, asked, result)

    def close(self) -> None:
        """Write what is waiting, and no more after that: requests that end later are not kept."""
        with self._lock:
            self._closed = True
        self._writer.shutdown(wait=False)

    def _write(self, folder: Path, asked: IkRequest, result: IkResult) -> None:
        try:
            if sum(1 for _ in folder.glob("*.yaml")) >= MOST_FILES:
                self._warn(f"{folder} holds {MOST_FILES} records: no more are written")
                return
            failed = np.flatnonzero(result.failed)[:MOST_ROWS]
            robot = asked.loaded.model
            urdf, srdf = self._description.texts_of(robot)
            record = make_record(
                robot,
                rows_of(asked.problem, failed),
                result.solver,
                parameters.solver_options(self._node).get(result.solver),
                timeout=asked.timeout,
                status=result.status[failed].tolist(),
                messages=[result.messages[b] for b in failed],
                urdf=urdf,
                srdf=srdf,
            )
            file = folder / f"failure_{time.time_ns()}.yaml"
            save_record(record, file, urdf, srdf, asked.problem.scene)
        except Exception as error:  # a full disk must not end the writer
            self._warn(f"a failed request could not be recorded: {type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._waiting -= 1

    def _warn(self, sentence: str) -> None:
        self._node.get_logger().warning(f"record_failures: {sentence}", throttle_duration_sec=60.0)
