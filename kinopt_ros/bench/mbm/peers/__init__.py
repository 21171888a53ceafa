"""Other planners on the same problems, each in a file of its own."""
