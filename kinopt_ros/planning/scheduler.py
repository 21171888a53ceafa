"""Scheduler that runs requests of many clients on a few threads, so that nobody waits for another's long request.

Two lanes. In the quick lane every task gets a short first try, several of the same key at once; what is left then goes
to the slow lane, whose threads may take as long as a task's deadline allows. In both lanes clients take turns: one
who sends a hundred requests waits for himself. Tasks that need what is still being prepared wait beside the lanes,
where they keep no thread busy, as long as they have time.
"""

import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence

from kinopt_ros.errors import KinoptError, NotReadyError
from kinopt_ros.pauses import give_way
from kinopt_ros.status import Status

LOOK_SECONDS = 0.02
"""Time between two looks whether waiting tasks may go on, s."""


class QueueFullError(KinoptError):
    """Too many requests wait already."""

    status = Status.QUEUE_FULL


def _shutting_down() -> NotReadyError:
    """Return the error for tasks after ``close``. It does not say that the queue is full, as whoever hears that tries
    again."""
    return NotReadyError("the node is shutting down")


class Task(ABC):
    """One request. A task answers its client itself; it must not raise."""

    def __init__(self, client: str, key: Hashable = None, slow: bool = False) -> None:
        """
        Args:
            client: who asks.
            key: tasks of equal keys may be answered together; None: alone.
            slow: whether to leave out the quick try.
        """
        self.client = client
        self.key = key
        self.starts_slow = slow
        self.arrived = time.monotonic()

    def must_wait(self) -> bool:
        """Check whether something that it needs is still being prepared, and whether it has the time to wait for that.

        Must be quick, since it is asked again and again.
        """
        return False

    @abstractmethod
    def quick(self, others: Sequence["Task"], hurried: bool = False) -> Sequence["Task"]:
        """Try to answer this task and others of its key soon, or very soon if ``hurried``; return those that need
        longer."""

    @abstractmethod
    def slow(self) -> None:
        """Answer the task, however long it takes."""

    @abstractmethod
    def refuse(self, error: KinoptError) -> None:
        """Answer that nothing will be done."""


class FairQueue:
    """Queue that serves a client's tasks in order, while clients take turns. Not thread-safe."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[Task]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, task: Task) -> None:
        """Add a task behind those of its client."""
        self._clients.setdefault(task.client, deque()).append(task)
        self._size += 1

    def take(self) -> Task:
        """Remove and return the first task of the client whose turn it is; that client goes to the end of the line."""
        client, tasks = next(iter(self._clients.items()))
        task = tasks.popleft()
        self._size -= 1
        if tasks:
            self._clients.move_to_end(client)
        else:
            del self._clients[client]
        return task

    def take_alike(self, key: Hashable, most: int) -> list[Task]:
        """Remove and return up to ``most`` waiting tasks of a key, of each client the first ones."""
        taken: list[Task] = []
        for client, tasks in list(self._clients.items()):
            rest: deque[Task] = deque()
            for task in tasks:
                (taken if task.key == key and len(taken) < most else rest).append(task)
            if rest:
                self._clients[client] = rest
            else:
                del self._clients[client]
        self._size -= len(taken)
        return taken


class Scheduler:
    """Threads and queues. ``submit`` may be called from any thread."""

    def __init__(self, quick_threads: int, slow_threads: int, capacity: int, most_alike: int = 64) -> None:
        """
        Args:
            quick_threads: threads for quick tries.
            slow_threads: threads for what takes longer.
            capacity: most tasks that wait, in both lanes together.
            most_alike: most tasks that are answered together; 1: none are.
        """
        self.capacity = capacity
        self.most_alike = most_alike
        self._lock = threading.Lock()
        self._quick_ready = threading.Condition(self._lock)
        self._slow_ready = threading.Condition(self._lock)
        self._waiting_ready = threading.Condition(self._lock)
        self._quick, self._slow = FairQueue(), FairQueue()
        self._beside: list[Task] = []
        """Tasks that wait for what is being prepared."""
        self._closed = False
        self._trying = 0
        """Threads in the middle of a quick try."""
        self._threads = [
            threading.Thread(target=lane, name=f"{lane.__name__.strip('_')}_{i}")
            for lane, count in ((self._quick_lane, quick_threads), (self._slow_lane, slow_threads))
            for i in range(count)
        ]
        self._threads.append(threading.Thread(target=self._let_in, name="waiting_tasks"))
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> tuple[int, int]:
        """Number of tasks that wait for their quick try, and of those that wait for the slow lane or for what is being
        prepared."""
        with self._lock:
            return len(self._quick), len(self._slow) + len(self._beside)

    def submit(self, task: Task) -> None:
        """Take a task in.

        Raises:
            QueueFullError: as many tasks as the queue holds are waiting.
            NotReadyError: the scheduler is closed.
        """
        with self._lock:
            waiting = len(self._quick) + len(self._slow) + len(self._beside)
            if self._closed:
                raise _shutting_down()
            if waiting >= self.capacity:
                raise QueueFullError(
                    f"{waiting} requests are waiting, which is what the queue holds (parameter queue_size); try again "
                    "later"
                )
            self._put(task)

    def answer(self, task: Task) -> None:
        """Give a task its quick try on this very thread if nobody else is waiting, else ``submit`` it.

        Saves a lone request two changes of threads, which cost more than the answer. To be called from the one thread
        that takes requests in.

        Raises:
            KinoptError: as of ``submit``.
        """
        with self._lock:
            here = not (task.starts_slow or self._closed or len(self._quick) or self._trying)
        here = here and not task.must_wait()
        if not here:
            self.submit(task)
            return
        left = task.quick((), hurried=True)
        if left:
            with self._lock:
                closed = self._closed
                for unfinished in left if not closed else ():
                    self._quick.put(unfinished)
                self._quick_ready.notify(len(left))
            for unfinished in left if closed else ():
                unfinished.refuse(_shutting_down())

    def close(self) -> None:
        """Refuse what is waiting and let the threads end after what they are at. Does not wait for them."""
        with self._lock:
            self._closed = True
            left = [queue.take() for queue in (self._quick, self._slow) for _ in range(len(queue))]
            left += self._beside
            self._beside = []
            self._waiting_ready.notify_all()
            self._quick_ready.notify_all()
            self._slow_ready.notify_all()
        for task in left:
            task.refuse(_shutting_down())

    def _put(self, task: Task) -> None:
        if task.must_wait():
            self._beside.append(task)
            self._waiting_ready.notify()
        elif task.starts_slow:
            self._slow.put(task)
            self._slow_ready.notify()
        else:
            self._quick.put(task)
            self._quick_ready.notify()

    def _let_in(self) -> None:
        """Put tasks into their lanes when what they wait for is there, or their time is up."""
        while True:
            with self._lock:
                while not self._beside:
                    if self._closed:
                        return
                    self._waiting_ready.wait()
                waiting, self._beside = self._beside, []
                for task in waiting:
                    self._put(task)
                if self._beside and not self._closed:
                    self._waiting_ready.wait(LOOK_SECONDS)

    def _quick_lane(self) -> None:
        while True:
            with self._lock:
                while not len(self._quick):
                    if self._closed:
                        return
                    self._quick_ready.wait()
                task = self._quick.take()
                alike = (
                    self._quick.take_alike(task.key, self.most_alike - 1)
                    if task.key is not None and self.most_alike > 1 and len(self._quick)
                    else []
                )
                self._trying += 1
            give_way()
            left = task.quick(alike)
            with self._lock:
                self._trying -= 1
            self._go_on(left)

    def _go_on(self, left: Sequence[Task]) -> None:
        """Hand what was not finished quickly to the slow lane."""
        if not left:
            return
        with self._lock:
            closed = self._closed
            if not closed:
                for task in left:  # they were let in: no second look at the capacity
                    self._slow.put(task)
                self._slow_ready.notify(len(left))
        if closed:
            for task in left:
                task.refuse(_shutting_down())

    def _slow_lane(self) -> None:
        while True:
            with self._lock:
                while not len(self._slow):
                    if self._closed:
                        return
                    self._slow_ready.wait()
                task = self._slow.take()
            give_way()
            task.slow()


class CallTask(Task):
    """Task that one call answers, quick or not."""

    def __init__(
        self,
        call: Callable[[], None],
        refuse: Callable[[KinoptError], None],
        client: str = "",
        slow: bool = False,
    ) -> None:
        """
        Args:
            call: answers the request; must not raise.
            refuse: answers that nothing will be done.
            client: who asks.
            slow: whether the call may take long.
        """
        super().__init__(client, slow=slow)
        self._call = call
        self._refuse = refuse

    def quick(self, others: Sequence[Task], hurried: bool = False) -> Sequence[Task]:
        """Answer with the call."""
        self._call()
        return others

    def slow(self) -> None:
        """Answer with the call."""
        self._call()

    def refuse(self, error: KinoptError) -> None:
        """Answer with the error."""
        self._refuse(error)
