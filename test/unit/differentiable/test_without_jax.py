"""Tests of the messages where jax is not installed."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["jax"] = None
import kinopt_ros
try:
    import kinopt_ros.differentiable
except ImportError as error:
    print(error)
"""


def test_the_message_says_what_to_install():
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert "needs jax" in result.stdout
    assert "pip install 'kinopt_ros[jax]'" in result.stdout
