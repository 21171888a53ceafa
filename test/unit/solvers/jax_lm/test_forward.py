"""Components say the same as the reference forward kinematics, and as central differences."""

from itertools import pairwise

import numpy as np
import pytest

from kinopt_ros.array import Float64
from kinopt_ros.conformance.robots import ROBOTS
from kinopt_ros.kinematics.forward import chain_pose
from kinopt_ros.kinematics.pose_errors import axis_errors
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.chain import KinematicChain, Motion, build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.solvers.jax_lm.chain import LaneChain, lane_chain
from kinopt_ros.solvers.jax_lm.shapes import RowShape

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.usefixtures("compiled_once")


def chains() -> dict[str, tuple[RobotModel, KinematicChain]]:
    """Every kind of motion, a chain that runs up and down, and one with a joint held in its middle."""
    found = {}
    for name, (build, _) in sorted(ROBOTS.items()):
        robot = build()
        chain = build_chain(robot, robot.root_link, robot.link_names[-1])
        if not (chain.motion == Motion.QUATERNION).any():
            found[name] = robot, chain
    panda = load_robot("panda")
    found["panda"] = panda, build_chain(panda, "panda_link0", "panda_hand")
    found["across"] = panda, build_chain(panda, "panda_leftfinger", "panda_link3")
    found["held"] = panda, build_chain(panda, "panda_link0", "panda_hand", {3: -1.234})
    return found


CHAINS = chains()


@pytest.fixture(params=sorted(CHAINS))
def packed(request: pytest.FixtureRequest) -> tuple[LaneChain, KinematicChain, Float64]:
    """A chain, packed and not, and configurations of its variables."""
    robot, chain = CHAINS[request.param]
    return lane_chain(robot, chain), chain, random_configurations(robot, 7, 3)[:, chain.variables]


def numbers_of(components) -> Float64:  # type: ignore[no-untyped-def]
    """Components without their form."""
    from kinopt_ros.differentiable.components import plain

    return np.array([plain(component) for component in components])


def lanes_of(q: Float64) -> tuple[object, ...]:
    return tuple(jax.numpy.asarray(column) for column in q.T)


def frame_of(T: Float64, lanes: int):  # type: ignore[no-untyped-def]
    from kinopt_ros.solvers.jax_lm.forward import Frame

    def vector(v: Float64) -> tuple[object, ...]:
        return tuple(jax.numpy.full(lanes, x) for x in v)

    return Frame(vector(T[:3, 3]), vector(T[:3, 0]), vector(T[:3, 1]), vector(T[:3, 2]))


def test_the_tip_is_where_the_reference_has_it(packed: tuple[LaneChain, KinematicChain, Float64]) -> None:
    from kinopt_ros.differentiable.components import plain
    from kinopt_ros.solvers.jax_lm.forward import forward

    lane, chain, q = packed
    with jax.enable_x64(True):
        start = frame_of(lane.T_base_first, len(q))
        tip, _ = forward(lane.shape, jax.numpy.asarray(lane.numbers), start, lanes_of(q))
        found = np.stack(
            [
                np.stack([np.broadcast_to(c, len(q)) for c in map(plain, v)], axis=-1)
                for v in (tip.x, tip.y, tip.z, tip.p)
            ],
            axis=-1,
        )
    expected = np.array([chain_pose(chain, row) for row in q])
    np.testing.assert_allclose(found, expected[:, :3], atol=1e-12)


def test_one_program_serves_what_differs_in_numbers_only() -> None:
    panda = load_robot("panda")
    shapes = {
        lane_chain(panda, build_chain(panda, "panda_link0", "panda_hand", {3: value})).shape
        for value in (-1.0, -1.1, 0.0)
    }
    assert len(shapes) == 1
    assert lane_chain(panda, build_chain(panda, "panda_link0", "panda_hand")).shape not in shapes


ROWS = {
    "pose": RowShape(),
    "position": RowShape(free_orientation=(True, True, True)),
    "free about z": RowShape(free_orientation=(False, False, True)),
    "twist about y": RowShape(free_orientation=(True, False, True)),
    "free along x": RowShape(free_position=(True, False, False)),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_errors_vanish_where_the_reference_says_so_and_grow_like_it(rows: RowShape) -> None:
    """First order: the errors of pose_errors are angles, these are 2 sin(angle / 2)."""
    from kinopt_ros.solvers.jax_lm.rows import ORIENTATION_WEIGHT, residual

    robot, chain = CHAINS["panda"]
    lane = lane_chain(robot, chain)
    q = random_configurations(robot, 5, 4)[:, chain.variables]
    near = q + 1e-4 * np.random.default_rng(0).standard_normal(q.shape)
    for row, moved in zip(q, near, strict=True):
        T, T_moved = chain_pose(chain, row), chain_pose(chain, moved)
        position, orientation = axis_errors(T, T_moved, rows.free_position, rows.free_orientation)
        with jax.enable_x64(True):
            start = frame_of(np.linalg.inv(T) @ lane.T_base_first, 1)
            at = residual(
                lane.shape, rows, jax.numpy.asarray(lane.numbers), start, np.zeros(6), lanes_of(moved[None])
            )
        weights = np.array([1.0] * 3 + [ORIENTATION_WEIGHT] * 3)
        expected = -(np.concatenate([position, orientation]) * weights)[list(rows.rows)]
        np.testing.assert_allclose(numbers_of(at.rows)[:, 0], expected, atol=1e-9)


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_jacobians_agree_with_differences_near_the_target(rows: RowShape) -> None:
    """The axes give the derivative of the motion, which is that of the errors where these are small; forward-mode
    differentiation gives the latter anywhere."""
    from kinopt_ros.differentiable.components import plain
    from kinopt_ros.solvers.jax_lm.rows import residual

    for name in ("panda", "with_mimic", "continuous_and_prismatic"):
        robot, chain = CHAINS[name]
        lane = lane_chain(robot, chain)
        row = random_configurations(robot, 1, 5)[0, chain.variables]
        n, h = len(row), 1e-6
        T = chain_pose(chain, row)
        shifts = np.concatenate([np.zeros((1, n)), h * np.eye(n), -h * np.eye(n)])
        with jax.enable_x64(True):
            start = frame_of(np.linalg.inv(T) @ lane.T_base_first, len(shifts))
            analytic, forward_mode = (
                residual(
                    lane.shape,
                    RowShape(rows.free_position, rows.free_orientation, autodiff=autodiff),
                    jax.numpy.asarray(lane.numbers),
                    start,
                    np.zeros(6),
                    lanes_of(row + shifts),
                )
                for autodiff in (False, True)
            )
        values = numbers_of(analytic.rows)
        differences = -(values[:, 1 : n + 1] - values[:, n + 1 :]) / (2.0 * h)
        for at in (analytic, forward_mode):
            jacobian = np.array(
                [[np.broadcast_to(c, len(shifts))[0] for c in map(plain, column)] for column in at.jacobian]
            ).T
            np.testing.assert_allclose(jacobian, differences, atol=2e-8)


def test_slack_takes_rows_out() -> None:
    from kinopt_ros.solvers.jax_lm.rows import residual, worst

    robot, chain = CHAINS["panda"]
    lane = lane_chain(robot, chain)
    row = random_configurations(robot, 1, 6)[0, chain.variables]
    T = chain_pose(chain, row)
    T[:3, 3] += T[:3, :3] @ np.array([0.02, 0.0, 0.001])
    slack, allowed = np.array([0.03, 0.03, 0.0, 0.0, 0.0, 0.0]), np.array([0.04, 0.04, 0.0005, 1.0, 1.0, 1.0])
    rows = RowShape(per_axis_position=True, slack=True)
    with jax.enable_x64(True):
        start = frame_of(np.linalg.inv(T) @ lane.T_base_first, 1)
        at = residual(lane.shape, rows, jax.numpy.asarray(lane.numbers), start, slack, lanes_of(row[None]))
        far = float(worst(rows, at, jax.numpy.asarray(allowed))[0])
    found = numbers_of(at.rows)[:, 0]
    assert found[0] == 0.0
    assert found[2] == pytest.approx(0.001)
    assert all(np.abs(numbers_of(column[:1])).max() == 0.0 for column in at.jacobian)
    assert any(np.abs(numbers_of(column[2:3])).max() > 0.01 for column in at.jacobian)
    assert far == pytest.approx(4.0)  # (0.001 / 0.0005)^2


def test_half_a_turn_is_no_success() -> None:
    """The antisymmetric part of a rotation vanishes at half a turn as it does at none."""
    from kinopt_ros.solvers.jax_lm.rows import residual, worst

    robot, chain = CHAINS["panda"]
    lane = lane_chain(robot, chain)
    row = random_configurations(robot, 1, 7)[0, chain.variables]
    T = chain_pose(chain, row) @ np.diag([1.0, -1.0, -1.0, 1.0])
    for rows in (RowShape(), RowShape(free_orientation=(False, False, True))):
        with jax.enable_x64(True):
            start = frame_of(np.linalg.inv(T) @ lane.T_base_first, 1)
            at = residual(
                lane.shape, rows, jax.numpy.asarray(lane.numbers), start, np.zeros(6), lanes_of(row[None])
            )
            assert float(worst(rows, at, jax.numpy.full(6, 1.9))[0]) > 1.0


def test_every_size_is_covered_by_portions() -> None:
    from kinopt_ros.solvers.jax_lm.shapes import BeamShape, Width

    width = Width(BeamShape(), (1, 16, 128))
    for count in range(1, 400):
        portions = list(width.portions(count))
        assert sum(portions) >= count
        assert sum(portions[:-1]) < count
        assert sum(portions) <= max(4 * count, count + 3)
    assert all(a >= b for a, b in pairwise(width.portions(399)))
