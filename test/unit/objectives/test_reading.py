"""Objectives from YAML: every type of field, and hostile input."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kinopt_ros.array import Float64
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.registry import cost_names
from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.se3 import quaternion_to_matrix, rpy_to_matrix
from kinopt_ros.objectives import reading
from kinopt_ros.objectives.reading import LONGEST_TEXT, objective_from_data, objective_from_text
from kinopt_ros.robot.sources import load_robot

PANDA = load_robot("panda")

TEXT = """
- cost: link_pose
  link: panda_hand
  T_base_target: {xyz: [0.4, 0.1, 0.5], rpy: [3.0, 0, 0]}
  T_link_tool: {xyz: [0, 0, 0.1], quaternion: [0, 0, 1, 0]}
  weight: [1, 1, 1, 1, 1, 0]
  tolerance: [1.0e-3, 1e-2]
  points: [-1]
  label: reach
- {cost: rest, q: {panda_joint1: 0.5, panda_joint4: -1}, weight: 0.1}
- {cost: rest, q: [0, 0, 0, -1.5, 0, 1.5, 0, 0.02], joints: [panda_joint2, panda_joint3]}
- {cost: manipulability, link: panda_hand, part: rotation, tolerance: null}
- {cost: look_at, link: panda_hand, place: [1, 0, 0.5], axis: [0, 1, 0]}
- cost: reference
  q: [[0, 0, 0, -1.5, 0, 1.5, 0, 0.02], [0, 0, 0, -1.4, 0, 1.5, 0, 0.02]]
- {cost: relative_pose, link_a: panda_link3, link_b: panda_hand, T_a_b: {xyz: [0.1, 0, 0]}}
- {cost: position_limits, margin: 1}
"""


def test_every_type_of_field() -> None:
    costs: Any = objective_from_text(PANDA, TEXT).costs
    reach, rest, other, index, look, path, relative, limits = costs
    np.testing.assert_allclose(reach.T_base_target[:3, :3], rpy_to_matrix(np.array([3.0, 0.0, 0.0])))
    np.testing.assert_allclose(reach.T_base_target[:3, 3], [0.4, 0.1, 0.5])
    np.testing.assert_allclose(
        reach.T_link_tool[:3, :3], quaternion_to_matrix(np.array([0.0, 0.0, 0.0, 1.0]))
    )
    assert reach.weight.tolist() == [1.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    assert (reach.tolerance, reach.points, reach.title) == ((1e-3, 1e-2), (-1,), "reach")
    expected = PANDA.default_q.copy()
    expected[[PANDA.variable_index["panda_joint1"], PANDA.variable_index["panda_joint4"]]] = 0.5, -1.0
    np.testing.assert_array_equal(rest.q, expected)
    assert rest.weight == 0.1
    assert other.joints == ("panda_joint2", "panda_joint3")
    assert other.q[3] == -1.5
    assert (index.part, index.tolerance) == ("rotation", None)
    assert look.place == (1.0, 0.0, 0.5)
    assert path.q.shape == (2, 8)
    np.testing.assert_allclose(relative.T_a_b[:3, :3], np.eye(3))
    assert limits.margin == 1.0


def test_a_mapping_of_costs_is_a_list_of_them() -> None:
    assert len(objective_from_data(PANDA, {"costs": [{"cost": "rest"}]})) == 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Everything(Cost):
    """One field of every type."""

    name: ClassVar[str] = "everything"
    formula: ClassVar[str] = "r = 0"
    units: ClassVar[str] = "1"

    text: str | None = None
    number: int | None = None
    flag: bool = False
    pair: tuple[str, str] = ("a", "b")
    posture: Annotated[Float64, "nq"] | None = None
    T: Annotated[Float64, "4 4"] | None = None
    free: Any = None

    def residual(self, point: Any) -> Any:
        """Compute nothing."""
        return point.xp.zeros(1)


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    known = reading.cost_kind
    monkeypatch.setattr(
        reading, "cost_kind", lambda name: Everything if name == "everything" else known(name)
    )


@pytest.mark.usefixtures("everything")
def test_fields_of_users_costs() -> None:
    text = "[{cost: everything, text: a, number: 3, flag: true, pair: [x, y], free: [1, [2]], T: {xyz: [1, 2, 3]}}]"
    cost: Any = objective_from_text(PANDA, text).costs[0]
    assert (cost.text, cost.number, cost.flag, cost.pair) == ("a", 3, True, ("x", "y"))
    assert cost.free == (1, (2,))
    assert cost.T[0, 3] == 1.0


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "list of 1 to 64"),
        ("[]", "list of 1 to 64"),
        ("rest", "list of 1 to 64"),
        ("[rest]", "'cost: NAME'"),
        ("[{cost: 3}]", "'cost: NAME'"),
        ("[{cost: nose}]", "nose"),
        ("[{cost: rest, wieght: 1}]", "weight"),
        ("[{cost: rest, 3: 1}]", "3"),
        ("[{cost: rest, name: a}]", "name"),
        ("[{cost: link_pose, link: panda_hand}]", "needs the field 'T_base_target'"),
        ("[{cost: rest, weight: heavy}]", "weight is 'heavy'"),
        ("[{cost: rest, weight: {a: 1}}]", "weight is a mapping"),
        ("[{cost: rest, weight: .nan}]", "weight has nan"),
        ("[{cost: rest, weight: [[1], [2, 3]]}]", "weight"),
        ("[{cost: rest, joints: panda_joint1}]", "joints is 'panda_joint1'"),
        ("[{cost: rest, joints: [1]}]", "joints"),
        ("[{cost: rest, q: home}]", "a mapping of variables"),
        ("[{cost: rest, q: {nose: 1}}]", "nose"),
        ("[{cost: rest, q: {panda_joint1: high}}]", "panda_joint1"),
        ("[{cost: rest, q: {panda_joint1: .inf}}]", "q has inf"),
        ("[{cost: rest, q: [a]}]", "q is"),
        ("[{cost: look_at, link: panda_hand, place: 3}]", "place is 3"),
        ("[{cost: look_at, link: panda_hand, place: [1, 2]}]", "place"),
        ("[{cost: link_pose, link: panda_hand, T_base_target: 3}]", "a mapping of xyz"),
        ("[{cost: link_pose, link: panda_hand, T_base_target: {}}]", "xyz"),
        ("[{cost: link_pose, link: panda_hand, T_base_target: {x: 1}}]", "xyz"),
        ("[{cost: link_pose, link: panda_hand, T_base_target: {xyz: [1, 2]}}]", "T_base_target.xyz"),
        ("[{cost: link_pose, link: panda_hand, T_base_target: {xyz: [1, 2, a]}}]", "T_base_target.xyz"),
        ("[{cost: link_pose, link: panda_hand, T_base_target: {rpy: [1, 2, .nan]}}]", "T_base_target.rpy"),
        ("[{cost: link_pose, link: panda_hand, T_base_target: {quaternion: [0, 0, 0, 2]}}]", "of length 1"),
        (
            "[{cost: link_pose, link: panda_hand, T_base_target: {quaternion: [0, 0, 0, 1], rpy: [0, 0, 0]}}]",
            "xyz, and rpy or quaternion",
        ),
        ("[&a {cost: rest}, *a]", "aliases"),
        ("[{cost: rest, weight: !!python/object/apply:os.system [ls]}]", "no YAML"),
        ("{" * 5000, "no YAML"),
        ("[{cost: rest, weight: 1" + "0" * 5000 + "}]", ""),
        ("[{cost: everything, text: 3}]", "allowed is a text or nothing"),
        ("[{cost: everything, number: 0.5}]", "allowed is a whole number or nothing"),
        ("[{cost: everything, number: true}]", "number is True"),
        ("[{cost: everything, flag: 1}]", "allowed is true or false"),
        ("[{cost: everything, pair: [x]}]", "a list of 2: a text, a text"),
        ("a\0b", "no YAML"),
        ("x" * (LONGEST_TEXT + 1), "characters"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(KinoptError) as error:
        objective_from_text(PANDA, text).check(PANDA, 1)
    assert said in str(error.value)


@pytest.mark.parametrize("text", ["2026-01-01", "0x1F", "1_000", "!!set {a}", "!!binary aGk=", "~"])
def test_odd_values_of_yaml_are_refused_or_taken(text: str) -> None:
    for field in ("weight", "tolerance", "q", "joints", "points", "label"):
        try:
            objective_from_text(PANDA, f"[{{cost: rest, {field}: {text}}}]").check(PANDA, 3)
        except KinoptError:
            continue


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["panda_hand", "panda_joint1"])
)
keys = st.sampled_from(["xyz", "rpy", "quaternion", "panda_joint1", "cost"]) | st.text(max_size=3)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)
FIELDS = [
    "weight",
    "tolerance",
    "points",
    "label",
    "joints",
    "q",
    "link",
    "T_base_target",
    "T_a_b",
    "link_a",
    "link_b",
]
FIELDS += ["base_link", "T_link_tool", "frame", "place", "axis", "direction", "part", "margin", "scale", "x"]
costs = st.builds(
    lambda kind, rest: {"cost": kind, **rest},
    st.sampled_from([*cost_names(), "nose"]),
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=5),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(costs, max_size=3) | values)
def test_anything_is_read_or_refused(data: object) -> None:
    """And what is read comes back from YAML the same way."""
    try:
        objective_from_data(PANDA, data).check(PANDA, 5)
    except KinoptError:
        said = True
    else:
        said = False
    text = yaml.safe_dump(data, default_flow_style=True)
    try:
        objective_from_text(PANDA, text).check(PANDA, 5)
    except KinoptError:
        assert said
    else:
        assert not said


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="[]{}:,&*!-|>'\"\n ab0.\t#%@?", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(KinoptError):
        objective_from_text(PANDA, text)
