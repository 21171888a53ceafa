"""Programs of IK-Beam: what they depend on, and how they are compiled.

A key has all of it but device, versions of JAX, and the source of what is compiled: shapes of chain, rows and beam, and
the number of targets.
"""

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental.xla_metadata import set_xla_metadata

from kinopt_ros.solvers.jax_lm.beam import FEW, beam
from kinopt_ros.solvers.jax_lm.programs import Compilation
from kinopt_ros.solvers.jax_lm.runtime import Runtime
from kinopt_ros.solvers.jax_lm.shapes import ProgramKey
from kinopt_ros.source_stamp import own_source_stamp

ONE_KERNEL = 128
"""Most lanes of programs for CPUs that are compiled as a whole."""


def beam_compilation(runtime: Runtime, key: ProgramKey) -> Compilation:
    """Return how the program of a key is made."""
    source = own_source_stamp(Path(__file__)).hex()
    text = f"{runtime.fingerprint}\n{source}\n{key!r}"
    name = hashlib.sha256(text.encode()).hexdigest()[:32]
    return Compilation(lambda: name, partial(compiled, runtime, key))


def compiled(runtime: Runtime, key: ProgramKey) -> Any:
    """Compile a beam."""
    n, S, B = key.chain.variables, key.size.num_seeds, key.targets
    function: Callable[..., jax.Array] = partial(beam, key.chain, key.rows, key.size)
    options = dict(runtime.compiler_options)
    if runtime.on_cpu and S > 1 and S * B <= ONE_KERNEL and key.size.keep <= FEW:
        function = _one_kernel(function)
        options["xla_cpu_prefer_vector_width"] = 512  # 4 us less of 60 where processors have it
    lowered = jax.jit(function).lower(
        np.empty(len(key.chain.exact) + 12 + 4 * n + 18),
        np.empty((4, n), np.float32),
        np.empty((B, 12 + 2 * n)),
        np.empty((n, S * B), np.float32),
    )
    return lowered.compile(compiler_options=options)


def _one_kernel(function: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """The function as one call that XLA compiles as a whole, loops and all. (Others are run as hundreds of kernels, on
    several threads, which for few lanes takes five times as long as what they compute.)

    What says so is no public interface: versions of XLA that do not know it only take longer. With a single
    start, where the table of starts is of no use, XLA 0.10 aborts the process: such programs are left as they are.
    """
    inner = jax.jit(function)

    def outer(*arguments: jax.Array) -> jax.Array:
        found: jax.Array = set_xla_metadata(  # type: ignore[no-untyped-call]
            inner(*arguments), xla_cpu_small_call="true", inlineable="false"
        )
        return found

    return outer
