"""Memory that was freed goes back to the system."""

import resource
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.freed_memory import give_back

MEBIBYTES = 100


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def test_what_was_freed_goes_back() -> None:
    """A few that stay keep glibc from giving the others back by itself."""
    blocks = [bytes(1024) for _ in range(MEBIBYTES * 1024)]
    full = resident()
    stay = blocks[::1024]
    blocks.clear()
    give_back()
    assert resident() < full - MEBIBYTES / 2.0
    assert len(stay) == MEBIBYTES
