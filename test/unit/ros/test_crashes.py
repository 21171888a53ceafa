"""Where compiled code ends the node's process, its log says in which call."""

from __future__ import annotations

import signal
import subprocess
import sys

CRASHES = """
import os, signal
from kinopt_ros.ros import main

def compiled():
    os.kill(os.getpid(), signal.SIGSEGV)

main.missing = compiled
main.main([])
"""


def test_a_crash_in_compiled_code_names_the_call() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CRASHES], capture_output=True, text=True, timeout=300.0, check=False
    )
    assert ended.returncode == -signal.SIGSEGV
    assert "in compiled\n" in ended.stderr
