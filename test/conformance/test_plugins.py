"""Every installed and available plugin passes the conformance suite."""

from kinopt_ros.conformance.ik import IkConformance


class TestCpu(IkConformance):
    solver = "cpu"
    minimum_success = 1.0
    targets = 500
