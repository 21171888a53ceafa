"""Motions that nobody waits for: watched on threads of their own until they are over (``run.py`` says how)."""

import threading
import time
from collections.abc import Callable
from typing import Any

from kinopt_msgs.msg import MotionReport
from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.status import Status

END_SECONDS = 1.0
"""Longest time that the node's end waits for one of the threads, s."""


class WatchedMotions:
    """The motions of one node that are watched so. Thread-safe."""

    def __init__(self, log: Any, reports: Any) -> None:
        """
        Args:
            log: the node's.
            reports: publisher of ~/report.
        """
        self._log = log
        self._reports = reports
        self._lock = threading.Lock()
        self._watched: dict[MotionRun, threading.Thread] = {}
        self._closed = False

    def begin(self, run: MotionRun, ended: Callable[[StatusMsg], None]) -> None:
        """Watch a motion that was sent. Returns at once.

        Args:
            run: the motion.
            ended: called with how it ended, on another thread.
        """

        def watch() -> None:
            try:
                ended(run.watch())
            except Exception as error:  # nothing ends the thread unsaid
                log_defect(self._log, "in the watch over a motion", error)
            finally:
                with self._lock:
                    del self._watched[run]

        # One for each: a brake takes a while, and nobody else may go unwatched meanwhile. There are few, as motions
        # take each other's place.
        thread = threading.Thread(target=watch, name="watched_motion", daemon=True)
        with self._lock:
            self._watched[run] = thread
            closed = self._closed
        if closed:
            run.stop(Status.PREEMPTED, "the node is shutting down")
        try:
            thread.start()
        except RuntimeError:  # the system has no threads left: what nobody can watch may not move
            run.stop(Status.FAILURE, "no thread was left to watch the motion: the robot brakes")
            watch()

    def begin_reported(self, run: MotionRun, name: str, report: MotionReport, begun: float) -> None:
        """Watch a motion whose success was told when it was published; report if it had to be stopped before its end.
        Returns at once.

        Args:
            run: the motion.
            name: of the topic or action that asked for it.
            report: header, group and solver of it.
            begun: when it was asked for, s (``time.monotonic()``).
        """

        def ended(status: StatusMsg) -> None:
            # Of what another motion, or an emergency stop, has ended those have told.
            if status.code in (Status.SUCCESS, Status.PREEMPTED):
                return
            stopped = MotionReport(header=report.header, group=report.group, solver_used=report.solver_used)
            stopped.status, stopped.wall_time = status, time.monotonic() - begun
            stopped.position_error = stopped.orientation_error = float("nan")
            self._log.warning(f"{name}: {status.message}")
            self._reports.publish(stopped)

        self.begin(run, ended)

    def close(self) -> None:
        """Watch nothing any more; what moves was stopped."""
        with self._lock:
            self._closed = True
            watched = dict(self._watched)
        for run in watched:
            run.stop(Status.PREEMPTED, "the node is shutting down")
        for thread in watched.values():
            if thread.is_alive():  # else it has not been started, or could not be
                thread.join(END_SECONDS)
