"""Objectives on JAX: a search by jaxls from many starts, and sequential quadratic programming in float64 that makes the
best of them exact. Importing this package imports JAX; ``search.py`` alone imports jaxls."""
