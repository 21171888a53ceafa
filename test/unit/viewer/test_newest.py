"""The thread that does the newest of what it is asked."""

import threading

from kinopt_ros.viewer.newest import Newest


def test_of_work_that_waits_only_the_newest_is_done() -> None:
    done: list[int] = []
    failed: list[BaseException] = []
    worker = Newest("test", failed.append)
    begun, go = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        assert go.wait(10.0)
        done.append(0)

    worker.ask("drag", first)
    assert begun.wait(10.0)
    for k in range(1, 1000):
        worker.ask("drag", lambda k=k: done.append(k))
    worker.ask("other", lambda: done.append(-1))
    go.set()
    assert worker.wait(10.0)
    assert done == [0, 999, -1]
    worker.close()
    assert not failed


def test_what_fails_is_told_and_the_next_is_done() -> None:
    failed: list[BaseException] = []
    done: list[int] = []
    worker = Newest("test", failed.append)
    worker.ask("a", lambda: done.append(1 // 0))
    assert worker.wait(10.0)
    worker.ask("a", lambda: done.append(1))
    assert worker.wait(10.0)
    worker.close()
    assert done == [1]
    assert isinstance(failed[0], ZeroDivisionError)
    worker.ask("a", lambda: done.append(2))
    assert done == [1]
