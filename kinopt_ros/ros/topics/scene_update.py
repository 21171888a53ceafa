"""~/scene_update, and others that change the scene by topic. Updates are made in the order in which they come."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kinopt_msgs.msg import MotionReport
from kinopt_ros.errors import KinoptError
from kinopt_ros.planning.scheduler import QueueFullError
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.sizes import let_go, weight
from kinopt_ros.ros.requests import scene_changes
from kinopt_ros.ros.serving.defects import error_status
from kinopt_ros.ros.topics.scene import ScenePublisher

MOST_WAITING = 5000
"""Most updates that wait; more are refused."""
MOST_BYTES = 160_000_000
"""Approximate memory for updates that wait, bytes; a single one may have more."""
PUBLISH_SECONDS = 0.2
"""Longest time between two publications of the scene while updates wait, s."""
_SAID_SECONDS = 0.5
"""Least time between two reports of refused or lost updates, s: in a burst they would be lost themselves."""


@dataclass(frozen=True)
class Kind:
    """A topic whose messages change the scene."""

    name: str
    """As reports name it."""
    check: Callable[[Any], None]
    """Raises KinoptError for a message that is not even to wait; quick."""
    apply: Callable[[Context, Any], Any]
    """Makes the changes, all or none; raises KinoptError."""


SCENE_UPDATE = Kind(
    "~/scene_update",
    lambda update: scene_changes.check_count(update),
    lambda context, update: scene_changes.apply(context, update),
)


class SceneUpdateTopic:
    """Handler of kinopt_msgs/SceneUpdate, and of other kinds of messages. Updates of all kinds are made in the order in
    which they come; none is lost unsaid."""

    def __init__(
        self,
        context: Context,
        publisher: ScenePublisher,
        reports: Any,
        clock: Callable[[], float] = time.monotonic,
        group: Any = None,
    ) -> None:
        """``clock``: seconds; ``group``: of the callbacks of its topics, None: the node's own."""
        self._context = context
        self._publisher = publisher
        self._reports = reports
        self._clock = clock
        self.group = group
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Kind, Any, int]] = deque()
        """Updates, or why they are refused, and how many bytes they have."""
        self._bytes = 0
        self._at_work = False
        self._refused = self._lost = 0
        """Updates that nobody has been told of yet."""
        self._said = -_SAID_SECONDS
        self._published = self._clock()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="scene_update")

    def take(self, update: Any, kind: Kind = SCENE_UPDATE) -> None:
        """Make the changes, on a thread of its own."""
        self.offer(update, kind)

    def offer(self, update: Any, kind: Kind = SCENE_UPDATE) -> bool:
        """Do as ``take``; return whether there is room for the changes."""
        taken = update
        try:
            kind.check(update)
        except KinoptError as error:
            taken = error
        size = weight(update, MOST_BYTES) if taken is update else 0
        with self._lock:
            full = len(self._waiting) >= MOST_WAITING or self._bytes + size > MOST_BYTES
            refused = full and bool(self._waiting)
            if refused:
                self._refused += 1
            else:
                self._waiting.append((kind, taken, size))
                self._bytes += size
            begin = not self._at_work
            self._at_work = True
        if begin:
            with suppress(RuntimeError):  # closed: the node ends
                self._worker.submit(self._work)
        if refused or taken is not update:
            let_go(update)
        return not refused

    def lost(self, event: Any) -> None:
        """Count updates that the middleware could not deliver: they came faster than they could be taken."""
        with self._lock:
            self._lost += event.total_count_change
            begin = not self._at_work
            self._at_work = True
        if begin:
            with suppress(RuntimeError):  # closed: the node ends
                self._worker.submit(self._work)

    def close(self) -> None:
        """Take no more updates."""
        with self._lock:
            self._waiting.clear()
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _work(self) -> None:
        """Make the changes that wait. Never raises: what went wrong is reported on ~/report."""
        while True:
            self._tell()
            with self._lock:
                if not self._waiting:
                    rest = self._refused + self._lost
                    if not rest:
                        self._at_work = False
                        return
                    kind, update = SCENE_UPDATE, None
                else:
                    kind, update, size = self._waiting.popleft()
                    self._bytes -= size
            if update is None:
                time.sleep(_SAID_SECONDS / 10.0)
                continue
            if isinstance(update, KinoptError):
                self._report(update, kind)
            else:
                try:
                    kind.apply(self._context, update)
                except Exception as error:  # nothing ends the worker
                    self._report(error, kind)
                let_go(update)
            with self._lock:
                last = not self._waiting
            if last or self._clock() >= self._published + PUBLISH_SECONDS:  # a burst is published once
                self._publish()
                self._published = self._clock()

    def _publish(self) -> None:
        try:
            self._publisher.publish()
        except Exception as error:  # as above
            self._report(error)

    def _tell(self) -> None:
        """Report what was refused and lost, not too often."""
        now = self._clock()
        with self._lock:
            if not self._refused + self._lost or now < self._said + _SAID_SECONDS:
                return
            self._said = now
            refused, self._refused = self._refused, 0
            lost, self._lost = self._lost, 0
        if refused:
            self._report(
                QueueFullError(
                    f"{refused} scene updates were refused: at most {MOST_WAITING} of {MOST_BYTES // 10**6} MB wait; "
                    "send several changes in one update, or use ~/apply_scene, which answers"
                )
            )
        if lost:
            self._report(
                QueueFullError(
                    f"{lost} scene updates were lost on the way: they came faster than they could be taken; send "
                    "several changes in one update, or use ~/apply_scene, which answers"
                )
            )

    def _report(self, error: Exception, kind: Kind = SCENE_UPDATE) -> None:
        logger = self._context.node.get_logger()
        if isinstance(error, KinoptError):
            logger.warning(f"{kind.name}: {error}")
        self._reports.publish(MotionReport(status=error_status(logger, f"on {kind.name}", error)))
