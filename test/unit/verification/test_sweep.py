"""The check of whole motions: nothing is passed through, and what is free is found to be."""

from collections.abc import Callable

import numpy as np
import pytest
from support.shape_cases import bracket

from kinopt_ros.array import Float64
from kinopt_ros.collision.contacts import Placement
from kinopt_ros.collision.motions import Motions
from kinopt_ros.collision.packed_bodies import packed_bodies_of
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.geometry.shapes import Box, Cylinder, PlacedShape, Plane, Shape, Sphere
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.trajectory.interpolation import control_points, evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification import sweep
from kinopt_ros.verification.collision import check_collisions, clearance_of
from kinopt_ros.verification.sweep import first_contact, free_segment, least_clearance
from kinopt_ros.verification.verify import ON_THE_WAY

# A rail, an arm that turns on it, a forearm that follows the arm by half, and a drawer in it.
URDF = """<robot name="rail">
  <link name="base"/>
  <link name="cart"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
  <link name="arm"><collision><origin xyz="0.3 0 0"/><geometry><box size="0.6 0.04 0.04"/></geometry></collision></link>
  <link name="fore"><collision><origin xyz="0.2 0 0"/><geometry><box size="0.4 0.03 0.03"/></geometry></collision>
  </link>
  <link name="tip"><collision><geometry><sphere radius="0.03"/></geometry></collision></link>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="2"/></joint>
  <joint name="turn" type="revolute"><parent link="cart"/><child link="arm"/><axis xyz="0 0 1"/>
    <origin xyz="0 0 0.2"/><limit lower="-3" upper="3" effort="1" velocity="2"/></joint>
  <joint name="elbow" type="revolute"><parent link="arm"/><child link="fore"/><axis xyz="0 0 1"/>
    <origin xyz="0.65 0 0"/><limit lower="-3" upper="3" effort="1" velocity="2"/>
    <mimic joint="turn" multiplier="-0.5" offset="0.1"/></joint>
  <joint name="drawer" type="prismatic"><parent link="fore"/><child link="tip"/><axis xyz="1 0 0"/>
    <origin xyz="0.45 0 0"/><limit lower="0" upper="0.3" effort="1" velocity="2"/></joint>
</robot>"""
JOINTS = ("slide", "turn", "drawer")


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return robot_from_urdf(URDF)


def with_things(*things: tuple[Shape, tuple[float, float, float]]) -> Scene:
    objects = {}
    for k, (shape, position) in enumerate(things):
        T = np.eye(4)
        T[:3, 3] = position
        objects[f"thing{k}"] = SceneObject(f"thing{k}", (PlacedShape(shape, np.eye(4)),), T)
    return Scene(objects=objects)


def straight(start: Float64, goal: Float64, duration: float = 2.0) -> JointTrajectory:
    """One segment, at rest at both ends."""
    still = np.zeros((2, len(start)))
    return JointTrajectory(JOINTS, np.array([0.0, duration]), np.stack([start, goal]), still, still.copy())


def test_a_sheet_of_paper_is_not_passed_through(robot: RobotModel) -> None:
    paper = with_things((Box(1e-4, 0.2, 0.5), (0.0, 1.2, 0.2)))
    way = straight(np.array([0.0, 0.5, 0.1]), np.array([0.0, 2.6, 0.1]))
    state = np.zeros(robot.nq)
    contact = first_contact(robot, paper, state, np.arange(3), way)
    assert contact is not None
    assert "thing0" in (contact.a, contact.b)
    # Samples miss it.
    times = np.linspace(0.0, 2.0, 12)
    q = np.repeat(state[None], len(times), axis=0)
    q[:, :3] = evaluate(way, times)[0]
    assert check_collisions(robot, paper, q, contacts=False).free.all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("brackets", [False, True])
def test_it_finds_what_dense_samples_find_and_when(robot: RobotModel, seed: int, brackets: bool) -> None:
    robot = with_brackets() if brackets else robot
    rng = np.random.default_rng(seed)
    lower, upper = robot.limits.lower, robot.limits.upper
    scene = with_things(
        *(
            (shape, (rng.uniform(-1.2, 1.2), rng.uniform(-1.2, 1.2), 0.2))
            for shape in (Box(0.2, 0.1, 0.3), Sphere(0.1), Box(0.02, 0.3, 0.3))
        ),
        (Plane(), (0.0, 0.0, -0.3)),
    )
    free = hit = 0
    while free + hit < 12:
        ends = rng.uniform(lower, upper, (2, 3))
        if not check_collisions(robot, scene, ends, contacts=False).free.all():
            continue
        way = straight(ends[0], ends[1])
        contact = first_contact(robot, scene, np.zeros(3), np.arange(3), way)
        if contact is not None:  # who has no patience may find more, never less
            assert first_contact(robot, scene, np.zeros(3), np.arange(3), way, patience=3) is not None
        times = np.arange(0.0, 2.0, 0.002)
        touching = ~check_collisions(robot, scene, evaluate(way, times)[0], contacts=False).free
        if touching.any():
            assert contact is not None
            assert contact.time <= times[touching][0] + 0.003
            assert contact.distance <= 1e-4
            hit += 1
        elif contact is None:
            free += 1
        else:  # between two samples, or a near miss
            assert contact.distance < 2e-3
    assert free > 1
    assert hit > 1


def test_clearance_counts_on_the_way(robot: RobotModel) -> None:
    scene = with_things((Box(0.1, 0.1, 0.3), (1.0, 0.0, 0.6)))
    way = straight(np.array([-0.9, -0.2, 0.0]), np.array([0.9, -0.2, 0.0]))
    assert first_contact(robot, scene, np.zeros(3), np.arange(3), way) is None
    contact = first_contact(robot, scene, np.zeros(3), np.arange(3), way, clearance=0.3)
    assert contact is not None
    assert 0.0 < contact.distance <= 0.3


def test_a_start_in_contact_is_found_at_once(robot: RobotModel) -> None:
    scene = with_things((Sphere(0.2), (0.3, 0.0, 0.2)))
    way = straight(np.zeros(3), np.array([0.0, 1.5, 0.0]))
    contact = first_contact(robot, scene, np.zeros(3), np.arange(3), way)
    assert contact is not None
    assert contact.time == 0.0
    assert contact.distance < 0.0


def test_one_point_is_a_motion_too(robot: RobotModel) -> None:
    still = np.zeros((1, 3))
    rest = JointTrajectory(JOINTS, np.zeros(1), still, still, still)
    assert first_contact(robot, Scene(), np.zeros(3), np.arange(3), rest) is None
    scene = with_things((Sphere(0.2), (0.3, 0.0, 0.2)))
    assert first_contact(robot, scene, np.zeros(3), np.arange(3), rest) is not None


@pytest.mark.parametrize("name", ["rail", "panda"])
def test_distances_change_by_no_more_than_the_bound(name: str, robot: RobotModel) -> None:
    if name == "panda":
        robot = load_robot("panda")
    packed = packed_bodies_of(robot, with_things((Sphere(0.1), (0.5, 0.0, 0.3))))
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(60):
        q = rng.uniform(robot.limits.lower, robot.limits.upper, (2, robot.nq))
        q[1] = q[0] + rng.uniform(0.0, 0.5) * (q[1] - q[0])
        motions = Motions(packed, q[0], np.arange(robot.nq))
        for pair in rng.choice(len(packed.every_pair), 8):
            # So much is wanted that no bound reaches it: the whole motion comes back.
            (part,), _ = motions.in_doubt(q[None], np.array([0.0, 1.0]), 1e3, np.array([pair]))
            assert (part.pair, part.begin, part.end) == (pair, 0.0, 1.0)
            middle = Placement(packed, motions.middle(part)).distance_of(pair)
            found = [Placement(packed, row).distance_of(pair) for row in np.linspace(q[0], q[1], 9)]
            # Depths are not distances.
            nearer = middle - max(min(found), 0.0)
            assert nearer <= part.nearer + 1e-6
            assert middle < 0.0 or max(found) - middle <= part.nearer + 1e-6
            ratios.append(nearer / max(part.nearer, 1e-9))
    assert max(ratios) > 0.5  # and is no excuse


def test_what_is_known_from_one_part_to_the_next_clears_no_contact() -> None:
    """So much is wanted that no bound reaches it: all parts of a motion come back, and what is known of one carries the
    next. The same contacts must be found as by each part alone."""
    robot = load_robot("panda")
    rng = np.random.default_rng(5)
    contacts = 0
    for trial in range(50):
        way = random_motion(robot, rng, rng.choice([0.05, 0.3]))
        times = np.linspace(0.0, 6.0, 49)
        q = evaluate(way, times)[0]
        # Beside the forearm or the hand somewhere on the way.
        link = ("panda_link5", "panda_hand")[trial % 2]
        x, y, z = (
            forward_kinematics(robot, q[trial % 40 + 4 : trial % 40 + 5], (link,))[0, 0, :3, 3]
            + rng.normal(size=3) * 0.1
        )
        packed = packed_bodies_of(robot, with_things((Box(0.01, 0.02, 0.01), (x, y, z))))
        motions = Motions(packed, q[0], np.arange(robot.nq))
        control = np.stack([q[:-1], q[1:]], axis=1)
        near = [p for p in packed.every_pair.tolist() if {link, "thing0"} == set(packed.names(p))]
        pairs = np.unique([*near, *rng.permutation(packed.every_pair)[:1]])
        parts = []
        for k in range(len(control)):
            parts += motions.in_doubt(control[k : k + 1], times[k : k + 2], 10.0, pairs)[0]
        assert len(parts) == len(pairs) * len(control)
        found = sweep.first_of(motions, parts, 0.0)
        alone = [contact for part in parts if (contact := sweep.first_of(motions, [part], 0.0)) is not None]
        assert (found is None) == (not alone), trial
        if found is not None:
            contacts += 1
            assert found.time == pytest.approx(min(contact.time for contact in alone), abs=2.0 * sweep.FIRST)
    assert 5 <= contacts <= 45


def random_motion(robot: RobotModel, rng: np.random.Generator, reach: float) -> JointTrajectory:
    """Through random points with random velocities, several segments."""
    points = rng.uniform(0.6 * robot.limits.lower, 0.6 * robot.limits.upper)
    points = points + np.cumsum(rng.uniform(-reach, reach, (7, robot.nq)), axis=0)
    velocity = rng.uniform(-reach, reach, points.shape)
    names = tuple(robot.variable_names)
    return JointTrajectory(names, np.arange(7.0), points, velocity, np.zeros_like(points))


def with_brackets() -> RobotModel:
    """The rail's robot, whose arm and cart are meshes that are not convex."""
    robot = robot_from_urdf(URDF)
    T = np.eye(4)
    T[0, 3] = 0.3
    robot.collision_shapes["arm"] = (PlacedShape(bracket(), T),)  # type: ignore[index]
    robot.collision_shapes["cart"] = (PlacedShape(bracket(), np.eye(4)),)  # type: ignore[index]
    return robot


@pytest.mark.parametrize("name", ["rail", "panda", "brackets"])
def test_what_bounds_clear_is_clear(name: str, robot: RobotModel) -> None:
    if name != "rail":
        robot = load_robot("panda") if name == "panda" else with_brackets()
    scene = with_things(
        (Box(0.3, 0.2, 0.4), (0.5, 0.3, 0.4)), (Sphere(0.15), (-0.4, 0.4, 0.6)), (Plane(), (0.0, 0.0, -0.2))
    )
    packed = packed_bodies_of(robot, scene)
    rng = np.random.default_rng(3)
    near = 0
    for reach in (0.02, 0.1, 0.4):
        way = random_motion(robot, rng, reach)
        motions = Motions(packed, np.zeros(robot.nq), np.arange(robot.nq))
        control = np.array(control_points(way).position.swapaxes(0, 1), order="C")
        times, enough = np.array(way.time), 0.03
        parts, done = motions.in_doubt(control, times, enough)
        for time in np.linspace(0.0, times[done], 150):
            placement = Placement(packed, evaluate(way, np.array([time]))[0][0])
            for pair in placement.near(enough)[0].tolist():
                near += 1
                if not any(part.pair == pair and part.begin <= time <= part.end for part in parts):
                    assert placement.distance_of(pair) >= enough - 1e-6
    assert near > 10


@pytest.mark.parametrize(
    ("name", "motions", "most", "off"), [("panda", 12, 0.05, 0.01), ("brackets", 60, 0.2, 0.04)]
)
def test_least_clearance_is_below_that_of_dense_samples_and_near_to_it(
    name: str, motions: int, most: float, off: float
) -> None:
    """It need not be known better than to 5 mm, or a fifth of it: 0.04 m of 0.2."""
    robot = load_robot("panda") if name == "panda" else with_brackets()
    scene = with_things((Box(0.3, 0.2, 0.4), (0.6, 0.5, 0.4)), (Sphere(0.15), (-0.4, 0.4, 0.6)))
    rng = np.random.default_rng(4)
    tight = []
    for _ in range(motions):
        way = random_motion(robot, rng, 0.1)
        variables = np.arange(robot.nq)
        if first_contact(robot, scene, np.zeros(robot.nq), variables, way) is not None:
            continue
        found = least_clearance(robot, scene, np.zeros(robot.nq), variables, way, most=most)
        sampled = min(
            clearance_of(robot, scene, q).distance for q in evaluate(way, np.linspace(0.0, 6.0, 200))[0]
        )
        assert 0.0 <= found <= min(sampled, most) + 1e-6
        if sampled < most:
            tight.append(sampled - found)
    assert len(tight) > 2
    assert np.median(tight) < off


@pytest.mark.parametrize("seed", range(3))
def test_segments_are_free_as_dense_samples_say(robot: RobotModel, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = with_things(
        (Box(0.2, 0.1, 0.3), (0.5, 0.6, 0.2)),
        (Sphere(0.1), (-0.6, 0.7, 0.2)),
        (Box(1e-4, 0.3, 0.3), (0.3, -0.8, 0.2)),
    )
    free = []
    for _ in range(40):
        q0, q1 = rng.uniform(robot.limits.lower, robot.limits.upper, (2, 3))
        samples = check_collisions(robot, scene, np.linspace(q0, q1, 300), contacts=False).free.all()
        found = free_segment(robot, scene, q0, q1)
        assert samples or not found
        assert found or not free_segment(robot, scene, q0, q1, exact=False)
        assert found or not free_segment(robot, scene, q1, q0)
        assert not free_segment(robot, scene, q0, q1, clearance=5.0)
        free.append((found, samples))
    both = np.array(free)
    assert 3 < both[:, 0].sum() < 37
    # Only what is between two samples makes a difference: the thin sheet.
    assert (both[:, 0] != both[:, 1]).sum() <= 4
    q = rng.uniform(robot.limits.lower, robot.limits.upper)
    assert free_segment(robot, scene, q, q) == check_collisions(robot, scene, q[None], contacts=False).free[0]


def test_numbers_that_are_too_large_for_small_distances_end_no_process() -> None:
    """A continuous joint a few radians beside 1e14: neighbouring numbers are 0.016 apart, so halves never get
    shorter; the compiled list of what waits was written beyond its end."""
    robot = robot_from_urdf(
        """
        <robot name="r"><link name="a"/><link name="b"><collision><origin xyz="0.5 0 0.1"/><geometry>
        <box size="1 0.1 0.1"/></geometry></collision></link>
        <joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
        <limit effort="1" velocity="1"/></joint></robot>
        """
    )
    ground = with_things((Plane(), (0.0, 0.0, 0.0)))
    for start in (1e14, np.nextafter(1e14, np.inf)):
        motion = JointTrajectory(
            ("j",),
            np.array([0.0, 9.0]),
            np.array([[start], [start + 2.0]]),
            np.zeros((2, 1)),
            np.zeros((2, 1)),
        )
        least = least_clearance(robot, ground, np.array([start]), np.array([0]), motion, pause=soon_over())
        assert 0.0 <= least <= 0.05


def soon_over() -> Callable[[], None]:
    """Some pauses: what goes on for ever fails."""
    left = iter(range(1000))

    def pause() -> None:
        assert next(left, None) is not None

    return pause


def test_lines_between_different_quaternions_are_refused() -> None:
    flying = robot_from_urdf(
        """<robot name="flying"><link name="world"/><link name="body"/>
        <joint name="free" type="floating"><parent link="world"/><child link="body"/></joint></robot>"""
    )
    here = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    assert free_segment(flying, Scene(), here, here + np.eye(7)[0])
    with pytest.raises(InvalidRequestError, match="quaternion"):
        free_segment(flying, Scene(), here, np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]))


def test_planned_motions_say_what_is_in_their_way() -> None:
    panda = load_robot("panda")
    joints = [f"panda_joint{k}" for k in range(1, 8)]
    goal = panda.default_q.copy()
    goal[0] += 1.5
    still = np.zeros(panda.nq)
    free = plan_joint_motion(panda, joints, panda.default_q, still, goal, 0.5, 0.5, scene=Scene())
    assert free.report.ok, free.report.violations
    assert ON_THE_WAY in free.report.checks
    hand = forward_kinematics(panda, panda.default_q, ["panda_hand"])[0, :3, 3]
    turned = (
        np.array([[np.cos(0.7), -np.sin(0.7), 0.0], [np.sin(0.7), np.cos(0.7), 0.0], [0.0, 0.0, 1.0]]) @ hand
    )
    post = with_things((Box(0.02, 0.02, 0.6), (turned[0], turned[1], turned[2])))
    motion = plan_joint_motion(panda, joints, panda.default_q, still, goal, 0.5, 0.5, scene=post)
    assert not motion.report.ok
    assert motion.contact is not None
    assert 0.0 < motion.contact.time < motion.trajectory.duration
    assert "thing0" in motion.report.violations[-1].message
    unaware = plan_joint_motion(panda, joints, panda.default_q, still, goal, 0.5, 0.5)
    assert unaware.report.ok
    assert ON_THE_WAY in unaware.report.not_checked


def test_a_gap_in_doubt_counts_as_in_configurations(robot: RobotModel) -> None:
    # At an edge of the cart, which does not move here, and nearer to it than coal's gaps can be trusted.
    out = 0.05 + (0.05 + 3e-6) / np.sqrt(2.0)
    scene = with_things((Cylinder(0.05, 0.1), (out, out, 0.0)))
    way = straight(np.zeros(3), np.array([0.0, -0.5, 0.0]))
    assert not check_collisions(robot, scene, np.zeros((1, 3)), contacts=False).free[0]
    contact = first_contact(robot, scene, np.zeros(3), np.arange(3), way)
    assert contact is not None
    assert "thing0" in (contact.a, contact.b)
