"""numba's ``njit``, after it was seen to where numba keeps what it compiles: its files are code, and their index is a
pickle. Compiled functions take it from here."""

import logging
import os
from pathlib import Path

import numba
from numba import njit

from kinopt_ros.private_files import cache_folder, others_hand, private_folder, temporary_folder

__all__ = ["njit"]

_log = logging.getLogger(__name__)


def trusted_folder(chosen: str, package: Path) -> str:
    """Where numba shall keep compiled code; empty: beside the sources.

    Args:
        chosen: what NUMBA_CACHE_DIR says.
        package: folder of the sources.
    """
    if chosen:
        reason = others_hand(Path(chosen))
        if not reason:
            return chosen
        _log.warning("NUMBA_CACHE_DIR is not used: %s", reason)
    elif _beside_sources(package):
        return ""
    try:
        return str(private_folder(cache_folder("numba")))
    except (OSError, RuntimeError) as error:  # the latter where a user has no home
        _log.warning("compiled code is not kept, and made anew with every start: %s", error)
        return str(temporary_folder())


def _beside_sources(package: Path) -> bool:
    """Whether numba's files lie beside the sources, where nobody can write to who cannot write to the sources."""
    for source in {file.parent for file in package.rglob("*.py")}:
        cache = source / "__pycache__"
        if not os.access(cache if cache.exists() else source, os.W_OK):
            return False  # numba would go elsewhere
        if cache.is_symlink():
            return False
        if not cache.exists():
            continue
        of_source, of_cache = source.stat(), cache.stat()
        if of_cache.st_uid not in (of_source.st_uid, os.geteuid()):
            return False
        more = of_cache.st_mode & ~of_source.st_mode & 0o022
        if more or (of_cache.st_mode & 0o020 and of_cache.st_gid != of_source.st_gid):
            return False
    return True


numba.config.CACHE_DIR = trusted_folder(numba.config.CACHE_DIR, Path(__file__).parent)
