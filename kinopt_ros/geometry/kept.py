"""Cache for results that took seconds, in the user's cache folder by a digest of all that they depend on."""

import hashlib
import io
import logging
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.private_files import ForeignFileError, PrivateFolder, cache_folder

MOST_BYTES = 512 * 2**20
"""Most bytes kept in all; the longest unused files go first."""
MOST_FILES = 10_000
_log = logging.getLogger(__name__)


def default_folder() -> Path:
    """Return the folder of this cache, below the user's cache folder."""
    return cache_folder("collision")


def digest(modules: Iterable[str], *values: Any) -> str:
    """Return a hash of the source of modules and of values.

    Values are numbers, text, bytes, arrays, dataclasses, and collections of these.
    """
    found = hashlib.blake2b(digest_size=20)
    for module in modules:
        spec = find_spec(module)
        if spec is not None and spec.origin is not None:
            found.update(Path(spec.origin).read_bytes())
    for value in values:
        _add(found, value)
    return found.hexdigest()


def load(key: str) -> dict[str, np.ndarray[Any, Any]] | None:
    """Load arrays by name; None if there are none, the file is damaged, or others could have written it.

    Collision checks rest on what is in it.
    """
    try:
        content = _folder().read(key)
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        return None
    except ForeignFileError as error:
        _say(error)
        return None
    except Exception as error:  # whatever a damaged archive raises: the result is made anew
        _log.info("cannot use %s of the cache: %s", key, error)
        return None


def store(key: str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Keep arrays; a folder that cannot be written is no error."""
    try:
        content = io.BytesIO()
        np.savez(content, **arrays)  # type: ignore[arg-type, unused-ignore]
        folder = _folder()
        folder.write(key, content.getvalue())
        folder.prune(MOST_FILES, MOST_BYTES)
    except ForeignFileError as error:
        _say(error)
    except (OSError, RuntimeError) as error:  # the latter where a user has no home
        _log.info("cannot keep %s in the cache: %s", key, error)


def _folder() -> PrivateFolder:
    return PrivateFolder(default_folder(), ".arrays", b"arrays of kinopt_ros\n", MOST_BYTES)


def _say(error: ForeignFileError) -> None:
    _say_once(str(error))


@lru_cache(maxsize=64)
def _say_once(sentence: str) -> None:
    _log.warning("%s; what is kept there is computed anew", sentence)


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
