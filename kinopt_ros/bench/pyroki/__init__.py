"""PyRoki as a peer. It needs an environment of its own, which `make bench-beam` makes."""
