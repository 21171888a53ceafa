"""A caller's mistake is answered, a defect is logged, too; and there is one place that does it."""

from pathlib import Path

import pytest

import kinopt_ros.ros
from kinopt_ros.errors import InvalidGoalError
from kinopt_ros.ros.serving.defects import error_status, log_defect
from kinopt_ros.status import Status


class Log:
    """Stand-in for the node's logger."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, float]]] = []

    def error(self, line: str, **options: float) -> None:
        self.lines.append((line, options))


def raised(error: Exception) -> Exception:
    """Return an error with its traceback."""
    with pytest.raises(type(error)) as found:
        raise error
    return found.value


def test_a_callers_mistake_is_answered_and_not_logged() -> None:
    log = Log()
    status = error_status(log, "in a test", InvalidGoalError("no pose"))
    assert (status.code, status.message) == (InvalidGoalError.status, "no pose")
    assert not log.lines


def test_a_defect_is_answered_without_its_text_and_logged_with_its_trace() -> None:
    log = Log()
    status = error_status(log, "in a test", raised(ValueError("the insides")))
    assert status.code == Status.FAILURE
    assert "ValueError" in status.message
    assert "insides" not in status.message
    [(line, options)] = log.lines
    assert line.startswith("internal error in a test:\nTraceback")
    assert "the insides" in line
    assert "in raised" in line
    assert not options


def test_defects_that_come_often_are_logged_now_and_then() -> None:
    log = Log()
    log_defect(log, "on a topic", raised(ValueError()), seconds=30.0)
    assert log.lines[0][1] == {"throttle_duration_sec": 30.0}


def test_nobody_else_makes_such_answers() -> None:
    room = Path(kinopt_ros.ros.__file__).parent
    files = [file for file in room.rglob("*.py") if file.name != "defects.py"]
    assert len(files) > 50
    for file in files:
        text = file.read_text()
        assert "traceback" not in text, file
        assert "internal error" not in text, file
