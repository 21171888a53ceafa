"""Kinematic chain whose arrays are on a device."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import warp as wp

from kinopt_ros.array import Float64, Int64
from kinopt_ros.solvers.hjcd.chain import LOWER, UPPER, KernelChain
from kinopt_ros.solvers.hjcd.kernels.kit import kit


@dataclass(frozen=True, eq=False)
class DeviceChain:
    """A chain on the device, for kernels of both precisions."""

    chain: KernelChain
    single: Any
    """The chain as the struct ``Chain`` of a kit, in single precision."""
    double: Any

    @property
    def variables(self) -> Annotated[Int64, "n"]:
        """Indices in the robot's q."""
        return self.chain.variables


def device_chain(chain: KernelChain, device: Any) -> DeviceChain:
    """Copy a chain of at least one variable."""
    return DeviceChain(chain, _struct(chain, wp.float32, device), _struct(chain, wp.float64, device))


def _struct(chain: KernelChain, scalar: Any, device: Any) -> Any:
    ranges = chain.ranges if scalar is wp.float64 else _inwards(chain.ranges)
    struct = kit(chain.shape, scalar).Chain()
    struct.motions = wp.array(chain.motions, dtype=scalar, device=device)
    struct.translates = wp.array(chain.translates, dtype=wp.int32, device=device)
    struct.column = wp.array(chain.column, dtype=wp.int32, device=device)
    struct.frame = wp.array(chain.frame, dtype=scalar, device=device)
    struct.ranges = wp.array(ranges, dtype=scalar, device=device)
    return struct


def _inwards(ranges: Annotated[Float64, "7 n"]) -> Annotated[np.ndarray, "7 n"]:
    """Convert limits to float32 without rounding them outwards."""
    rounded = ranges.astype(np.float32)
    for row, beyond, way in ((LOWER, np.less, np.inf), (UPPER, np.greater, -np.inf)):
        outside = beyond(rounded[row].astype(np.float64), ranges[row])
        rounded[row] = np.where(outside, np.nextafter(rounded[row], np.float32(way)), rounded[row])
    return rounded
