"""Compiled code on disk that a change in another file has made stale."""

from pathlib import Path
from typing import Any


def forget_stale(function: Any, *sources: str) -> None:
    """Remove what numba keeps on disk of a function's file if one of ``sources`` is newer.

    numba compares the file of a function with its cached code, but not the files of functions compiled into it. Call
    this before the function is compiled. A folder that may not be written is left alone: what another user
    installed, or a read-only file system holds, does not change under him.
    """
    folder = Path(function.stats.cache_path)
    stem = Path(function.py_func.__code__.co_filename).stem
    newest = max(Path(source).stat().st_mtime for source in sources)
    for index in folder.glob(f"{stem}.*.nbi"):
        try:
            if index.stat().st_mtime <= newest:
                index.unlink()
        except OSError:  # another process was quicker, or it is not ours to remove
            continue
