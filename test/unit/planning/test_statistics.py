"""Counts and percentiles of requests, in bounded memory, from many threads."""

import threading

import numpy as np
import pytest

from kinopt_ros.planning import statistics as statistics_module
from kinopt_ros.planning.statistics import OTHER, Statistics


def test_nothing_was_recorded() -> None:
    summary = Statistics().summary("solve_ik")
    assert (summary.requests, summary.codes, summary.wall, summary.queue) == (0, {}, None, None)


def test_counts_by_code_and_reason() -> None:
    statistics = Statistics()
    for code, reason in ((1, ""), (1, "no GPU"), (-31, "no GPU")):
        statistics.record("solve_ik", code, 0.1, reason=reason)
    statistics.record("compute_fk", 1, 0.1)
    summary = statistics.summary("solve_ik")
    assert summary.requests == 3
    assert summary.codes == {1: 2, -31: 1} == summary.recent
    assert summary.reasons == {"no GPU": 2}
    assert statistics.names() == ("compute_fk", "solve_ik")


def test_percentiles_are_numpys() -> None:
    statistics = Statistics()
    times = np.random.default_rng(0).exponential(0.01, 500)
    for time in times:
        statistics.record("s", 1, float(time), float(time) / 2.0)
    summary = statistics.summary("s")
    assert summary.wall is not None
    assert summary.queue is not None
    expected = np.percentile(times, (50, 95, 99))
    assert (summary.wall.p50, summary.wall.p95, summary.wall.p99) == pytest.approx(expected)
    assert (summary.queue.p50, summary.queue.p95, summary.queue.p99) == pytest.approx(expected / 2.0)


def test_only_the_newest_times_count() -> None:
    statistics = Statistics()
    for time in [9.0] * 1000 + [1.0] * 1000:
        statistics.record("s", 1, time)
    summary = statistics.summary("s")
    assert summary.requests == 2000
    assert summary.wall is not None
    assert summary.wall.p99 == 1.0


def test_old_answers_are_not_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = Statistics()
    statistics.record("s", -1, 0.1)
    monkeypatch.setattr(statistics_module, "RECENT", -1.0)
    assert statistics.summary("s").recent == {}
    assert statistics.summary("s").codes == {-1: 1}


def test_names_and_reasons_of_an_adversary_do_not_fill_the_memory() -> None:
    statistics = Statistics()
    for i in range(1000):
        statistics.record(f"name {i}", 1, 0.1)
        statistics.record("name 0", 1, 0.1, reason=f"reason {i}")
    assert len(statistics.names()) <= 101
    assert statistics.summary(OTHER).requests == 900
    reasons = statistics.summary("name 0").reasons
    assert len(reasons) <= 101
    assert sum(reasons.values()) == 1000


def test_no_count_is_lost_among_threads() -> None:
    statistics = Statistics()

    def record() -> None:
        for _ in range(500):
            statistics.record("s", 1, 0.1)
            statistics.summary("s")

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statistics.summary("s").codes == {1: 2000}
