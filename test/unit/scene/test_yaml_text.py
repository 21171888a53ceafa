"""YAML of strangers: what it says, or a sentence."""

import math
from typing import Any

import pytest
import yaml

from kinopt_ros.errors import InvalidRequestError, InvalidShapeError
from kinopt_ros.scene.tool_frames import tool_frames
from kinopt_ros.scene.yaml_text import parsed


@pytest.mark.parametrize(
    "value",
    [
        None, 5, -3.5, "a", "5", "true", True, [], {}, {"a": [1, {"b": None}], "c": "x\ny"}, [[1.0, 2], ["é"]], 10**30,
        math.inf, {"a b": {"c": [True, "no", "null", "1e-3"]}},
    ],
)  # fmt: skip
def test_what_is_written_is_read(value: Any) -> None:
    for flow in (True, False, None):
        assert parsed(yaml.safe_dump(value, default_flow_style=flow)) == value


@pytest.mark.parametrize(
    "text", ["a: 0x1F", "a: 1_000", "a: 0b11", "a: 017", "a: ~", "a: .inf", "a: 2001-12-14", "1: 2", ""]
)
def test_scalars_are_those_of_pyyaml(text: str) -> None:
    assert parsed(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: &x [1]\nb: *x", r"aliases \(\*name\) are not allowed"),
        ("a: !!python/object:os.system x", "tags .* are not allowed"),
        ("a: ! x", "tags"),
        ("{1: a, 0x1: b}", "'0x1' is given twice"),
        ("{yes: a, true: b}", "'true' is given twice"),
        ("a: 1\na: 2", "'a' is given twice"),
        ("<<: {a: 1}", "merging"),
        ("? [a]\n: b", "as a name is not allowed"),
        ("a: 2001-99-99", "is not usable"),
        ("a\n---\nb", "a second document"),
        ("[" * 100_000, "nested too deeply|YAML"),
        ("a: 0x" + "f" * 10_000, "a number of 10002 characters"),
        ("a: " + "1" * 10_000, "a number of 10000 characters"),
        ("a: " + "1:" * 100_000 + "1", "a number of"),
        ("x" * 2**20 + ": 1\n" + "x" * 2**20 + ": 1", "given twice|YAML"),
        ("#" * (4 * 2**20 + 1), "4194305 characters; at most 4194304"),
        ("a: \ud800", "YAML"),
        ("a: \0", "YAML"),
        (b"a", "allowed is text"),
    ],
    ids=range(19),
)
def test_refusals(text: Any, why: str) -> None:
    with pytest.raises(InvalidShapeError, match=why) as caught:
        parsed(text)
    assert len(str(caught.value)) < 1_000
    with pytest.raises(InvalidRequestError):
        tool_frames(text)


def test_tool_frames_are_bounded() -> None:
    frame = "{link: a, pose: {xyz: [0, 0, 0]}}"
    with pytest.raises(InvalidRequestError, match="1001 of them; allowed are 1000"):
        tool_frames("\n".join(f"f{i}: {frame}" for i in range(1001)))
    with pytest.raises(InvalidRequestError, match=r"\(201 characters\) is not usable"):
        tool_frames(f"{'x' * 201}: {frame}")
