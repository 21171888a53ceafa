"""What costs refuse, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest
from support.cost_cases import ROBOTS, cost_cases, target

from kinopt_ros.array import Float64
from kinopt_ros.costs.alignment import Alignment
from kinopt_ros.costs.base import Cost, structure_of
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.reference import Reference
from kinopt_ros.costs.registry import UnknownCostError, cost_kind
from kinopt_ros.costs.relative_pose import RelativePose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.smoothness import Smoothness
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.errors import InvalidGoalError, InvalidRequestError, KinoptError
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot

HAND = "panda_hand"


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


BAD_FIELDS: list[tuple[type[Cost], dict[str, Any], str]] = [
    (Rest, {"weight": np.nan}, "weight has nan"),
    (Rest, {"weight": -1.0}, "weight is -1"),
    (Rest, {"weight": "heavy"}, "weight is 'heavy'"),
    (Rest, {"weight": None}, "weight is None"),
    (Rest, {"weight": True}, "weight is True"),
    (Rest, {"weight": ()}, "weight"),
    (Rest, {"weight": np.ones((2, 2))}, "weight"),
    (Rest, {"weight": (1.0, "a")}, "weight"),
    (Rest, {"weight": 10**400}, "weight"),
    (Rest, {"tolerance": -0.1}, "tolerance is -0.1"),
    (Rest, {"tolerance": np.nan}, "tolerance is nan"),
    (Rest, {"tolerance": "tight"}, "tolerance is 'tight'"),
    (Rest, {"tolerance": ()}, "tolerance"),
    (Rest, {"points": ()}, "points is empty"),
    (Rest, {"points": 3}, "points is 3"),
    (Rest, {"points": (0.5,)}, "points"),
    (Rest, {"points": (True,)}, "points"),
    (Rest, {"label": 7}, "label is 7"),
    (Rest, {"joints": "panda_joint1"}, "joints is 'panda_joint1'"),
    (Rest, {"joints": (1,)}, "joints"),
    (Rest, {"q": np.array(["a"])}, "q is"),
    (Rest, {"q": [[1.0, 2.0], [3.0]]}, "q is"),
    (Rest, {"q": [np.inf] * 8}, "q has inf"),
    (LinkPose, {"link": 3, "T_base_target": np.eye(4)}, "link is 3"),
    (LinkPose, {"link": HAND, "T_base_target": None}, "T_base_target is None"),
    (LookAt, {"link": HAND, "place": 3.0}, "place is 3.0"),
    (LookAt, {"link": HAND, "place": (1.0, 2.0)}, "place"),
    (LookAt, {"link": HAND, "place": (1.0, 2.0, np.nan)}, "place has nan"),
]


@pytest.mark.parametrize(
    ("kind", "values", "said"), BAD_FIELDS, ids=[f"{k.name} {v}"[:60] for k, v, _ in BAD_FIELDS]
)
def test_values_that_are_none(kind: type[Cost], values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequestError) as error:
        kind(**values)
    assert kind.name in str(error.value)
    assert said in str(error.value)


def far(T: np.ndarray, **entries: float) -> np.ndarray:
    T = T.copy()
    T[0, 0] += entries.get("bent", 0.0)
    T[3, 0] += entries.get("below", 0.0)
    return T


BAD_FOR_PANDA: list[tuple[Cost, str]] = [
    (LinkPose(link="nose", T_base_target=target()), "nose"),
    (LinkPose(link=HAND, T_base_target=target(), base_link="nose"), "nose"),
    (LinkPose(link=HAND, T_base_target=np.eye(3)), "(3, 3)"),
    (LinkPose(link=HAND, T_base_target=far(target(), bent=0.01)), "no pose"),
    (LinkPose(link=HAND, T_base_target=far(target(), below=0.01)), "no pose"),
    (LinkPose(link=HAND, T_base_target=np.diag([1.0, 1.0, -1.0, 1.0])), "no pose"),
    (LinkPose(link=HAND, T_base_target=target(), T_link_tool=2.0 * np.eye(4)), "T_link_tool"),
    (LinkPose(link=HAND, T_base_target=target(), frame="tool"), "frame is 'tool'"),
    (LinkPose(link=HAND, T_base_target=target(), weight=(1.0, 2.0)), "weight has 2"),
    (LinkPose(link=HAND, T_base_target=target(), tolerance=(1.0, 2.0, 3.0)), "tolerance has 3"),
    (RelativePose(link_a="nose", link_b=HAND, T_a_b=target()), "nose"),
    (RelativePose(link_a=HAND, link_b="panda_link3", T_a_b=np.zeros((4, 4))), "no pose"),
    (RelativePose(link_a=HAND, link_b="panda_link3", T_a_b=target(), weight=(1.0,) * 5), "weight has 5"),
    (Alignment(link="nose"), "nose"),
    (Alignment(link=HAND, axis=(0.0, 0.0, 0.0)), "axis"),
    (Alignment(link=HAND, direction=(0.0, 0.0, 0.0)), "direction"),
    (Alignment(link=HAND, weight=(1.0, 2.0)), "weight has 2"),
    (LookAt(link=HAND, place=(1.0, 2.0, 3.0), axis=(0.0, 0.0, 0.0)), "axis"),
    (LookAt(link=HAND, place=(1.0, 2.0, 3.0), weight=(1.0,) * 4), "weight has 4"),
    (Manipulability(link="nose"), "nose"),
    (Manipulability(link=HAND, part="all"), "part is 'all'"),
    (Manipulability(link=HAND, weight=(1.0,) * 8), "weight has 8"),
    (Manipulability(link=HAND, joints=("nose",)), "nose"),
    (Rest(q=np.zeros(3)), "(3,)"),
    (Rest(joints=("nose",)), "nose"),
    (Rest(joints=("panda_hand_joint",)), "panda_hand_joint"),
    (Rest(joints=("panda_joint1", "panda_joint2"), weight=(1.0, 2.0, 3.0)), "weight has 3"),
    (Rest(tolerance=(0.1, 0.2)), "tolerance has 2"),
    (Reference(q=np.zeros((5, 3))), "(5, 3)"),
    (Smoothness(weight=(1.0, 2.0)), "weight has 2"),
    (VelocityLimits(scale=0.0), "scale"),
    (VelocityLimits(weight=(1.0, 2.0)), "weight has 2"),
]


@pytest.mark.parametrize(("cost", "said"), BAD_FOR_PANDA, ids=[f"{c.name} {s}" for c, s in BAD_FOR_PANDA])
def test_check_refuses_by_name(panda: RobotModel, cost: Cost, said: str) -> None:
    with pytest.raises(KinoptError) as error:
        cost.replace(label="mine").check(panda)
    assert "'mine'" in str(error.value)
    assert said in str(error.value)


def test_check_says_what_kind_of_mistake_it_is(panda: RobotModel) -> None:
    with pytest.raises(InvalidGoalError):
        LinkPose(link=HAND, T_base_target=np.zeros((4, 4))).check(panda)


@pytest.mark.parametrize("name", ROBOTS)
def test_check_takes_every_case(name: str, robots: dict[str, RobotModel]) -> None:
    for cost in cost_cases(name, robots[name]).values():
        cost.check(robots[name])


def test_unknown_kinds_are_named() -> None:
    with pytest.raises(UnknownCostError, match=r"smothness.*smoothness"):
        cost_kind("smothness")


@dataclass(frozen=True, eq=False, kw_only=True)
class Mutable(Cost):
    """Has a field that can change."""

    name: ClassVar[str] = "mutable"
    formula: ClassVar[str] = "r = 0"
    units: ClassVar[str] = "1"
    what: Any = None

    def residual(self, point: Any) -> Annotated[Any, "1"]:
        """Compute nothing."""
        return point.xp.zeros(1)


def test_fields_that_can_change_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="can change"):
        structure_of(Mutable(what={"a": 1}))
    assert hash(structure_of(Mutable(what=("a", 1)))) == hash(structure_of(Mutable(what=("a", 1))))


def test_lists_and_whole_numbers_are_taken_as_declared() -> None:
    cost: Any = Rest(weight=[1, 2], tolerance=[1, 2], points=[0, -1], joints=["a"], q=[1, 2])
    assert cost.weight.tolist() == [1.0, 2.0]
    assert cost.tolerance == (1.0, 2.0)
    assert cost.points == (0, -1)
    assert cost.joints == ("a",)
    assert cost.q.dtype == np.float64
    given = np.ones(3)
    own: Float64 = Rest(weight=given).weight  # type: ignore[assignment]
    given[0] = 5.0
    assert own.tolist() == [1.0, 1.0, 1.0]
