"""Tests that every solver plugin must pass, a third party's too.

In a plugin's own test suite::

    from kinopt_ros.conformance.ik import IkConformance

    class TestMySolver(IkConformance):
        solver = "my_solver"          # its name in the entry-point group kinopt_ros.solvers

A plugin that optimizes trajectories alone subclasses ``kinopt_ros.conformance.trajectories.TrajectoryConformance``; one
that solves objectives, ``kinopt_ros.conformance.objectives.ObjectiveConformance``, too.

Needs pytest.
"""
