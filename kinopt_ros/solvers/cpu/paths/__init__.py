"""Paths around obstacles: banded Levenberg-Marquardt over all points of a path, compiled with numba."""
