"""Warp kernels; one thread works on one start of one target. Arrays of configurations are (n, lanes), lanes of a target
side by side, so that neighbouring threads read neighbouring numbers."""
