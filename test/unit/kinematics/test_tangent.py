"""Steps of configurations along the robot's directions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost_cases import every_joint

from kinopt_ros.errors import InvalidRequestError, UnknownJointError
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.tangent import (
    UnknownDirectionError,
    difference,
    directions,
    free_directions,
    moved,
)
from kinopt_ros.objectives.numpy_point import NumpyPath
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import installed_robots, load_robot

ROBOT = every_joint()
KNOWN = directions(ROBOT)
TURN = KNOWN.index("fly/rot_x")


def steps(largest: float) -> st.SearchStrategy[np.ndarray]:
    numbers = st.floats(-largest, largest, allow_nan=False, width=64)
    return st.lists(numbers, min_size=KNOWN.nv, max_size=KNOWN.nv).map(np.array)


def test_names_and_limits() -> None:
    assert KNOWN.nv == ROBOT.nq - 1
    assert KNOWN.names[3:6] == ("fly/rot_x", "fly/rot_y", "fly/rot_z")
    assert len(set(KNOWN.names)) == KNOWN.nv
    assert not set(KNOWN.names) & {"m"}  # driven
    a, variable = KNOWN.index("a"), ROBOT.joint("a").first_variable
    assert (KNOWN.lower[a], KNOWN.upper[a]) == (ROBOT.limits.lower[variable], ROBOT.limits.upper[variable])
    assert KNOWN.velocity[a] == 2.0
    assert np.isinf(KNOWN.lower[TURN : TURN + 3]).all()
    assert not KNOWN.lower.flags.writeable
    assert directions(ROBOT) is KNOWN
    with pytest.raises(UnknownDirectionError, match="fly/rot_x"):
        KNOWN.index("fly/rot_w")


@given(steps(1.5), st.integers(0, 50))
def test_a_step_there_is_the_step_back(step: np.ndarray, seed: int) -> None:
    """Turns of up to 1.5 sqrt(3) rad are below half a turn."""
    q = random_configurations(ROBOT, 1, seed)[0]
    after = moved(KNOWN, q, step)
    assert np.linalg.norm(after[3:7]) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(difference(KNOWN, q, after), step, atol=1e-9)
    back = moved(KNOWN, after, -step)
    np.testing.assert_allclose(difference(KNOWN, q, back), 0.0, atol=1e-9)


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_the_difference_leads_there(first: int, second: int) -> None:
    a, b = random_configurations(ROBOT, 1, first)[0], random_configurations(ROBOT, 1, second)[0]
    step = difference(KNOWN, a, b)
    assert np.linalg.norm(step[TURN : TURN + 3]) <= np.pi + 1e-9
    there = moved(KNOWN, a, step)
    sign = np.sign(there[3:7] @ b[3:7])
    there[3:7] *= sign
    np.testing.assert_allclose(there, b, atol=1e-8)
    other = b.copy()
    other[3:7] *= -1.0  # the same rotation
    np.testing.assert_allclose(difference(KNOWN, b, other), 0.0, atol=1e-9)


def test_shapes_broadcast_and_nothing_is_changed_in_place() -> None:
    q = random_configurations(ROBOT, 6, 0)
    before = q.copy()
    many = moved(KNOWN, q.reshape(2, 3, -1), np.full(KNOWN.nv, 0.1))
    np.testing.assert_array_equal(q, before)
    for k in range(6):
        one = moved(KNOWN, q[k], np.full(KNOWN.nv, 0.1))
        np.testing.assert_allclose(many.reshape(6, -1)[k], one, atol=1e-15)
    step = difference(KNOWN, q[0], q)
    assert step.shape == (6, KNOWN.nv)
    np.testing.assert_allclose(step[3], difference(KNOWN, q[0], q[3]), atol=1e-15)


@pytest.mark.parametrize("link", ["tip", "hand", "l1", "l3"])
def test_columns_of_jacobians_are_directions(link: str) -> None:
    """By central differences of poses."""
    q = random_configurations(ROBOT, 1, 4)[0]
    J = NumpyPath(ROBOT, q[None], 1.0)[0].jacobian(link)
    R = NumpyPath(ROBOT, q[None], 1.0)[0].pose(link)[:3, :3]
    for v, unit in enumerate(np.eye(KNOWN.nv)):
        ends = [NumpyPath(ROBOT, moved(KNOWN, q, h * unit)[None], 1.0)[0].pose(link) for h in (1e-6, -1e-6)]
        linear = (ends[0] - ends[1])[:3, 3] / 2e-6
        W = (ends[0] - ends[1])[:3, :3] / 2e-6 @ R.T
        np.testing.assert_allclose(J[:, v], [*linear, W[2, 1], W[0, 2], W[1, 0]], atol=1e-7)


@pytest.mark.peers
def test_pinocchio_integrates_a_free_flyer_the_same_way() -> None:
    """Its quaternions are (x, y, z, w), and its linear velocities those of the body: ours are the root's."""
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "fly")
    rng = np.random.default_rng(0)

    def theirs(q: np.ndarray) -> np.ndarray:
        return np.array([*q[:3], *q[4:7], q[3]])

    for a, b in random_configurations(ROBOT, 40, 1).reshape(20, 2, -1):
        turn = rng.uniform(-1.5, 1.5, 3)
        step = np.zeros(KNOWN.nv)
        step[TURN : TURN + 3] = turn
        after = pin.integrate(model, theirs(a), np.array([0.0, 0.0, 0.0, *turn]))
        own = theirs(moved(KNOWN, a, step))
        own[3:] *= np.sign(own[3:] @ after[3:])
        np.testing.assert_allclose(own[:7], after, atol=1e-9)
        there = pin.difference(model, theirs(a), theirs(b))
        np.testing.assert_allclose(difference(KNOWN, a, b)[TURN : TURN + 3], there[3:], atol=1e-7)


@pytest.mark.peers
def test_pinocchio_integrates_an_arm_the_same_way() -> None:
    pin = pytest.importorskip("pinocchio")
    panda = load_robot("panda")
    known = directions(panda)
    path = next(path for path in installed_robots().values() if "panda" in str(path))
    model = pin.buildModelFromUrdf(str(path), mimic=True)
    for a, b in random_configurations(panda, 20, 0).reshape(10, 2, -1):
        q, there = (pin.neutral(model), pin.neutral(model))
        for name, own_a, own_b in zip(panda.variable_names, a, b, strict=True):
            at = model.joints[model.getJointId(name)].idx_q
            q[at], there[at] = own_a, own_b
        step = pin.difference(model, q, there)
        places = [model.joints[model.getJointId(name)].idx_v for name in panda.variable_names]
        np.testing.assert_allclose(difference(known, a, b), step[places], atol=1e-12)
        after = pin.integrate(model, q, 0.3 * step)
        values = [after[model.joints[model.getJointId(name)].idx_q] for name in panda.variable_names]
        np.testing.assert_allclose(moved(known, a, 0.3 * (b - a)), values, atol=1e-12)


def test_free_directions() -> None:
    free = free_directions(ROBOT, ("fly", "a"))
    assert [name for name, moves in zip(KNOWN.names, free, strict=True) if moves] == [*KNOWN.names[:6], "a"]
    drive = [name for name in KNOWN.names if name.startswith("drive")]
    free = free_directions(ROBOT, ("drive", "c"), (drive[2],))
    assert [name for name, moves in zip(KNOWN.names, free, strict=True) if moves] == [*drive[:2], "c"]
    free = free_directions(ROBOT, ("fly", "c"), ("fly",))
    assert [name for name, moves in zip(KNOWN.names, free, strict=True) if moves] == ["c"]
    upright = free_directions(ROBOT, ("fly",), ("fly/rot_x", "fly/rot_y"))
    assert upright[TURN : TURN + 3].tolist() == [False, False, True]


def refused(robot: RobotModel, joints: tuple[str, ...], locked: tuple[str, ...] = ()) -> str:
    with pytest.raises((InvalidRequestError, UnknownJointError, UnknownDirectionError)) as error:
        free_directions(robot, joints, locked)
    return str(error.value)


def test_free_directions_refuse() -> None:
    assert "'nose'" in refused(ROBOT, ("nose",))
    assert "'nose'" in refused(ROBOT, ("a",), ("nose",))
    assert "'m'" in refused(ROBOT, ("m",))
    assert "'f'" in refused(ROBOT, ("f",))
    assert "nothing is left" in refused(ROBOT, ())
    assert "nothing is left" in refused(ROBOT, ("a",), ("a",))
    assert "none, two or all" in refused(ROBOT, ("fly",), ("fly/rot_z",))
