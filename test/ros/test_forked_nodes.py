"""Forked programs are as those that are started: by them, all other tests of nodes are as good as of started ones."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support import forked_nodes
from support.forked_nodes import ForkedNode

PROGRAM = """
import os, signal, sys, time
print(__name__, *sys.argv[1:2], os.environ["ROS_WANTED"], os.getcwd(), flush=True)
if "waits" in sys.argv:
    try:
        time.sleep(600.0)
    except KeyboardInterrupt:
        sys.exit(3)
raise KeyError("told")
"""


@pytest.fixture(params=["started", "forked"])
def forked(
    request: pytest.FixtureRequest, ros: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Whether the next program of this environment is forked, which has PROGRAM as the module ``told``."""
    (tmp_path / "told.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(forked_nodes, "_begun", set())
    monkeypatch.setattr(forked_nodes, "_forking", {})
    if request.param == "forked":
        with ForkedNode({}, tmp_path / "first.log", module="told", words=["first"]) as first:
            assert first.wait(60.0) == 1
    return bool(request.param == "forked")


def test_a_program_has_what_it_was_given_and_says_how_it_ended(
    forked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROS_WANTED", "here")
    monkeypatch.chdir(tmp_path)
    with ForkedNode({}, tmp_path / "log", module="told", words=["word"]) as program:
        assert program.wait(60.0) == 1
        assert program.stop() == 1
    words, *trace = program.log_text().splitlines()
    assert words.split() == ["__main__", "word", "here", str(tmp_path)]
    assert trace[-1] == "KeyError: 'told'"
    assert bool(forked_nodes._forking) == forked
    forked_nodes.end_forking()


def test_signals_reach_it(forked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_WANTED", "here")
    for interrupted in (True, False):
        with ForkedNode({}, tmp_path / "log", module="told", words=["waits"]) as program:
            while "waits" not in program.log_text():
                assert program.wait(0.01) is None
            assert program.running
            if interrupted:
                assert program.stop() == 3
            else:
                os.kill(program.pid, signal.SIGKILL)
                assert program.wait(60.0) == -signal.SIGKILL
    forked_nodes.end_forking()
