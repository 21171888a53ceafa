"""Answers are spread over time, and none is held back for nothing."""

import threading
import time

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("kinopt_msgs.msg", reason="kinopt_msgs is not built")

from kinopt_ros.ros.serving.reply import Pace


def test_no_more_than_so_many_in_so_much_time() -> None:
    pace = Pace(most=5, seconds=0.05)
    begin = time.monotonic()
    moments: list[float] = []
    lock = threading.Lock()

    def send() -> None:
        for _ in range(5):
            pace.wait()
            with lock:
                moments.append(time.monotonic())

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    moments.sort()
    assert len(moments) == 20
    # Counted from the beginning: a thread may have to wait for the machine before it looks at the clock.
    assert all(moment - begin >= (number // 5) * 0.05 - 1e-3 for number, moment in enumerate(moments))


def test_a_lone_answer_goes_at_once() -> None:
    pace = Pace(most=3, seconds=10.0)
    start = time.monotonic()
    for _ in range(3):
        pace.wait()
    assert time.monotonic() - start < 5.0
