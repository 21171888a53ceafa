"""A real CUDA error, which ends all work of its process with the device: a child process goes on there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

wp = pytest.importorskip("warp")

pytestmark = pytest.mark.slow  # kernels take seconds to compile


def test_after_a_cuda_error_another_process_answers() -> None:
    if wp.get_cuda_device_count() == 0:
        pytest.skip("no CUDA device here: real CUDA errors are untested")
    program = Path(__file__).with_name("broken_device.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout.splitlines()[-1])
    assert "CUDA error" in record["error"], record
    assert record["before"] == 1.0
    assert record["after"] == [1.0, 1.0], done.stderr
