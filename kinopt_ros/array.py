"""Array types: dtype checked by mypy, shape written beside it.

``Annotated[Float64, "B n"]`` is a float64 array of shape (B, n). Letters used throughout: B independent
requests, K solutions per request, S seeds per request, n solved variables, nq variables of the robot,
L links, m elementary motions of a chain.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Float64: TypeAlias = NDArray[np.float64]
Int64: TypeAlias = NDArray[np.int64]
Bool: TypeAlias = NDArray[np.bool_]


def frozen(array: Float64 | Int64 | Bool) -> None:
    """Make an array read-only in place, so that frozen dataclasses are frozen to the last number."""
    array.setflags(write=False)
