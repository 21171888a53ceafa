"""Objectives beside PyRoki: the same costs, one configuration at a time and in batches."""
