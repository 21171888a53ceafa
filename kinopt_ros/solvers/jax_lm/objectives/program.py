"""Programs of objectives: what they depend on, and how they are compiled.

A program is known in memory by its layout, and on disk by what JAX has traced, so that code of anybody's cost, and of
all that it calls, is part of its name. To trace takes seconds; so what the name of one follows from whose costs are all
of kinopt_ros is kept, too: sources, robot and layout.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import jax
import numpy as np

from kinopt_ros.robot.digest import kinematics_digest
from kinopt_ros.solvers.jax_lm.objectives.layout import Layout, pack
from kinopt_ros.solvers.jax_lm.objectives.polish import polish, unknown
from kinopt_ros.solvers.jax_lm.programs import Compilation
from kinopt_ros.solvers.jax_lm.runtime import Runtime
from kinopt_ros.source_stamp import package_stamp

POLISH = "polish"
SEARCH = "search"
_OWN = "kinopt_ros.costs."
SEARCH_STEPS = 30
"""Steps of each start."""
_NOT_FOR_OBJECTIVES = ("algsimp", "reshape-mover", "cpu_multi_output_fusion", "dot-library-rewriter")
"""Passes of XLA 0.10 for CPUs that are left out: algebraic simplification made wrong poses of single configurations
(see ``differentiable/products.py``). Without it nobody tidies up behind the pass that moves reshapes: round after round
it added transposes and copies, two thirds of all instructions in the end. The fusion of several results, which IK-Beam
wants, aborts the process over loops such as those of jaxls. What is rewritten for the library YNNPACK ended one of four
new processes with a segmentation fault, where that library fuses operations (``ynn_subgraph::fusion``)."""


@dataclass(frozen=True)
class ObjectiveKey:
    """Key of a program for one robot."""

    kind: str
    """``polish`` or ``search``."""
    lanes: int
    """Starts that it takes at a time."""
    text: str
    """``Layout.text``"""
    sources: tuple[Any, ...]
    """Classes of the costs, and code of their residuals: both change where a module is loaded anew."""
    layout: Layout = field(compare=False, repr=False)


def sources_of(layout: Layout) -> tuple[Any, ...]:
    """Return what tells a cost from one of the same name that was written later."""
    kinds = [type(cost) for cost in layout.objective]
    return tuple((kind, getattr(kind.residual, "__code__", kind.residual)) for kind in kinds)


def objective_compilation(runtime: Runtime, key: ObjectiveKey) -> Compilation:
    """Return how the program of a key is named and compiled. Both raise a CostError if a cost cannot be traced."""
    options = dict(runtime.compiler_options)
    if runtime.on_cpu:
        known = options.get("xla_disable_hlo_passes")
        options["xla_disable_hlo_passes"] = ",".join([*([known] if known else []), *_NOT_FOR_OBJECTIVES])
    traced = cache(partial(_traced, key))

    def name() -> str:
        return _digest(f"{runtime.fingerprint}\n{options}\n{traced().as_text()}".encode())

    return Compilation(
        name,
        lambda: traced().compile(compiler_options=options),
        _known_as(f"{runtime.fingerprint}\n{options}", key),
    )


def _traced(key: ObjectiveKey) -> Any:
    """Return the program of a key as JAX traces it."""
    layout = key.layout
    starts = (
        np.empty((key.lanes, len(pack(layout.objective, 1.0)))),
        np.empty((key.lanes, layout.num_points, layout.robot.nq)),
    )
    if key.kind == POLISH:
        states = jax.eval_shape(jax.vmap(partial(unknown, layout)), *starts)
        one = jax.vmap(partial(polish, layout), in_axes=(0, 0, None))
        return jax.jit(one).lower(starts[0], states, np.int64(0))
    # jaxls takes half a second to import.
    from kinopt_ros.solvers.jax_lm.objectives.search import search

    return jax.jit(jax.vmap(partial(search, layout, SEARCH_STEPS))).lower(*starts)


def _known_as(compiler: str, key: ObjectiveKey) -> str | None:
    """Return a digest of what the trace follows from; None where that is more than is known: code of others, shapes."""
    kinds = {type(cost) for cost in key.layout.objective}
    if any(not kind.__module__.startswith(_OWN) or kind.looks_at_shapes for kind in kinds):
        return None
    sources = package_stamp("kinopt_ros", "jaxls", "jaxlie")
    if sources is None:
        return None
    told = f"{compiler}\n{np.__version__}\n{key.kind} {key.lanes}\n{key.text}"
    return _digest(sources + kinematics_digest(key.layout.robot) + told.encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]
