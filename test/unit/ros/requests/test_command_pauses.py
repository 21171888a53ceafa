"""Whether a stream of commands has paused."""

from types import SimpleNamespace
from typing import Any

import pytest

from kinopt_ros.ros.requests import command_pauses
from kinopt_ros.ros.requests.command_pauses import CommandPauses

MS = 10**6
TIMEOUT = 0.1


class Stream:
    """Commands of one sender and another, the machine's time, and the time that passes until they are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 10**15
        self.numbers = {b"one": 0, b"other": 0}
        self.pauses = CommandPauses()
        monkeypatch.setattr(command_pauses, "time", SimpleNamespace(monotonic_ns=lambda: self.now))

    def take(self, sent: int, received: int = 0, missed: int = 0, sender: bytes = b"one") -> None:
        """Read a command of a time; ``received``: when the middleware got it; after some that nobody has read."""
        self.numbers[sender] += 1 + missed
        info: Any = {
            "source_timestamp": sent,
            "publication_sequence_number": self.numbers[sender],
            "publisher_gid": {"data": sender},
        }
        self.pauses.take(info, (self.now - received) / 1e9 if received else 0.0, TIMEOUT)

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
    stream.stream(60)
    stream.now += 100 * MS
    stream.take(stream.now)
    assert not stream.pauses.waits


@pytest.mark.parametrize("every", [1, 10, 20, 90])
@pytest.mark.parametrize("held", [200, 500, 5_000])
def test_a_node_that_is_held_up_sees_no_pause(stream: Stream, held: int, every: int) -> None:
    """It reads the newest alone."""
    stream.stream(1_000, every)
    missed = held // every
    stream.now += every * (missed + 1) * MS
    stream.take(stream.now, missed=missed)
    stream.stream(1_000, every)
    assert stream.pauses.waits


@pytest.mark.parametrize("every", [120, 200, 450])
def test_a_slow_stream_is_no_pause(stream: Stream, every: int) -> None:
    """Target poses hold for longer than their senders need for the next one."""
    stream.pauses = CommandPauses()
    stream.stream(5_000, every)
    assert not stream.pauses.waits
    stream.pauses.wait()
    stream.stream(5_000, every)
    assert stream.pauses.waits
    stream.now += 1_000 * MS
    stream.take(stream.now)
    assert not stream.pauses.waits


def test_pairs_are_no_stream_that_pauses(stream: Stream) -> None:
    stream.pauses = CommandPauses()
    for k in range(20):
        stream.stream(30, 30)
        stream.stream(300, 300)
        if k == 10:
            stream.pauses.wait()
    assert stream.pauses.waits


@pytest.mark.parametrize("heard", [1, 2, 3])
@pytest.mark.parametrize("every", [200, 500])
def test_a_slow_stream_that_has_just_begun_is_no_pause(stream: Stream, every: int, heard: int) -> None:
    stream.pauses = CommandPauses()
    stream.stream(heard * every, every)
    stream.pauses.wait()
    stream.stream(5_000, every)
    assert stream.pauses.waits


@pytest.mark.parametrize("every", [200, 450, 900])
def test_a_slow_stream_beside_a_quick_one_is_no_pause(stream: Stream, every: int) -> None:
    """A tracker that goes on when a joystick is let go."""

    def tracker(milliseconds: int, joystick: bool) -> None:
        for _ in range(milliseconds // every):
            if joystick:
                stream.stream(every)
            else:
                stream.now += every * MS
            stream.take(stream.now, sender=b"other")

    tracker(5_000, True)
    stream.pauses.wait()
    tracker(3_000, True)
    tracker(5_000, False)
    assert stream.pauses.waits
    stream.now += 1_000 * MS
    stream.take(stream.now, sender=b"other")
    assert not stream.pauses.waits


def test_what_comes_once_a_second_pauses_each_time(stream: Stream) -> None:
    stream.stream(5_000, 1_000)
    stream.pauses.wait()
    stream.stream(1_000, 1_000)
    assert not stream.pauses.waits


def test_a_command_after_a_pause_may_be_missed(stream: Stream) -> None:
    stream.stream(1_000, every=1)
    stream.now += 1_000 * MS
    stream.take(stream.now, missed=4)
    assert not stream.pauses.waits


def test_a_machine_that_gets_no_cpu_sees_no_pause(stream: Stream) -> None:
    """The middleware, too, has commands all at once then."""
    begin = stream.now
    stream.now += 500 * MS
    for passed in range(20, 520, 20):
        stream.take(begin + passed * MS)
    stream.stream(200)
    assert stream.pauses.waits


def test_what_was_sent_before_a_stop_is_no_command_after_a_pause(stream: Stream) -> None:
    stream.stream(200)
    stream.now += 300 * MS
    came = stream.now
    stream.now += 60 * MS
    stream.pauses.wait()
    stream.take(came, came)  # it lay unread
    stream.stream(200)
    assert stream.pauses.waits


@pytest.mark.parametrize("ahead", [-(10**15) // 2, -200 * MS, 200 * MS])
def test_another_sender_may_have_another_clock(stream: Stream, ahead: int) -> None:
    stream.stream(200)
    for _ in range(3):
        stream.now += 20 * MS
        stream.take(stream.now + ahead, sender=b"other")
    assert stream.pauses.waits
    stream.now += 200 * MS
    stream.take(stream.now + ahead, sender=b"other")
    assert not stream.pauses.waits


def test_one_who_begins_while_another_goes_on_is_no_pause(stream: Stream) -> None:
    for _ in range(20):
        stream.stream(40)
        stream.take(stream.now, sender=b"other")
    assert stream.pauses.waits


def test_the_time_may_be_told_by_arrival_alone(stream: Stream) -> None:
    for _ in range(3):
        stream.now += 20 * MS
        stream.pauses.take(None, 0.0, TIMEOUT)
    assert stream.pauses.waits
    stream.now += 100 * MS
    stream.pauses.take(None, 0.0, TIMEOUT)
    assert not stream.pauses.waits


def test_many_senders_are_forgotten(stream: Stream) -> None:
    for number in range(100):
        stream.numbers[b"%d" % number] = 0
        stream.take(stream.now, sender=b"%d" % number)
    assert len(stream.pauses._senders) <= 16
