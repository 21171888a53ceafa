"""What a process uses, as /proc tells it."""

import os
from pathlib import Path


def size_of(pid: int) -> tuple[float, int, int]:
    """Memory (MB), threads and file descriptors of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return (
        pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        len(os.listdir(f"/proc/{pid}/task")),
        len(os.listdir(f"/proc/{pid}/fd")),
    )
