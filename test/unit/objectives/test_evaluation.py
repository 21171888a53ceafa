"""Evaluation in float64: what costs do wrong is said with their names and files."""

from __future__ import annotations

import numpy as np
import pytest
from support.cost_cases import target
from support.odd_costs import Height, Odd

from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.smoothness import Smoothness
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.objectives.cost_error import CostError
from kinopt_ros.objectives.evaluation import Term, evaluate
from kinopt_ros.objectives.numpy_point import NumpyPath
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


def term_of(robot: RobotModel, cost: Cost, q: np.ndarray, dt: float = 0.1) -> Term:
    return evaluate(robot, Objective([cost]), q, dt)[0]


def test_values_by_hand(panda: RobotModel) -> None:
    q = np.tile(panda.default_q, (3, 1))
    q[1, 0] += 0.5
    term = term_of(panda, Rest(weight=2.0, tolerance=0.4), q)
    assert term.value == pytest.approx(4.0 * 0.25)
    assert term.residual.shape == (3, panda.nq)
    np.testing.assert_allclose(term.magnitude, [0.5, *[0.0] * (panda.nq - 1)])
    assert not term.met
    assert term.ratio == pytest.approx(1.25)
    assert term_of(panda, Rest(tolerance=0.5 + 1e-12), q).met
    assert term_of(panda, Rest(), q).met
    assert term_of(panda, Rest(), q).ratio == 0.0
    assert term_of(panda, Rest(points=(0, 2)), q).value == 0.0
    assert term_of(panda, Smoothness(), q).value == pytest.approx(2 * 0.25)
    weights = (0.0, *[1.0] * (panda.nq - 1))
    assert term_of(panda, Rest(weight=weights, tolerance=0.0), q).met


def test_one_sided_costs_are_content_below_0(panda: RobotModel) -> None:
    q = np.tile(panda.default_q, (6, 1))
    q[:, 0] += 0.1 * np.arange(6)
    calm = term_of(panda, VelocityLimits(tolerance=0.0), q, dt=1.0)
    assert (calm.residual < 0.0).all()
    assert calm.value == 0.0
    assert calm.met
    hasty = term_of(panda, VelocityLimits(tolerance=0.0), q, dt=1e-3)
    assert hasty.magnitude[0] == pytest.approx(100.0 - panda.limits.velocity[0], rel=1e-6)
    assert hasty.ratio > 1e9


def test_link_poses_have_two_magnitudes(panda: RobotModel) -> None:
    cost = LinkPose(link="panda_hand", T_base_target=target(), tolerance=(10.0, 0.0))
    term = term_of(panda, cost, panda.default_q[None])
    r = term.residual[0]
    np.testing.assert_allclose(term.magnitude, [np.linalg.norm(r[:3]), np.linalg.norm(r[3:])])
    assert not term.met
    free = cost.replace(weight=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    assert term_of(panda, free, panda.default_q[None]).met


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("raises", "RuntimeError: no such thing"),
        ("exits", "SystemExit"),
        ("matrix", "shape (2, 2)"),
        ("number", "shape ()"),
        ("text", "allowed is a vector of numbers"),
        ("nan", "nan, which is not finite"),
        ("longer", "2 numbers at one point and 4 at another"),
        ("magnitudes raise", "no magnitude"),
        ("magnitudes nan", "magnitudes"),
        ("magnitudes short", "magnitudes of shape (3,)"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_wrong_is_said_with_name_and_file(panda: RobotModel, what: str, said: str) -> None:
    q = np.tile(panda.default_q, (3, 1))
    with pytest.raises(CostError) as error:
        term_of(panda, Odd(what=what, label="mine"), q)
    assert "'mine'" in str(error.value)
    assert "odd_costs.py" in str(error.value)
    assert said in str(error.value)


def test_wrong_numbers_of_weights_and_tolerances(panda: RobotModel) -> None:
    for cost, said in (
        (Height(link="panda_hand", weight=(1.0, 2.0)), "2 weights for a residual of 1"),
        (Height(link="panda_hand", tolerance=(1.0, 2.0)), "2 tolerances for 1 magnitudes"),
    ):
        with pytest.raises(CostError) as error:
            term_of(panda, cost, panda.default_q[None])
        assert said in str(error.value)


def test_ctrl_c_is_no_mistake_of_a_cost(panda: RobotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Odd, point: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Odd, "residual", interrupted)
    with pytest.raises(KeyboardInterrupt):
        term_of(panda, Odd(what=""), panda.default_q[None])


def test_points_refuse_neighbours_that_do_not_exist(panda: RobotModel) -> None:
    path = NumpyPath(panda, np.tile(panda.default_q, (3, 1)), 0.1)
    from kinopt_ros.errors import InvalidRequestError

    with pytest.raises(InvalidRequestError, match="point 3 does not exist"):
        path[2].next()
    with pytest.raises(InvalidRequestError, match="derivative"):
        path[0].derivative(3)
    assert path[0].next().index == 1
    assert path[0] is path[0]
