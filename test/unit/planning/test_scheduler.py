"""Two lanes, fair turns, a bounded queue: who is answered when, and together with whom."""

import threading
import time
from collections.abc import Hashable, Iterator, Sequence

import pytest

from kinopt_ros import pauses
from kinopt_ros.errors import KinoptError, NotReadyError
from kinopt_ros.planning.scheduler import FairQueue, QueueFullError, Scheduler, Task

LONG = 20.0
"""Time that no test waits unless it fails, s."""


class Recorded(Task):
    """Writes down what happens to it. Waits in its quick or slow turn for ``gate``; ``unfinished`` ones need both."""

    def __init__(
        self,
        log: list[str],
        name: str,
        client: str = "",
        key: Hashable = None,
        slow: bool = False,
        unfinished: bool = False,
        gate: threading.Event | None = None,
    ) -> None:
        super().__init__(client, key, slow)
        self.log = log
        self.name = name
        self.unfinished = unfinished
        self.gate = gate
        self.begun = threading.Event()
        self.over = threading.Event()
        self.error: KinoptError | None = None
        self.thread: threading.Thread | None = None

    def quick(self, others: Sequence[Task], hurried: bool = False) -> Sequence[Task]:
        self._work()
        left: list[Task] = []
        together = [task for task in (self, *others) if isinstance(task, Recorded)]
        self.log.append("+".join(task.name for task in together))
        for task in together:
            task.thread = threading.current_thread()
            if task.unfinished:
                left.append(task)
            else:
                task.over.set()
        return left

    def slow(self) -> None:
        if not self.unfinished:
            self._work()
        self.log.append(f"slow {self.name}")
        self.thread = threading.current_thread()
        self.over.set()

    def refuse(self, error: KinoptError) -> None:
        self.error = error
        self.over.set()

    def _work(self) -> None:
        self.begun.set()
        if self.gate is not None:
            assert self.gate.wait(LONG)


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def scheduler(gate: threading.Event) -> Iterator[Scheduler]:
    """One thread per lane, twenty waiting tasks."""
    made = Scheduler(1, 1, 20)
    yield made
    made.close()
    gate.set()


def block(scheduler: Scheduler, log: list[str], gate: threading.Event, slow: bool = False) -> Recorded:
    """A task that keeps a lane busy until the gate opens."""
    blocker = Recorded(log, "blocker", "blocker", slow=slow, gate=gate)
    scheduler.submit(blocker)
    assert blocker.begun.wait(LONG)
    return blocker


def finish(tasks: Sequence[Recorded]) -> None:
    for task in tasks:
        assert task.over.wait(LONG), f"{task.name} was never answered"


@pytest.mark.parametrize("slow", [False, True])
def test_tasks_give_way_to_stops(
    scheduler: Scheduler, log: list[str], slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "GIVES_WAY", LONG)
    task = Recorded(log, "late", slow=slow)
    with pauses.urgent():
        scheduler.submit(task)
        assert not task.begun.wait(0.05)
    finish([task])


def test_clients_take_turns_and_each_keeps_its_order(
    scheduler: Scheduler, log: list[str], gate: threading.Event
) -> None:
    block(scheduler, log, gate)
    names = ["a1", "a2", "a3", "b1", "c1", "c2"]
    tasks = [Recorded(log, name, client=name[0]) for name in names]
    for task in tasks:
        scheduler.submit(task)
    gate.set()
    finish(tasks)
    assert log == ["blocker", "a1", "b1", "c1", "a2", "c2", "a3"]


def test_a_quick_task_does_not_wait_for_slow_ones(
    scheduler: Scheduler, log: list[str], gate: threading.Event
) -> None:
    block(scheduler, log, gate, slow=True)
    queued = Recorded(log, "queued", slow=True)
    scheduler.submit(queued)
    quick = Recorded(log, "quick")
    scheduler.submit(quick)
    finish([quick])
    assert log == ["quick"]
    assert scheduler.waiting == (0, 1)


def test_what_is_not_done_quickly_goes_on_in_the_slow_lane(scheduler: Scheduler, log: list[str]) -> None:
    task = Recorded(log, "long", unfinished=True)
    scheduler.submit(task)
    finish([task])
    assert log == ["long", "slow long"]


def test_waiting_tasks_of_a_key_are_answered_together(
    scheduler: Scheduler, log: list[str], gate: threading.Event
) -> None:
    scheduler.most_alike = 3
    block(scheduler, log, gate)
    tasks = [
        Recorded(log, name, client=name[0], key=key)
        for name, key in (("a1", "x"), ("a2", "y"), ("b1", "x"), ("c1", None), ("b2", "x"), ("d1", "x"))
    ]
    for task in tasks:
        scheduler.submit(task)
    gate.set()
    finish(tasks)
    assert log[1] == "a1+b1+b2"
    assert sorted(log[2:]) == ["a2", "c1", "d1"]


def test_without_batching_each_is_answered_alone(
    scheduler: Scheduler, log: list[str], gate: threading.Event
) -> None:
    scheduler.most_alike = 1
    block(scheduler, log, gate)
    tasks = [Recorded(log, f"t{i}", key="x") for i in range(3)]
    for task in tasks:
        scheduler.submit(task)
    gate.set()
    finish(tasks)
    assert log == ["blocker", "t0", "t1", "t2"]


def test_the_queue_is_bounded_in_both_lanes_together(
    scheduler: Scheduler, log: list[str], gate: threading.Event
) -> None:
    scheduler.capacity = 3
    block(scheduler, log, gate)
    block(scheduler, log, gate, slow=True)
    tasks = [Recorded(log, f"t{i}", slow=i == 0) for i in range(3)]
    for task in tasks:
        scheduler.submit(task)
    assert scheduler.waiting == (2, 1)
    with pytest.raises(QueueFullError, match=r"3 requests are waiting.*queue_size"):
        scheduler.submit(Recorded(log, "one too many"))
    gate.set()
    finish(tasks)
    scheduler.submit(Recorded(log, "later"))


def test_closing_refuses_what_waits_and_what_comes(
    scheduler: Scheduler, log: list[str], gate: threading.Event
) -> None:
    running = block(scheduler, log, gate)
    waiting = [Recorded(log, "quick"), Recorded(log, "slow", slow=True)]
    block(scheduler, log, gate, slow=True)
    for task in waiting:
        scheduler.submit(task)
    scheduler.close()
    finish(waiting)
    assert all("shutting down" in str(task.error) for task in waiting)
    with pytest.raises(NotReadyError, match="shutting down"):
        scheduler.submit(Recorded(log, "too late"))
    gate.set()
    finish([running])
    assert running.error is None


def test_what_is_unfinished_when_it_closes_is_refused(
    scheduler: Scheduler, log: list[str], gate: threading.Event
) -> None:
    task = Recorded(log, "long", unfinished=True, gate=gate)
    scheduler.submit(task)
    assert task.begun.wait(LONG)
    scheduler.close()
    gate.set()
    finish([task])
    assert "shutting down" in str(task.error)


def test_a_lone_task_is_answered_on_the_thread_that_brings_it(scheduler: Scheduler, log: list[str]) -> None:
    task = Recorded(log, "lone")
    scheduler.answer(task)
    assert task.thread is threading.current_thread()


def test_a_lone_task_that_needs_longer_leaves_that_thread(scheduler: Scheduler, log: list[str]) -> None:
    task = Recorded(log, "long", unfinished=True)
    scheduler.answer(task)
    finish([task])
    assert task.thread is not threading.current_thread()


def test_nobody_overtakes_those_who_wait(scheduler: Scheduler, log: list[str], gate: threading.Event) -> None:
    block(scheduler, log, gate)
    waiting, new = Recorded(log, "waiting"), Recorded(log, "new")
    scheduler.submit(waiting)
    scheduler.answer(new)
    gate.set()
    finish([waiting, new])
    assert log == ["blocker", "waiting", "new"]


def test_many_threads_many_clients_and_nothing_is_lost() -> None:
    scheduler = Scheduler(3, 2, 10_000)
    log: list[str] = []
    tasks = [
        Recorded(log, str(i), f"c{i % 7}", key=i % 3 or None, slow=i % 11 == 0, unfinished=i % 5 == 0)
        for i in range(600)
    ]

    def submit(mine: Sequence[Recorded]) -> None:
        for task in mine:
            scheduler.submit(task)

    threads = [threading.Thread(target=submit, args=(tasks[k::4],)) for k in range(4)]
    try:
        for thread in threads:
            thread.start()
        finish(tasks)
    finally:
        scheduler.close()
    assert all(task.error is None for task in tasks)
    quick = [name for entry in log if not entry.startswith("slow ") for name in entry.split("+")]
    slow = [entry.removeprefix("slow ") for entry in log if entry.startswith("slow ")]
    assert len(quick) == len(set(quick))
    assert len(slow) == len(set(slow))
    assert set(quick) == {str(i) for i in range(600) if i % 11}
    assert set(slow) == {str(i) for i in range(600) if i % 11 == 0 or i % 5 == 0}


def test_a_queue_forgets_clients_that_have_nothing_waiting() -> None:
    queue = FairQueue()
    for i in range(50):
        queue.put(Recorded([], str(i), client=f"client {i}", key="x"))
    assert len(queue.take_alike("x", 20)) == 20
    assert len(queue) == 30
    assert {queue.take().client for _ in range(30)} == {f"client {i}" for i in range(20, 50)}
    assert len(queue) == 0


def test_tasks_know_when_they_arrived() -> None:
    before = time.monotonic()
    task = Recorded([], "t")
    assert before <= task.arrived <= time.monotonic()


class Patient(Recorded):
    """Waits for something that is being prepared."""

    prepared = False

    def must_wait(self) -> bool:
        return not self.prepared


@pytest.mark.parametrize("slow", [False, True])
def test_what_waits_for_a_preparation_keeps_no_thread_busy(slow: bool) -> None:
    log: list[str] = []
    lanes = Scheduler(1, 1, capacity=3)
    try:
        patient = Patient(log, "patient", slow=slow)
        lanes.answer(patient)
        others = [Recorded(log, "quick"), Recorded(log, "slow", slow=True)]
        for other in others:
            lanes.submit(other)
        assert all(other.over.wait(LONG) for other in others)
        assert sorted(log) == ["quick", "slow slow"]
        assert lanes.waiting == (0, 1)
        patient.prepared = True
        assert patient.over.wait(LONG)
        assert log[-1] == ("slow patient" if slow else "patient")
    finally:
        lanes.close()


def test_what_waits_for_a_preparation_counts_and_is_refused_in_the_end() -> None:
    lanes = Scheduler(1, 1, capacity=2)
    tasks = [Patient([], str(k)) for k in range(2)]
    for task in tasks:
        lanes.submit(task)
    with pytest.raises(QueueFullError):
        lanes.submit(Patient([], "one too many"))
    lanes.close()
    assert all(isinstance(task.error, NotReadyError) for task in tasks)
    assert all("shutting down" in str(task.error) for task in tasks)
