"""Progress of long measurements: on a terminal only, never inside what is timed."""

import time

import pytest

from kinopt_ros.bench.progress import progress_bar, timed_loop


def test_without_a_terminal_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("measuring", 10, enabled=False) as report:
        report("x", 10)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_the_bar_goes_to_stderr_and_names_what_is_under_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with progress_bar("measuring", 8, enabled=True) as report:
        report("some_solver", 4)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "measuring some_solver" in captured.err
    assert "50%" in captured.err


@pytest.mark.parametrize("count", [1, 49, 50, 173])
def test_a_loop_answers_in_order_and_reports_every_call_once(count: int) -> None:
    reported: list[int] = []
    answers, _ = timed_loop(lambda i: -i, range(count), "x", lambda what, n: reported.append(n))
    assert answers == [-i for i in range(count)]
    assert sum(reported) == count
    assert min(reported) > 0


def test_time_spent_in_reports_does_not_count() -> None:
    def busy(what: str, count: int) -> None:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass

    _, seconds = timed_loop(lambda i: i, range(10), "x", busy)  # 0.2 s of reports
    assert seconds < 0.1
