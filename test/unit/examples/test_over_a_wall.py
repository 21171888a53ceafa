"""examples/over_a_wall.py: PyRoki's trajectory example as an objective, and the verified motion out of it."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import kinopt_ros as ko
from kinopt_ros.trajectory.interpolation import evaluate

pytest.importorskip("jaxls")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_llvm")]  # the objective is compiled

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "over_a_wall.py"
POINTS = 9
"""Fewer than the example's, so that it takes less."""


def test_the_hand_goes_over_the_wall(kept_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept_folder))
    example = runpy.run_path(str(EXAMPLE))
    problem, result, motion = example["solved"](POINTS)
    assert result.success[0], result.messages
    held = [term for term in result.terms[0] if term.tolerance is not None]
    assert [term.title for term in held] == ["begin", "end", "swept_collision", "self_collision"]
    assert max(term.magnitude.max() for term in held) <= 1e-5
    assert motion is not None
    assert motion.trajectory is not None, motion.message
    assert motion.clearance > 0.0

    # As somebody would see it who knows the motion alone.
    robot, scene = ko.load_robot("panda"), problem.scene
    columns = [robot.variable_index[name] for name in motion.trajectory.joint_names]
    q = np.repeat(problem.state, 400, axis=0)
    q[:, columns] = evaluate(motion.trajectory, np.linspace(0.0, motion.trajectory.duration, 400))[0]
    assert ko.check_collisions(robot, scene, q).free.all()
    hand = ko.forward_kinematics(robot, q, ["panda_hand"])[:, 0]
    for T, wanted in zip(hand[[0, -1]], example["ends"](), strict=True):
        np.testing.assert_allclose(T, wanted, atol=2e-5)
    over = hand[np.abs(hand[:, 1, 3]) < 0.05, :3, 3]
    assert len(over)
    assert ((over[:, 2] > 0.4) | (over[:, 0] > 0.7) | (over[:, 0] < 0.3)).all()
