"""Attempts are spent fairly, completely, and not long after the deadline."""

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from kinopt_ros.solvers.cpu import search as search_module
from kinopt_ros.solvers.cpu.search import Cores, search


class Recorder:
    """Work that counts. Row b is solved by its restart ``needed[b]``; -1: by a seed; each attempt takes ``cost`` s."""

    def __init__(self, needed: list[int], cost: float = 0.0) -> None:
        self.needed = needed
        self.cost = cost
        self.done = np.zeros(len(needed), dtype=bool)
        self.seeded = [0] * len(needed)
        self.restarts: list[list[int]] = [[] for _ in needed]
        self.polished = [0] * len(needed)
        self.threads: set[int] = set()
        self.longest = 0.0

    def run(self, rows: slice, use_seeds: bool, first: int, last: int, polish: bool, end: float) -> bool:
        start = time.monotonic()
        self.threads.add(threading.get_ident())
        for b in range(rows.start, rows.stop):
            if self.done[b]:
                continue
            if use_seeds:
                time.sleep(self.cost)
                self.seeded[b] += 1
                self.done[b] = self.needed[b] < 0
            for number in range(first, last):
                time.sleep(self.cost)
                self.restarts[b].append(number)
                if number == self.needed[b]:
                    self.done[b] = True
                    break
            self.polished[b] += polish and not self.done[b]
        self.longest = max(self.longest, time.monotonic() - start)
        return True


def nobody(count: int) -> Callable[[], np.ndarray]:
    return lambda: np.zeros(count, dtype=bool)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("count", [1, 5, 200])
def test_every_attempt_is_made_once_and_in_order(threads: int, count: int) -> None:
    needed = [(-1, 0, 7, 49, 99)[b % 5] for b in range(count)]
    work = Recorder(needed)
    cut = search(work, 50, nobody(count), None, Cores(threads))
    assert not cut.any()
    assert work.seeded == [1] * count
    for b, last in enumerate(needed):
        assert work.restarts[b] == list(range(min(last + 1, 50)))
        assert work.polished[b] == (last > 49)


def test_the_hopeless_get_no_restarts_but_are_polished() -> None:
    work = Recorder([99, 99, 3])
    search(work, 10, lambda: np.array([True, False, False]), None, Cores(1))
    assert [len(numbers) for numbers in work.restarts] == [0, 10, 4]
    assert work.polished == [1, 1, 0]


@pytest.mark.parametrize("cost", [1e-4, 5e-3])
def test_a_deadline_is_kept_however_slow_an_attempt_is(cost: float) -> None:
    work = Recorder([10**6] * 3, cost)
    start = time.monotonic()
    cut = search(work, 10**6, nobody(3), start + 0.1, Cores(1))
    late = time.monotonic() - start - 0.1
    assert cut.all()
    assert late < 2.0 + 8 * cost
    assert work.seeded == [1, 1, 1]  # everybody got a first try


def test_a_deadline_of_the_past_cuts_everything() -> None:
    work = Recorder([-1, 5])
    assert search(work, 10, nobody(2), time.monotonic() - 1.0, Cores(1)).all()
    assert work.seeded == [0, 0]


def test_large_batches_use_several_threads_small_ones_one() -> None:
    cores = Cores(3)
    small, large = Recorder([-1] * 8), Recorder([-1] * 300, 1e-4)
    search(small, 0, nobody(8), None, cores)
    search(large, 0, nobody(300), None, cores)
    assert small.threads == {threading.get_ident()}
    assert len(large.threads) > 1
    cores.close()


def test_errors_in_a_thread_are_not_lost() -> None:
    class Broken(Recorder):
        def run(self, rows: slice, use_seeds: bool, first: int, last: int, polish: bool, end: float) -> bool:
            time.sleep(1e-3)
            if threading.current_thread() is not threading.main_thread():
                raise ZeroDivisionError
            return True

    with pytest.raises(ZeroDivisionError):
        search(Broken([-1] * 200), 0, nobody(200), None, Cores(2))


def test_cores_are_counted_where_none_are_given() -> None:
    assert Cores(0).count >= 1
    assert Cores(5).count == 5


@pytest.mark.parametrize("pace", [1, 3, 11])
def test_answers_do_not_depend_on_the_pace(pace: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restarts that are made together end together: which ones, must not depend on how quick the machine is."""
    from kinopt_ros.conformance.ik import reachable_problem
    from kinopt_ros.conformance.robots import seven_revolute
    from kinopt_ros.solvers.kernels import lanes
    from kinopt_ros.solvers.registry import create_solver

    assert search_module.TOGETHER % lanes.LANES == 0
    robot = seven_revolute()
    problem = reachable_problem(robot, 3000, seed=1)
    solver = create_solver("cpu", robot)
    expected = solver.solve_ik(problem).q
    monkeypatch.setattr(search_module, "_pace", lambda units, seconds: pace)
    np.testing.assert_array_equal(solver.solve_ik(problem).q, expected)
    solver.close()
