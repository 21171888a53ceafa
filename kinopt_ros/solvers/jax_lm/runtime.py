"""Start of JAX: device, flags of the compiler, double precision where it is asked for and nowhere else."""

import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError

if TYPE_CHECKING:
    import jax

_FUSION_FLAG = "--xla_backend_extra_options=xla_cpu_use_multi_output_fusion=true"
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Runtime:
    """Device on which programs run, and how they are compiled for it."""

    device: "jax.Device"
    compiler_options: tuple[tuple[str, Any], ...]
    fingerprint: str
    """Text that names what a compiled program depends on besides its source."""

    @property
    def on_cpu(self) -> bool:
        """Whether the device is the CPU."""
        return bool(self.device.platform == "cpu")


def start(device: str, multi_output_fusion: bool) -> Runtime:
    """Import JAX, if it is not yet, and choose a device.

    On CPUs XLA makes code of components quickest by fusing operations of several results into one loop, which is a flag
    of the process and read once, when JAX is first used (four times as quick here as without). Where JAX is in use
    already, fusion is left out for our programs instead (twice as quick as XLA's default, which computes what several
    results need once per result).

    Args:
        device: ``auto`` (what JAX prefers), ``cpu``, ``cuda``, or ``cuda:N``.
        multi_output_fusion: whether that flag may be set.

    Raises:
        InvalidRequestError: another name.
        SolverUnavailableError: no such device.
    """
    kind, _, number = device.partition(":")
    if kind not in DEVICES or (number and (kind != "cuda" or not number.isdigit())):
        raise InvalidRequestError(f"device is {device!r}; allowed are auto, cpu, cuda, cuda:0, cuda:1, ...")
    fused, flags = _import_jax(multi_output_fusion)
    import jax

    try:
        devices = jax.devices() if kind == "auto" else jax.devices(kind)
    except RuntimeError as error:
        raise SolverUnavailableError(f"JAX has no device {device!r} here: {error}") from error
    index = int(number or 0)
    if index >= len(devices):
        raise SolverUnavailableError(
            f"device {device!r} does not exist; JAX sees {len(devices)} of that kind"
        )
    chosen = devices[index]
    options: tuple[tuple[str, Any], ...] = ()
    if chosen.platform == "cpu" and not fused:
        options = (("xla_disable_hlo_passes", "fusion"),)
    fingerprint = "|".join(
        (
            jax.__version__,
            version("jaxlib"),
            chosen.platform,
            chosen.device_kind,
            # From disk a program comes back for the device that it was compiled for only.
            str(chosen.id),
            str(fused),
            str(options),
            flags,
            _host(),
        )
    )
    return Runtime(chosen, options, fingerprint)


@cache
def look_up_lapack() -> None:
    """Have JAX look up the functions of LAPACK, as it does when it lowers something that calls one.

    Programs from disk call them, too, and end the process by a segmentation fault where nothing was lowered before.
    """
    import jax
    import numpy as np

    jax.jit(jax.numpy.linalg.cholesky).lower(np.eye(2))


def _import_jax(multi_output_fusion: bool) -> tuple[bool, str]:
    """Import JAX; return whether multi-output fusion is on, and what the user's flags for XLA are."""
    global _started
    if _started is None:
        flags = os.environ.get("XLA_FLAGS", "").strip()
        _started = _start_jax(multi_output_fusion), flags
    return _started


_started: tuple[bool, str] | None = None
"""Set once: XLA reads its flags once."""


def _start_jax(multi_output_fusion: bool) -> bool:
    if "xla_cpu_use_multi_output_fusion=true" in os.environ.get("XLA_FLAGS", ""):
        return True
    if not multi_output_fusion or _in_use():
        return False
    # Perception may share the graphics card: take memory as it is needed, unless the user says otherwise.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    before = os.environ.get("XLA_FLAGS")
    if before is not None and "xla_backend_extra_options" in before:
        return False  # the flag cannot be given twice, and the user's comes first
    os.environ["XLA_FLAGS"] = f"{before or ''} {_FUSION_FLAG}".strip()
    try:
        import jax

        # Compute where the call is made: to hand a small program over to another thread takes longer than to run it.
        jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
        jax.devices()
        jax.jit(lambda x: x + 1.0)(0.0)  # the flags are read here, and only here
    finally:
        # Processes started from this one shall not inherit it.
        if before is None:
            del os.environ["XLA_FLAGS"]
        else:
            os.environ["XLA_FLAGS"] = before
    return True


def _in_use() -> bool:
    """Check whether JAX has started in this process, and not by us."""
    if "jax" not in sys.modules:
        return False
    try:
        from jax._src import xla_bridge

        return bool(xla_bridge.backends_are_initialized())
    except (ImportError, AttributeError):  # not public: without it, be careful
        return True


def _host() -> str:
    """Machine code is for one kind of CPU."""
    import platform

    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        flags = ""
    return f"{platform.machine()} {flags.strip()}"
