"""Options of numba's compiler: for entry points, for functions that only compiled code calls, and for small ones.

numba counts the references to every array at every function that it passes through, by calls that its optimizer does
not see into: a function that gets a robot and a room of fifty arrays spends more time on that than on its work, and the
compiler spends as much again. What only compiled code calls does not count (``_nrt``): whoever calls it keeps its
arrays alive. So it must not make arrays, nor return them; numba refuses the former by name. What makes some for its
caller is of ``ALLOCATING``.
"""

OUTER = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": True}
"""Options of functions that Python calls. Their machine code is kept on disk."""
ALLOCATING = OUTER | {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of functions that compiled code calls, and that make arrays. Wrappers for Python and files of their own only
cost compile time."""
INNER = ALLOCATING | {"_nrt": False}
"""Options of functions that compiled code calls."""
INLINE = INNER | {"forceinline": True}
"""Options of functions whose call would take longer than their work."""

_FAST = {"fastmath": {"contract", "nsz", "arcp"}}
"""Fused multiply-add is allowed; NaN and infinity keep their meaning."""
FAST_OUTER, FAST_ALLOCATING = OUTER | _FAST, ALLOCATING | _FAST
FAST_INNER, FAST_INLINE = INNER | _FAST, INLINE | _FAST
