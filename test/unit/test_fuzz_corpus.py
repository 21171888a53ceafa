"""Some of the corpus of hostile inputs (test/fuzz, `make fuzz`), and that its limits are noticed."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from fuzz import runner
from fuzz.kinds import NAMES
from fuzz.source import Source
from support.thorough import times

from kinopt_ros.errors import InvalidRequestError

_OF_ROS = ("parameters", "messages", "moveit_scenes")
_INPUTS = times(40, 80)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in _OF_ROS])
def test_no_input_ends_otherwise_than_with_a_sentence(name: str) -> None:
    if name in ("meshes", "scenes", "plans"):
        pytest.importorskip("trimesh", reason="trimesh is not installed")
    assert not list(runner.run(name, 2, 0, _INPUTS))


@pytest.mark.parametrize("name", _OF_ROS)
def test_no_request_ends_otherwise_than_with_a_sentence(name: str) -> None:
    pytest.importorskip("rclpy", reason="ROS is not installed")
    pytest.importorskip("kinopt_msgs", reason="kinopt_msgs is not built")
    assert not list(runner.run(name, 2, 0, _INPUTS))


def _feed(error: BaseException) -> SimpleNamespace:
    def feed(source: Source, folder: Path) -> None:
        raise error

    return SimpleNamespace(feed=feed)


class _Unsaid(InvalidRequestError):
    """Has a sentence that no message can hold."""

    def __str__(self) -> str:
        return "\ud800"


def test_what_must_not_happen_is_noticed(tmp_path: Path) -> None:
    def outcome(error: BaseException) -> str:
        return runner._outcome(_feed(error), Source("a"), tmp_path)

    hidden = InvalidRequestError("it cannot be read")
    hidden.__cause__ = MemoryError()
    assert outcome(InvalidRequestError("a sentence")) == ""
    assert "more than 1073741824 bytes" in outcome(hidden)
    assert "ValueError: x" in outcome(ValueError("x"))
    assert "cannot be sent" in outcome(_Unsaid("half a pair"))


def test_the_same_numbers_make_the_same_input() -> None:
    good = {"a": [1.0, 2.0, {"b": "text"}]}
    first, again = (str(Source("scenes 1 7").changed(good, 0.5)) for _ in range(2))
    assert first == again


def test_a_process_that_hangs_is_ended_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the worker's own way, with a limit of a second."""
    import subprocess
    import sys

    program = (
        "import sys\nfrom pathlib import Path\nfrom types import SimpleNamespace\nfrom fuzz import runner\n"
        "def feed(source, folder):\n    while True: pass\n"
        "runner.SECONDS = 1\n"
        "runner.kind = lambda name: SimpleNamespace(prepare=lambda folder: None, feed=feed)\n"
        "runner._work('x', 1, 5, 6, Path(sys.argv[1]))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False,
        env=runner._environment(),
    )  # fmt: skip
    assert ended.returncode < 0
    assert "in feed" in ended.stderr
    assert int((tmp_path / "at").read_text()) == 5
