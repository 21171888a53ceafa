"""Keeps what XLA compiles for tests of formulas, which compile the same again in every run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ALL = {"jax_persistent_cache_min_compile_time_secs": 0.0, "jax_persistent_cache_min_entry_size_bytes": -1}


@contextmanager
def kept_compilations(folder: Path) -> Iterator[None]:
    """Let JAX keep all that it compiles in a folder, where it finds it by what is computed, and for which versions.

    Not for tests of the plugin, which keeps its programs itself.
    """
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    wanted = {"jax_compilation_cache_dir": str(folder), **_ALL}
    before = {name: getattr(jax.config, name) for name in wanted}
    for name, value in wanted.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()  # it looks at the folder once
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        compilation_cache.reset_cache()
