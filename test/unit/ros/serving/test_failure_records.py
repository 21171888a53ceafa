"""Records while the node shuts down."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.ros.serving.failure_records import FailureRecords


def test_a_request_that_ends_after_the_node_is_not_kept_and_breaks_nothing(tmp_path: Path) -> None:
    nothing: Any = None
    failed: Any = SimpleNamespace(failed=np.array([True]))
    records = FailureRecords(nothing, nothing)
    records.use(str(tmp_path))
    records.close()
    records.note(nothing, failed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given",
    ["~nosuchuser/x", "x" * 5_000, "/" + "x" * 5_000, "a\0b", "/dev/null", "/proc/self/maps", "nowhere"],
    ids=range(7),
)
def test_a_folder_that_cannot_be_used_is_refused(given: str) -> None:
    with pytest.raises(InvalidRequestError, match="record_failures") as raised:
        FailureRecords(None, None).use(given)  # type: ignore[arg-type]
    assert len(str(raised.value)) < 600
