"""Whether a stream of commands has paused."""

from types import SimpleNamespace
from typing import Any

import pytest

from kinopt_ros.ros.messages import stamps
from kinopt_ros.ros.requests import command_pauses
from kinopt_ros.ros.requests.command_pauses import CommandPauses

MS = 10**6
TIMEOUT = 0.1


class Stream:
    """Commands, the machine's time, and the time that passes until they are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 10**15
        self.pauses = CommandPauses()
        clock = SimpleNamespace(monotonic_ns=lambda: self.now, time_ns=lambda: self.now)
        monkeypatch.setattr(command_pauses, "time", clock)
        monkeypatch.setattr(stamps, "time", clock)

    def take(self, sent: int, received: int = 0) -> None:
        """Read a command of a time; ``received``: when the middleware got it."""
        info: Any = {"source_timestamp": sent, "received_timestamp": received or self.now}
        self.pauses.take(info, TIMEOUT)

    def stream(self, milliseconds: int, every: int = 20) -> None:
        """Take a command now and then."""
        for _ in range(milliseconds // every):
            self.now += every * MS
            self.take(self.now)


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Stream:
    one = Stream(monkeypatch)
    one.stream(200)
    assert not one.pauses.waits
    one.pauses.wait()
    return one


def test_a_stream_counts_after_a_pause(stream: Stream) -> None:
    stream.stream(5_000)
    assert stream.pauses.waits
    stream.now += 90 * MS
    stream.take(stream.now)
    assert stream.pauses.waits
    stream.now += 100 * MS
    stream.take(stream.now)
    assert not stream.pauses.waits


def test_a_node_that_reads_late_sees_no_pause(stream: Stream) -> None:
    begin = stream.now
    stream.now += 500 * MS
    for passed in range(20, 520, 20):
        stream.take(begin + passed * MS, begin + passed * MS)
    stream.stream(200)
    assert stream.pauses.waits


def test_a_machine_that_gets_no_cpu_sees_no_pause(stream: Stream) -> None:
    """The middleware, too, has commands all at once then."""
    begin = stream.now
    stream.now += 500 * MS
    for passed in range(20, 520, 20):
        stream.take(begin + passed * MS)
    stream.stream(200)
    assert stream.pauses.waits


def test_the_time_may_be_told_by_arrival_alone(stream: Stream) -> None:
    stream.pauses.take(None, TIMEOUT)
    assert stream.pauses.waits
    stream.now += 100 * MS
    stream.pauses.take(None, TIMEOUT)
    assert not stream.pauses.waits
