"""Results that took seconds, kept in the user's cache folder by a digest of all that they depend on."""

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

MOST_BYTES = 512 * 2**20
"""Kept in all; the longest unused files go first."""
_log = logging.getLogger(__name__)


def default_folder() -> Path:
    """Below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kinopt_ros" / "collision"


def digest(modules: Iterable[str], *values: Any) -> str:
    """Of the source of modules and of values: numbers, text, bytes, arrays, dataclasses, and collections of these."""
    found = hashlib.blake2b(digest_size=20)
    for module in modules:
        spec = find_spec(module)
        if spec is not None and spec.origin is not None:
            found.update(Path(spec.origin).read_bytes())
    for value in values:
        _add(found, value)
    return found.hexdigest()


def load(key: str) -> dict[str, np.ndarray[Any, Any]] | None:
    """Arrays by name; None if there are none, or the file is damaged."""
    try:
        path = default_folder() / f"{key}.npz"
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        path.touch()  # used just now
        return arrays
    except FileNotFoundError:
        return None
    except Exception as error:  # whatever a damaged archive raises: the result is made anew
        _log.info("cannot use %s of the cache: %s", key, error)
        return None


def store(key: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Keep arrays; a folder that cannot be written is no error."""
    try:
        folder = default_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".part", delete=False) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type, unused-ignore]
        os.replace(file.name, folder / f"{key}.npz")
        _tidy(folder)
    except (OSError, RuntimeError) as error:  # the latter where a user has no home
        _log.info("cannot keep %s in the cache: %s", key, error)


def _tidy(folder: Path) -> None:
    room = MOST_BYTES
    files = [(path.stat(), path) for path in folder.glob("*.npz")]
    for status, path in sorted(files, key=lambda file: -file[0].st_mtime):
        room -= status.st_size
        if room < 0:
            path.unlink(missing_ok=True)


def _add(found: Any, value: Any) -> None:
    if isinstance(value, np.ndarray):
        found.update(f"array {value.dtype} {value.shape};".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value):
        found.update(f"{type(value).__name__};".encode())
        for field in fields(value):
            _add(found, getattr(value, field.name))
    elif isinstance(value, Enum):
        _add(found, value.value)
    elif isinstance(value, tuple | list):
        found.update(f"{len(value)} items;".encode())
        for item in value:
            _add(found, item)
    else:
        found.update(f"{value!r};".encode())
