"""Options of numba's compiler: for entry points, for functions that only compiled code calls, and for small ones."""

OUTER = {"cache": True, "nogil": True, "error_model": "numpy"}
"""Options of functions that Python calls. Their machine code is kept on disk."""
INNER = OUTER | {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of functions that compiled code calls. Wrappers for Python and files of their own only cost compile time."""
INLINE = INNER | {"forceinline": True}
"""Options of functions whose call would take longer than their work."""

_FAST = {"fastmath": {"contract", "nsz", "arcp"}}
"""Fused multiply-add is allowed; NaN and infinity keep their meaning."""
FAST_OUTER, FAST_INNER, FAST_INLINE = OUTER | _FAST, INNER | _FAST, INLINE | _FAST
