"""Costs and constraints: one file each, with formula, units, source and residual.

``base.py`` says what a cost is, ``registry.py`` knows all of them by name. Some files have the same formula for a whole
path as well (``xp, q -> residual``): that of ``problems.trajectory.CostWeights``, against which compiled solvers are
tested.
"""
