"""A plugin that optimizes trajectories alone: the node says so, and others solve inverse kinematics."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.ros_requests import READY, StartNode, ik, pose
from support.trajectory_goals import until_prepared

from kinopt_msgs.srv import ListSolvers, PlanTrajectory
from kinopt_ros.status import Status

pytest.importorskip("coal")

PLUGIN = """
from dataclasses import replace

from kinopt_ros.solvers.base import Feature, Solver
from kinopt_ros.solvers.cpu.plugin import CpuSolver


class Mover(CpuSolver):
    name = "mover"
    capabilities = replace(CpuSolver.capabilities, features=frozenset({Feature.TRAJECTORIES}))
    _solve_ik = Solver._solve_ik
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installs the plugin for the processes of one test."""
    (tmp_path / "mover.py").write_text(PLUGIN)
    about = tmp_path / "mover-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mover\nVersion: 0\n")
    (about / "entry_points.txt").write_text("[kinopt_ros.solvers]\nmover = mover:Mover\n")
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))


@pytest.mark.usefixtures("plugin")
def test_it_moves_and_others_solve_poses(start_node: StartNode, panda_parameters: dict[str, object]) -> None:
    own = {**panda_parameters, "trajectory.solver": "mover", "trajectory.max_timeout": 600.0}
    process, client = start_node("moving_node", own)
    client.pretend_robot(READY)
    until_prepared(client)
    features = {
        info.name: info.features for info in client.call("list_solvers", ListSolvers.Request()).solvers
    }
    assert features["mover"] == ["trajectories alone"]
    assert "trajectories" in features["cpu"]
    moved = client.call(
        "plan_trajectory", PlanTrajectory.Request(poses=[pose()], timeout=60.0), timeout=120.0
    )
    assert moved.status.code == Status.SUCCESS, moved.status.message
    assert (moved.solver_used, moved.fallback_reason) == ("mover", "")
    solved = client.call("solve_ik", ik(pose(), solver="mover"))
    assert solved.status.code == Status.SUCCESS, solved.status.message
    assert solved.solver_used == "cpu"
    assert "mover does not solve inverse kinematics" in solved.fallback_reason
    refused = client.call("solve_ik", ik(pose(), solver="mover", no_fallback=True))
    assert refused.status.code == Status.UNSUPPORTED_FEATURE
    assert "trajectories alone" in refused.status.message
    assert "does not solve inverse kinematics" not in process.log_text()  # nobody wants that of it
