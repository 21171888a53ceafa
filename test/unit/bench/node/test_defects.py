"""What a node has told of its defects is kept, or nobody can look into them after a soak."""

import pytest

pytest.importorskip("rclpy")

from kinopt_ros.bench.node.defects import defects_in


def test_a_node_without_any_has_none() -> None:
    assert defects_in("[INFO] ready\n[WARN] no error\n") == {"internal_errors": 0, "defects": []}


def test_the_first_ones_are_kept_with_their_tracebacks() -> None:
    one = ["[ERROR] internal error in compute_ik", "Traceback (most recent call last):", *map(str, range(60))]
    found = defects_in("\n".join(["before", *(7 * one)]))
    assert found["internal_errors"] == 14
    assert len(found["defects"]) == 5
    for defect in found["defects"]:
        lines = defect.splitlines()
        assert lines[:3] == [*one[:3]]
        assert len(lines) == 40
