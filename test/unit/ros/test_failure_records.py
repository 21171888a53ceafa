"""Records while the node shuts down."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="ROS is not installed")

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.ros.failure_records import FailureRecords, checked_folder


def test_a_request_that_ends_after_the_node_is_not_kept_and_breaks_nothing(tmp_path: Path) -> None:
    nothing: Any = None
    failed: Any = SimpleNamespace(success=np.array([False]))
    records = FailureRecords(nothing, nothing)
    records.use(str(tmp_path))
    records.close()
    records.note(nothing, failed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given", ["~nosuchuser/x", "x" * 5_000, "a\0b", "/dev/null", "/proc/self/maps"], ids=range(5)
)
def test_names_of_no_folder_are_refused_with_a_sentence(given: str) -> None:
    with pytest.raises(InvalidRequestError, match="record_failures") as caught:
        checked_folder(given)
    assert len(str(caught.value)) < 1_000
