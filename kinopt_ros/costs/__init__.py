"""Terms of the cost of a motion: one file each, with formula, units, source and residual.

A residual takes the array module (numpy or jax.numpy) as its first argument; the cost is the mean of its squares over
the path. Compiled solvers have these formulas a second time, and their tests compare the two.
"""
