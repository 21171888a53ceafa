"""`kinopt view`, as it is started and ended."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from kinopt_ros.cli import main

pytest.importorskip("viser", reason="viser is not installed: pip install 'kinopt_ros[view]'")


def test_it_serves_the_page_until_it_is_ended() -> None:
    command = [sys.executable, "-m", "kinopt_ros.cli", "view", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("panda at http://127.0.0.1:"), said
        html = urllib.request.urlopen(said.split()[2], timeout=60.0).read().decode()
        assert "<html" in html
        process.send_signal(signal.SIGTERM)
        assert process.wait(120.0) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "there is no robot"),
        (["--tip", "wheel"], "wheel"),
        (["--group", "legs"], "legs"),
        (["--solver", "magic"], "magic"),
        (["--scene", "nowhere.yaml"], "nowhere.yaml"),
        (["--port", "70000"], "allowed is 0 to 65535"),
    ],
)
def test_mistakes_are_said(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", *arguments]) == 1
    assert sentence in capsys.readouterr().err


def test_a_port_in_use_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["view", "--port", str(taken.getsockname()[1])]) == 1
    assert "name another one by --port" in capsys.readouterr().err


def test_a_missing_viser_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "viser", None)
    assert main(["view"]) == 1
    assert "pip install 'kinopt_ros[view]'" in capsys.readouterr().err
