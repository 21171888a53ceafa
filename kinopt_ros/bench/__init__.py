"""Measurements, side by side with other libraries: on the same targets, in the same run."""
