"""The README's first command waits until all is prepared, as long as that takes."""

import re
import subprocess
from pathlib import Path

import pytest
from support.pages import FIRST_COMMANDS

(WAIT,) = re.findall(r"^    (until ros2 .*; done)$", FIRST_COMMANDS, re.MULTILINE)
ANSWERS = (
    "success=False, message='the robot is being loaded and its solver compiled'",
    "success=True, message=\"robot 'panda'; being prepared: collision checks, trajectories\"",
    "success=True, message=\"robot 'panda'; being prepared: trajectories\"",
    "success=True, message=\"robot 'panda'; all is prepared\"",
)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_it_waits_for_the_last_answer(tmp_path: Path, shell: str) -> None:
    """Stand-ins take the place of ros2, which answers one after the other, and of sleep, which need not."""
    answers = "\n".join(f"{n}) cat <<'END'\n{ANSWERS[n]}\nEND\n;;" for n in range(len(ANSWERS)))
    count = tmp_path / "count"
    count.write_text("0")
    for name, text in {
        "ros2": f'n=$(cat {count})\necho $((n + 1)) > {count}\necho "requester: making request"\n'
        f"case $n in\n{answers}\n*) exit 1;;\nesac\n",
        "sleep": "",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}")
        (tmp_path / name).chmod(0o755)
    ended = subprocess.run(
        [shell, "-c", f"PATH={tmp_path}:$PATH; {WAIT}"],
        capture_output=True, text=True, check=False, timeout=60.0,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"{ANSWERS[-1]}\n"
    assert int(count.read_text()) == len(ANSWERS)


def test_it_is_the_first_of_them() -> None:
    block = FIRST_COMMANDS
    calls = re.findall(r"ros2 (?:service|topic) \w+.*", block)
    assert calls[0] in WAIT
    assert "/kinopt/ready" in WAIT
