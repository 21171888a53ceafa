"""What is measured is of the time that a test says, however long the test takes."""

from types import SimpleNamespace

import pytest

from kinopt_ros.ros.robot import joint_states


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joint states that a test has just given are new; a test that needs them older says so."""
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: 0.0))
