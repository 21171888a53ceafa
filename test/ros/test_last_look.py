"""The last look before the robot moves, and ~/target_pose that goes through it; without a node."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from support.looks import Unwatched
from support.ros_requests import pose, target
from support.scene_holders import serving
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from kinopt_ros.errors import EnvironmentChangedError, InvalidStateError, StaleStateError, StartStateError
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.planning.servo.commanded import Commanded
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.ros.actions.optimize_trajectory import _Goal
from kinopt_ros.ros.context import Ways, moving
from kinopt_ros.ros.messages.conversions import trajectory_from_message, trajectory_message
from kinopt_ros.ros.motion import last_look, published_end
from kinopt_ros.ros.motion import run as motion_run
from kinopt_ros.ros.motion.controller_kinds import FOLLOWS
from kinopt_ros.ros.motion.controllers import ChosenControllers
from kinopt_ros.ros.motion.last_look import (
    LOOKS,
    LastLook,
    MovingError,
    PlannedFor,
    UncheckableError,
)
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.motion.published import Published, begin_of
from kinopt_ros.ros.robot import joint_states
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.robot.parameters import START_DELAY
from kinopt_ros.ros.topics import target_pose
from kinopt_ros.ros.topics.target_pose import LEAD, PLANS, TargetPoseTopic
from kinopt_ros.scene import changes
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.status import Status

pytest.importorskip("coal")
pytestmark = pytest.mark.timeout(900)  # on a new machine a compiler is at work

PANDA = load_robot("panda")
ARM = tuple(f"panda_joint{i + 1}" for i in range(7))
START = PANDA.default_q
GOAL = START + np.array([0.5, *[0.0] * 7])
PARAMETERS = {
    "state_timeout": 1e6,
    "default_group": "",
    "controller_joints": list(ARM),
    "target_pose.tip_link": "",
    "ik.avoid_collisions": True,
    "ik.clearance": 0.0,
    "ik.position_tolerance": 1e-4,
    "ik.orientation_tolerance": 1e-3,
    "ik.timeout": 1e6,
    "velocity_scaling": 0.5,
    "acceleration_scaling": 0.5,
    "start_state_tolerance": 1e-3,
    "start_delay": 0.0,
    "allow_fallback": True,
    "solver": "cpu",
    "ik.solver": "",
}


NOW = [10**15]
"""Time of the node's clock and of the one by which joint states get older, ns: it passes only when a test lets it."""


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    NOW[0] = 10**15
    monkeypatch.setattr(joint_states, "time", SimpleNamespace(monotonic=lambda: NOW[0] / 1e9))


class World:
    """A scene, a robot and its state, of which the last look and ~/target_pose learn as in a node."""

    def __init__(self, robot: RobotModel = PANDA) -> None:
        self.robot = robot
        self.scene = serving(robot)
        self.joint_states = JointStates()
        self.parameters = dict(PARAMETERS)
        self.loaded: Any = SimpleNamespace(model=robot, pool=None)
        self.sent: list[Any] = []
        self.reports: list[Any] = []
        self.published: tuple[Published, ...] = ()
        self.at = START.copy()
        quiet = SimpleNamespace(warning=lambda text, **options: None, error=pytest.fail)
        self.node: Any = SimpleNamespace(get_logger=lambda: quiet)
        self.now = lambda: NOW[0]
        self.frames = SimpleNamespace(T_link_frame=lambda robot, base, frame, q: np.eye(4))
        self.is_at(START)
        self.scene.of(robot)

    def is_at(self, q: np.ndarray, velocity: np.ndarray | None = None, late: float = 0.0) -> None:
        names = list(self.robot.variable_names)
        speed = [] if velocity is None else velocity.tolist()
        message = SimpleNamespace(name=names, position=q[: len(names)].tolist(), velocity=speed)
        self.joint_states.update(message, NOW[0] - round(1e9 * late), NOW[0])

    def parameter(self, name: str) -> Any:
        return self.parameters[name]

    def moving(self, robot: RobotModel, ways: Ways) -> list[int]:
        return moving(robot, ways)

    def group_name(self, robot: RobotModel) -> str:
        return "panda_arm"

    def put(self, y: float) -> None:
        """An obstacle, confirmed when this returns."""
        T = np.eye(4)
        T[:3, 3] = 0.4, y, 0.5
        late = SceneObject("late", (PlacedShape(Box(0.3, 0.05, 1.0), np.eye(4)),), T)
        change = lambda scene: changes.add(scene, self.robot, late, replacing=True)  # noqa: E731
        self.scene.change(self.robot, [("add", change)])

    def motion(self, velocity: np.ndarray | None = None) -> JointTrajectory:
        speed = np.zeros(PANDA.nq) if velocity is None else velocity
        planned = plan_joint_motion(PANDA, ARM, START, speed, GOAL, 0.5, 0.5)
        return trajectory_message(planned.trajectory, "panda_link0")

    def send(
        self, scene: Scene | None, message: JointTrajectory | None = None, loaded: Any = None, **rest: Any
    ) -> bool:
        planned = PlannedFor(loaded or self.loaded, START, scene, **rest)

        def send() -> bool:
            self.sent.append(message)
            return True

        look: Any = LastLook(self)  # type: ignore[arg-type]
        return bool(look.send(planned, message or self.motion(), lambda: self.published, send))


def test_an_unchanged_world_is_as_planned() -> None:
    world = World()
    assert world.send(world.scene.of(PANDA))
    assert world.send(None)
    assert len(world.sent) == 2


def test_an_obstacle_that_came_meanwhile() -> None:
    world = World()
    before = world.scene.of(PANDA)
    world.put(3.0)  # not in the way
    assert world.send(before)
    world.put(0.2)
    with pytest.raises(EnvironmentChangedError, match="late"):
        world.send(before)
    assert len(world.sent) == 1
    assert world.send(None)  # whoever ignores collisions ignores new ones
    assert EnvironmentChangedError.status is Status.ENVIRONMENT_CHANGED


def test_a_change_that_is_confirmed_while_a_motion_is_looked_at_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    before = world.scene.of(PANDA)
    world.put(3.0)
    looked = []

    def first_contact(*given: Any, **options: Any) -> Any:
        looked.append(given[1].version)
        if len(looked) == 1:
            world.put(0.2)  # after the scene was taken
        return original(*given, **options)

    original = last_look.first_contact
    monkeypatch.setattr(last_look, "first_contact", first_contact)
    with pytest.raises(EnvironmentChangedError, match="late"):
        world.send(before)
    assert looked == [2, 3]
    assert not world.sent


def test_no_change_is_confirmed_while_a_motion_is_being_sent() -> None:
    world = World()
    scene = world.scene.of(PANDA)
    planned = PlannedFor(world.loaded, START, scene)
    sent, confirmed = [], threading.Event()
    changing = threading.Thread(target=lambda: (world.put(0.2), confirmed.set()))

    def send() -> bool:
        changing.start()
        sent.append(confirmed.wait(0.3))
        return True

    assert LastLook(world).send(planned, world.motion(), tuple, send)  # type: ignore[arg-type]
    changing.join(30.0)
    assert (sent, confirmed.is_set()) == ([False], True)


def test_a_scene_that_never_rests_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    before = world.scene.of(PANDA)
    world.put(3.0)
    monkeypatch.setattr(last_look, "first_contact", lambda *given, **options: world.put(3.0))
    with pytest.raises(EnvironmentChangedError, match=f"changed {LOOKS} times"):
        world.send(before)


def test_a_joint_that_the_motion_leaves_out_and_that_has_moved() -> None:
    """The hand opened, beside what it would hit then."""
    world = World()
    scene = world.scene.of(PANDA)
    opened = START.copy()
    opened[7] = 0.04
    world.is_at(opened)
    assert world.send(scene)  # looked at again, and free
    from kinopt_ros.kinematics.forward import forward_kinematics

    finger = forward_kinematics(PANDA, opened, links=("panda_leftfinger",))[0]
    beside = finger @ np.array([0.0, 0.012, 0.03, 1.0])
    T = np.eye(4)
    T[:3, 3] = beside[:3]
    thing = SceneObject("thing", (PlacedShape(Box(0.004, 0.004, 0.004), np.eye(4)),), T)
    world.is_at(START)
    world.scene.change(PANDA, [("add", lambda scene: changes.add(scene, PANDA, thing))])
    scene = world.scene.of(PANDA)
    assert world.send(scene)
    world.is_at(opened)
    with pytest.raises(EnvironmentChangedError, match=r"leaves out have moved.*thing|leaves out have moved"):
        world.send(scene)


def test_another_robot() -> None:
    world = World()
    with pytest.raises(EnvironmentChangedError, match="description"):
        world.send(world.scene.of(PANDA), loaded=SimpleNamespace(model=PANDA))
    with pytest.raises(EnvironmentChangedError, match="description"):
        world.send(None, loaded=SimpleNamespace(model=PANDA))


def test_a_robot_that_moved_or_is_silent() -> None:
    world = World()
    away = START.copy()
    away[2] += 0.02
    world.is_at(away)
    with pytest.raises(StartStateError, match="panda_joint3"):
        world.send(None)
    near = START.copy()
    near[2] += 0.005
    world.is_at(near)
    assert world.send(None)
    world.parameters["state_timeout"] = -1.0
    with pytest.raises(StaleStateError):
        world.send(None)


def test_joint_states_of_two_publishers_move_no_robot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the motions began where the robot was not: it jumped there, by up to 0.7 rad."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        NOW[0] += round(1e9 * seconds)

    monkeypatch.setattr(last_look.time, "sleep", sleep)
    world = World()
    other = START.copy()
    other[2] += 0.7

    def both(seconds: float) -> None:
        sleep(seconds)
        world.is_at(other)
        NOW[0] += 1_000_000
        world.is_at(START)

    both(0.02)
    monkeypatch.setattr(last_look.time, "sleep", both)
    with pytest.raises(InvalidStateError, match=r"'panda_joint3' jumps.*more than one"):
        world.send(None)
    assert sum(waited) > 1.0
    monkeypatch.setattr(last_look.time, "sleep", lambda seconds: (sleep(seconds), world.is_at(START)))
    assert world.send(None)  # a simulation has begun anew, and there is one publisher


def test_a_robot_that_somebody_else_moves_is_not_moved() -> None:
    """Nobody knows where it will be when the motion arrives."""
    world = World()
    velocity = np.zeros(PANDA.nq)
    velocity[0] = 0.3
    world.is_at(START, velocity)
    with pytest.raises(
        StartStateError, match=r"'panda_joint1' moves at a velocity of 0.3.*0.1 counts as at rest"
    ):
        world.send(None)
    with pytest.raises(StartStateError, match=r"begins with 'panda_joint1' at a velocity of 0\.3"):
        world.send(None, world.motion(velocity))
    velocity[0] = 0.05  # sensors never read 0
    world.is_at(START, velocity)
    assert world.send(None)
    scene, velocity[7] = world.scene.of(PANDA), 0.02  # a finger that the motion leaves out
    world.is_at(START, velocity)
    with pytest.raises(StartStateError, match="'panda_finger_joint1' moves"):
        world.send(scene)
    assert world.send(None)  # where collisions do not matter


@pytest.mark.parametrize("driver", ["tells no velocities", "tells zeros", "tells velocities"])
@pytest.mark.parametrize("period", [0.001, 0.02, 0.1])
def test_a_robot_whose_driver_measures_no_velocity_is_at_rest_when_its_way_says_so(
    driver: str, period: float
) -> None:
    """It was sent back to where it was measured, by 0.08 rad with joint states of 10 Hz, at 0.8 rad/s."""
    world = World()

    def goes(speed: float, seconds: float) -> None:
        for _ in range(round(seconds / period)):
            NOW[0] += round(1e9 * period)
            world.at[0] += speed * period
            velocity = np.zeros(PANDA.nq)
            velocity[0] = speed if driver == "tells velocities" else 0.0
            noisy = world.at + 1e-4 * np.sin(np.arange(PANDA.nq) + NOW[0])
            world.is_at(noisy, None if driver == "tells no velocities" else velocity)

    world.at = START - np.array([0.32, *[0.0] * (PANDA.nq - 1)])
    goes(0.0, 1.5)
    goes(0.8, 0.4)
    with pytest.raises(
        StartStateError, match=r"'panda_joint1' moves at a velocity of 0\.\d+, and not by a motion"
    ):
        world.send(None)
    goes(0.0, 0.2)
    assert world.send(None)
    goes(0.0, 1.0)
    assert world.send(world.scene.of(PANDA))


TURNING = """<robot name="turning"><link name="base"/>
<link name="arm"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<link name="head"/>
<joint name="turns" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
  <limit effort="1" velocity="1"/></joint>
<joint name="pan" type="continuous"><parent link="base"/><child link="head"/><axis xyz="0 0 1"/>
  <limit effort="1" velocity="1"/></joint></robot>"""


@pytest.mark.parametrize("measured", [(-np.pi + 1e-4, 0.0), (np.pi, -np.pi + 1e-4)])
def test_a_continuous_joint_at_half_a_turn_may_be_measured_at_minus_that(
    measured: tuple[float, float],
) -> None:
    """Drivers measure between the two. Of 12 goals of an arm that stood there with two joints, 11 were refused."""
    robot = robot_from_urdf(TURNING)
    world = World(robot)
    planned_from = np.array([np.pi - 1e-4, np.pi if measured[1] else 0.0])
    motion = plan_joint_motion(
        robot, ("turns",), planned_from, np.zeros(2), np.add(planned_from, [0.3, 0.0]), 0.5, 0.5
    )
    message = trajectory_message(motion.trajectory, "base")

    def is_sent(*at: float) -> bool:
        world.joint_states = JointStates()
        world.is_at(np.array(at))
        planned = PlannedFor(world.loaded, planned_from, world.scene.of(robot))
        return LastLook(world).send(planned, message, tuple, lambda: True)  # type: ignore[arg-type]

    assert is_sent(*measured)
    for far in (-np.pi + 0.02, -np.pi - 1e-4 + 4.0 * np.pi, 3.0):
        with pytest.raises(StartStateError, match=r"starts with 'turns' at 3\.14149, but it is at "):
            is_sent(far, measured[1])


def test_only_half_turns_are_measured_at_either_end() -> None:
    """A controller that has another number of whole turns might turn the joint back by them."""
    robot = robot_from_urdf(TURNING)
    start = np.array([0.1, 0.0])
    for at in (0.1 + 2.0 * np.pi, 0.1 - 2.0 * np.pi):
        state = JointStates()
        state.update(SimpleNamespace(name=["turns", "pan"], position=[at, 0.0], velocity=[]))
        with pytest.raises(StartStateError, match=r"starts with 'turns' at 0\.1,"):
            last_look.check_is_at(robot, state.of(robot), start, [0])
    ends = TURNING.replace('"continuous"', '"revolute"').replace(
        "<limit ", '<limit lower="-3.2" upper="3.2" '
    )
    limited = robot_from_urdf(ends)
    state = JointStates()
    state.update(SimpleNamespace(name=["turns", "pan"], position=[-np.pi, 0.0], velocity=[]))
    with pytest.raises(StartStateError, match=r"starts with 'turns' at 3\.14159"):
        last_look.check_is_at(limited, state.of(limited), np.array([np.pi, 0.0]), [0])


@pytest.mark.parametrize("noise", [0.009, -0.009])
def test_noise_of_a_slow_joint_is_no_movement(noise: float) -> None:
    """A finger of 0.05 m/s had to be slower than 2.5 mm/s: the arm did not move as long as its sensor was noisy."""
    world = World()
    velocity = np.zeros(PANDA.nq)
    velocity[7] = noise
    world.is_at(START, velocity)
    assert world.send(world.scene.of(PANDA))


def test_one_noisy_velocity_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A goal that had been planned for seconds ended because of one sample."""
    world, looks = World(), [0]
    noisy = np.zeros(PANDA.nq)
    noisy[0] = 0.3

    def sleep(seconds: float) -> None:
        looks[0] += 1
        now[0] += seconds
        if looks[0] == calm:
            world.is_at(START)

    now = [0.0]
    monkeypatch.setattr(last_look, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    for scene in (None, world.scene.of(PANDA)):
        looks[0], calm = 0, 3
        world.is_at(START, noisy)
        assert world.send(scene)
        assert looks[0] == 3
    calm = 1000
    world.is_at(START, noisy)
    with pytest.raises(StartStateError, match="'panda_joint1' moves at a velocity"):
        world.send(None)
    assert now[0] < 1.0


def test_joint_states_that_lie_unread_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A motion that took seconds to plan was dropped, as something had just held Python's lock."""
    world, slept = World(), [0.0]
    world.parameters["state_timeout"] = -1.0

    def sleep(seconds: float) -> None:
        slept[0] += seconds
        if slept[0] > 0.1:
            world.parameters["state_timeout"] = 1.0

    monkeypatch.setattr(last_look, "time", SimpleNamespace(monotonic=lambda: slept[0], sleep=sleep))
    for scene in (None, world.scene.of(PANDA)):
        slept[0] = 0.0
        world.parameters["state_timeout"] = -1.0
        assert world.send(scene)


def test_a_joint_that_fell_silent_while_it_moved_is_not_waited_for() -> None:
    """It was said to move, for ever, and the robot that stands was to be waited for."""
    world = World()
    velocity = np.zeros(PANDA.nq)
    velocity[7] = 0.02  # a finger that the motion leaves out
    world.is_at(START, velocity)
    world.parameters["state_timeout"] = 1.0
    scene = world.scene.of(PANDA)
    with pytest.raises(MovingError, match="'panda_finger_joint1' moves at a velocity"):
        world.send(scene)
    NOW[0] += 10**10
    arm = SimpleNamespace(name=list(ARM), position=START[:7].tolist(), velocity=[])
    world.joint_states.update(arm, NOW[0], NOW[0])
    with pytest.raises(StaleStateError, match=r"'panda_finger_joint1' moved .* last, 10 s ago"):
        world.send(scene)
    assert world.send(None)  # where collisions do not matter
    world.is_at(START)
    assert world.send(scene)


def lasting(joints: list[str], seconds: int) -> JointTrajectory:
    """A motion of some joints that stays where they are for so long."""
    zeros = [0.0] * len(joints)
    points = [JointTrajectoryPoint(positions=zeros, velocities=zeros, accelerations=zeros) for _ in range(2)]
    points[1].time_from_start.sec = seconds
    return JointTrajectory(joint_names=joints, points=points)


@pytest.mark.parametrize("goes_on", [False, True])
def test_no_motion_begins_while_another_one_moves_joints_that_it_leaves_out(goes_on: bool) -> None:
    """Each was checked with the joints of the other one at rest: two arms went through each other."""
    world = World()
    finger = "panda_finger_joint1"
    world.published = (Published(lasting([ARM[0], finger], 9), PANDA, NOW[0] - 2 * 10**9),)
    with pytest.raises(StartStateError, match=rf"'{finger}' for another 7 s"):
        world.send(None, goes_on=goes_on)
    world.published = (Published(lasting([ARM[0], finger], 1), PANDA, NOW[0] - 2 * 10**9),)
    assert world.send(None, goes_on=goes_on)
    world.published = (Published(lasting([finger], 9), PANDA, NOW[0] + 20 * 10**9),)
    assert world.send(None, goes_on=goes_on)  # the clock was set back
    another = load_robot("panda")
    world.published = (Published(lasting([ARM[0]], 9), another, NOW[0] - 2 * 10**9),)
    with pytest.raises(StartStateError, match=ARM[0]):
        world.send(None, goes_on=goes_on)


@pytest.mark.parametrize("joint", [ARM[0], "panda_finger_joint1"])
def test_no_motion_begins_before_a_controller_has_ended_the_one_before(joint: str) -> None:
    world = World()
    controller = SimpleNamespace(over=False)
    world.published = (Published(lasting([joint], 1), PANDA, NOW[0] - 20 * 10**9, controller),)
    for goes_on in (False, True):
        with pytest.raises(StartStateError, match=f"moves '{joint}': "):
            world.send(None, goes_on=goes_on)
    controller.over = True
    assert world.send(None)


def test_a_motion_that_has_just_begun_may_not_be_seen_yet() -> None:
    """Joint states of drivers without stamps are late by nobody knows how much."""
    world = World()
    world.published = (Published(world.motion(), PANDA, NOW[0]),)
    for _ in range(4):
        with pytest.raises(StartStateError, match="is in a motion that this node has published"):
            world.send(None)
        NOW[0] += 120_000_000
        world.is_at(START)
    NOW[0] += 120_000_000
    world.is_at(START)
    assert world.send(None)  # nobody does it


def test_a_robot_without_shapes_is_not_said_to_be_free() -> None:
    links = "".join(f'<link name="l{i}"/>' for i in range(2))
    joint = (
        '<joint name="j" type="revolute"><parent link="l0"/><child link="l1"/><axis xyz="0 0 1"/>'
        '<limit lower="-1" upper="1" velocity="1" effort="1"/></joint>'
    )
    robot = robot_from_urdf(f'<robot name="bare">{links}{joint}</robot>')
    world = World(robot)
    world.is_at(np.zeros(1))
    message = trajectory_message(
        plan_joint_motion(robot, ["j"], np.zeros(1), np.zeros(1), np.ones(1) * 0.5, 0.5, 0.5).trajectory, "l0"
    )
    with pytest.raises(UncheckableError, match=r"no collision shapes.*Say so"):
        LastLook(world).send(  # type: ignore[arg-type]
            PlannedFor(world.loaded, np.zeros(1), world.scene.of(robot), unchecked="Say so"),
            message,
            tuple,
            pytest.fail,
        )


def test_motions_of_servo_are_made_anew_rather_than_looked_at_again() -> None:
    world = World()
    before = world.scene.of(PANDA)
    assert world.send(before, goes_on=True)
    world.put(3.0)
    with pytest.raises(EnvironmentChangedError):
        world.send(before, goes_on=True)


class Pool:
    """Solvers, during whose work something happens."""

    def __init__(self, robot: RobotModel, meanwhile: Callable[[int], None]) -> None:
        self._pool = SolverPool(robot, {}, ())
        self._pool.prepare("cpu")
        self._pool.warm_up()
        self._meanwhile = meanwhile
        self.solved = 0

    def solve_ik(self, *given: Any, **options: Any) -> Any:
        answer = self._pool.solve_ik(*given, **options)
        self.solved += 1
        self._meanwhile(self.solved)
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


def moved(world: World, meanwhile: Callable[[int], None], at: PoseStamped | None = None) -> Any:
    """The report of a target, while whose motion is planned something happens."""
    prepare_collisions(world.robot)
    pool = Pool(world.robot, meanwhile)
    world.loaded.pool = pool
    topic = SimpleNamespace(publish=world.sent.append)
    output = MotionOutput(topic, LastLook(world), lambda: NOW[0])  # type: ignore[arg-type]
    handler = TargetPoseTopic(world, output, Unwatched(), SimpleNamespace(publish=world.reports.append))  # type: ignore[arg-type]
    handler._handle(at or target(pose(0.4, 0.3, 0.5)), 0)
    handler.close()
    assert len(world.reports) == 1
    return world.reports[0], pool


@pytest.fixture
def _solver(monkeypatch: pytest.MonkeyPatch) -> None:
    from kinopt_ros.ros.topics import target_pose as motion_topic

    monkeypatch.setattr(motion_topic.parameters, "ik_solver", lambda node: "cpu")


@pytest.mark.usefixtures("_solver")
def test_a_target_is_planned_for_again_when_an_obstacle_comes_meanwhile() -> None:
    """60 of 60 such motions were published, through what had been confirmed to be there."""
    world = World()
    report, pool = moved(world, lambda solved: world.put(0.2) if solved == 1 else None)
    assert pool.solved > 1
    if world.sent:  # another way was found
        (message,) = world.sent
        assert report.status.code == Status.SUCCESS
        from kinopt_ros.verification.sweep import first_contact

        variables = np.arange(7)
        assert not first_contact(
            PANDA, world.scene.of(PANDA), START, variables, trajectory_from_message(message)
        )
    else:
        assert "late" in report.status.message


@pytest.mark.usefixtures("_solver")
def test_a_target_in_a_world_that_never_rests() -> None:
    world = World()
    report, pool = moved(world, lambda solved: world.put(0.2) if solved % 2 else world.put(3.0))
    assert pool.solved <= 2 * PLANS
    assert not world.sent or report.status.code == Status.SUCCESS
    world = World()
    away = START.copy()

    def walk(solved: int) -> None:
        away[2] += 0.02
        world.is_at(away)

    report, pool = moved(world, walk)
    assert (report.status.code, pool.solved) == (Status.START_STATE_INVALID, PLANS)
    assert f"planned {PLANS} times" in report.status.message
    assert not world.sent
    assert report.duration == 0.0


@pytest.mark.usefixtures("_solver")
def test_a_target_of_a_robot_that_was_replaced_is_not_planned_for_again() -> None:
    world = World()

    def replace(solved: int) -> None:
        world.loaded = SimpleNamespace(model=load_robot("panda"), pool=None)

    report, pool = moved(world, replace)
    assert (report.status.code, pool.solved) == (Status.ENVIRONMENT_CHANGED, 1)
    assert not world.sent


@pytest.mark.usefixtures("_solver")
def test_a_target_waits_for_nobody_who_moves_the_robot() -> None:
    world = World()
    velocity = np.zeros(PANDA.nq)
    velocity[0] = 0.8
    world.is_at(START, velocity)
    report, pool = moved(world, lambda solved: None)
    assert (report.status.code, pool.solved) == (Status.START_STATE_INVALID, PLANS)
    assert "'panda_joint1' moves" in report.status.message
    assert not world.sent


@pytest.mark.usefixtures("_solver")
@pytest.mark.parametrize("late", [0.0, 0.4])
@pytest.mark.parametrize("after", [0.15, 0.4, -0.1, -0.02])
def test_a_motion_that_runs_is_left_without_a_step(late: float, after: float) -> None:
    """Robots were set back by up to 0.6 rad, and their velocity by 0.5 rad/s: what was measured is from before."""
    world = World()
    prepare_collisions(world.robot)
    world.loaded.pool = Pool(world.robot, lambda solved: None)
    output = MotionOutput(SimpleNamespace(publish=world.sent.append), LastLook(world), lambda: NOW[0])  # type: ignore[arg-type]
    handler = TargetPoseTopic(world, output, Unwatched(), SimpleNamespace(publish=world.reports.append))  # type: ignore[arg-type]
    handler._handle(target(pose(0.4, 0.3, 0.5)), 0)
    runs = trajectory_from_message(world.sent[0])
    begin = NOW[0]
    end = begin + round(1e9 * runs.time[-1])
    now = (begin if after > 0.0 else end) + round(1e9 * after)
    first = Commanded(runs, begin, begin, begin)
    for k in range(21):  # joint states on the way
        NOW[0] = begin + (now - begin) * k // 20
        was = first.at(max(begin, NOW[0] - round(1e9 * late)))
        q, velocity = START.copy(), np.zeros(PANDA.nq)
        q[:7], velocity[:7] = was.position, was.velocity
        world.is_at(q, velocity, late)
    handler._handle(target(pose(0.4, -0.3, 0.5)), 0)
    handler.close()
    assert len(world.sent) == 2, world.reports[-1].status.message
    start = stamp_of(world.sent[1])
    second = Commanded(trajectory_from_message(world.sent[1]), start, start, start)
    for time in range(NOW[0], NOW[0] + LEAD // 2, 10_000_000):
        before, then = first.at(time), second.at(time)
        np.testing.assert_allclose(then.position, before.position, atol=1e-9)
        np.testing.assert_allclose(then.velocity, before.velocity, atol=1e-7)
        np.testing.assert_allclose(then.acceleration, before.acceleration, atol=1e-4)
    assert {"acceleration limits", "jerk limits", "collisions on the way"} <= set(world.reports[-1].checks)


@pytest.mark.usefixtures("_solver")
def test_a_motion_that_nobody_does_is_not_left() -> None:
    """As of a controller that has dropped it: the next one begins where the robot stands."""
    world = World()
    prepare_collisions(world.robot)
    world.loaded.pool = Pool(world.robot, lambda solved: None)
    output = MotionOutput(SimpleNamespace(publish=world.sent.append), LastLook(world), lambda: NOW[0])  # type: ignore[arg-type]
    handler = TargetPoseTopic(world, output, Unwatched(), SimpleNamespace(publish=world.reports.append))  # type: ignore[arg-type]
    handler._handle(target(pose(0.4, 0.3, 0.5)), 0)
    NOW[0] += 500_000_000
    world.is_at(START)
    handler._handle(target(pose(0.4, -0.3, 0.5)), 0)
    handler.close()
    assert len(world.sent) == 2, world.reports[-1].status.message
    assert (world.sent[1].header.stamp.sec, world.sent[1].header.stamp.nanosec) == (0, 0)
    np.testing.assert_array_equal(world.sent[1].points[0].positions, START[:7])


@pytest.mark.usefixtures("_solver")
def test_a_motion_that_is_not_ready_in_time_is_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    prepare_collisions(world.robot)
    waits = [0]

    def spend(solved: int) -> None:
        if solved > 1:
            NOW[0] += waits[0]

    world.loaded.pool = Pool(world.robot, spend)
    output = MotionOutput(SimpleNamespace(publish=world.sent.append), LastLook(world), lambda: NOW[0])  # type: ignore[arg-type]
    handler = TargetPoseTopic(world, output, Unwatched(), SimpleNamespace(publish=world.reports.append))  # type: ignore[arg-type]
    handler._handle(target(pose(0.4, 0.3, 0.5)), 0)
    NOW[0] += 20_000_000
    waits[0] = LEAD + 1
    world.is_at(START)
    handler._handle(target(pose(0.4, -0.3, 0.5)), 0)
    handler.close()
    assert world.loaded.pool.solved >= 3
    assert len(world.sent) == 2, world.reports[-1].status.message


def stamp_of(message: JointTrajectory) -> int:
    """Return when a motion begins, ns."""
    stamp = message.header.stamp
    return int(stamp.sec * 10**9 + stamp.nanosec)


class Streamed(World):
    """A world in which ~/target_pose moves a robot, which does what was sent first."""

    sets_back = staticmethod(lambda: False)

    def __init__(self) -> None:
        super().__init__()
        prepare_collisions(self.robot)
        self.meanwhile: Callable[[int], None] = lambda solved: None
        self.loaded.pool = Pool(self.robot, lambda solved: self.meanwhile(solved))
        topic = SimpleNamespace(publish=self.sent.append)
        self.output = MotionOutput(
            topic,
            LastLook(self),  # type: ignore[arg-type]
            lambda: NOW[0],
            begin=lambda message, robot: begin_of(message, robot, self.joint_states.of(robot), NOW[0]),
        )
        said = SimpleNamespace(publish=self.reports.append)
        self.watched = Unwatched(said)
        self.handler = TargetPoseTopic(self, self.output, self.watched, said)  # type: ignore[arg-type]
        asked = NOW[0]
        self.move(0.3)
        self.begin = stamp_of(self.sent[0])
        assert self.begin == asked + round(1e9 * START_DELAY)

    def move(self, y: float) -> None:
        """Handle a target."""
        self.handler._handle(target(pose(0.4, y, 0.5)), 0)

    def go_on(self, seconds: float, late: float = 0.0, stamped_late: float | None = None) -> None:
        """Let time pass, with joint states on the way."""
        runs = trajectory_from_message(self.sent[0])
        first = Commanded(runs, self.begin, self.begin, self.begin)
        for _ in range(20):
            NOW[0] += round(1e9 * seconds / 20)
            was = first.at(max(self.begin, NOW[0] - round(1e9 * late)))
            q, velocity = START.copy(), np.zeros(PANDA.nq)
            q[:7], velocity[:7] = was.position, was.velocity
            self.is_at(q, velocity, late if stamped_late is None else stamped_late)


@pytest.mark.usefixtures("_solver")
def test_a_motion_is_not_left_too_late_where_the_last_checks_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time was looked at before them, and a controller jumps to what comes when the motion is left already."""
    world = Streamed()
    world.go_on(0.4)
    asked, followed = [0], target_pose.followed_motion

    def busy(*given: Any) -> Any:
        found = followed(*given)
        asked[0] += 1
        if asked[0] == 2:  # when it was planned, and now right before it is sent
            NOW[0] += LEAD
        return found

    monkeypatch.setattr(target_pose, "followed_motion", busy)
    # The lead counts how long planning takes.
    clock = SimpleNamespace(monotonic=lambda: NOW[0] / 1e9, sleep=lambda seconds: None)
    monkeypatch.setattr(target_pose, "time", clock)
    world.move(-0.3)
    assert asked[0] > 2
    assert len(world.sent) == 2, world.reports[-1].status.message
    first = Commanded(trajectory_from_message(world.sent[0]), world.begin, world.begin, world.begin)
    start = stamp_of(world.sent[1])
    second = Commanded(trajectory_from_message(world.sent[1]), start, start, start)
    np.testing.assert_allclose(second.at(NOW[0]).position, first.at(NOW[0]).position, atol=1e-9)
    np.testing.assert_allclose(second.at(NOW[0]).velocity, first.at(NOW[0]).velocity, atol=1e-7)


@pytest.mark.usefixtures("_solver")
@pytest.mark.parametrize("late", [-3.0, -0.2, 0.6, 1e5])
def test_a_motion_is_not_left_in_time_by_a_controller_of_another_clock(late: float) -> None:
    """It would begin with the next motion at another time than the node reckons with: a jump."""
    world = Streamed()
    world.go_on(0.4, stamped_late=late)
    world.move(-0.3)
    assert len(world.sent) == 1
    assert "another time" in world.reports[-1].status.message
    world.go_on(0.05)
    world.move(-0.3)
    assert len(world.sent) == 2, world.reports[-1].status.message


@pytest.mark.usefixtures("_solver")
def test_a_robot_that_stops_while_its_next_motion_is_planned_is_not_sent_on() -> None:
    """As in a protective stop: what was planned begins where it would be now."""
    world = Streamed()
    world.go_on(0.6)
    standing = world.joint_states.of(PANDA).q

    def stops(solved: int) -> None:
        if solved == 2:
            NOW[0] += 90_000_000
            world.is_at(standing)

    world.meanwhile = stops
    world.move(-0.3)
    assert len(world.sent) == 2, world.reports[-1].status.message
    assert world.loaded.pool.solved == 3
    np.testing.assert_array_equal(world.sent[1].points[0].positions, standing[:7])
    assert stamp_of(world.sent[1]) == NOW[0] + round(1e9 * START_DELAY)  # from rest


@pytest.mark.usefixtures("_solver")
def test_a_motion_that_is_replaced_by_a_brake_meanwhile_is_not_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by a goal of MoveIt's that brakes what it has published when a target takes its joints.

    Where exactly in the brake they are only the controller knows: what left it half way set them back by 0.2 rad.
    """
    world = Streamed()
    world.go_on(0.5)
    [running] = world.output.published
    at = running.commanded(ARM).at(NOW[0])
    brake = JointTrajectory(joint_names=ARM)
    for second, ahead in ((0, 0.0), (1, 0.5)):
        point = JointTrajectoryPoint(positions=at.position + ahead * at.velocity, accelerations=[0.0] * 7)
        point.velocities = at.velocity if second == 0 else np.zeros(7)
        point.time_from_start.sec = second
        brake.points.append(point)

    def brakes(solved: int) -> None:
        if solved == 2:
            assert world.output.brake(running, brake, lambda message: None)

    way, sent = trajectory_from_message(brake), NOW[0]

    def sleep(seconds: float) -> None:  # joints follow the brake, ahead of what the node makes of it
        NOW[0] += round(1e9 * seconds)
        was = Commanded(way, sent, sent, sent).at(NOW[0] + 50_000_000)
        q, velocity = START.copy(), np.zeros(PANDA.nq)
        q[:7], velocity[:7] = was.position, was.velocity
        world.is_at(q, velocity)

    monkeypatch.setattr(target_pose, "time", SimpleNamespace(monotonic=lambda: NOW[0] / 1e9, sleep=sleep))
    world.meanwhile = brakes
    world.move(-0.3)
    first, braked, *others = world.sent
    assert len(braked.points) == 1
    assert world.loaded.pool.solved > 2  # planned again, from the end of the brake
    assert world.reports[-1].status.code == Status.SUCCESS, world.reports[-1].status.message
    [after] = others
    assert after.points[0].positions != first.points[0].positions
    np.testing.assert_allclose(after.points[0].positions, way.position[-1], atol=1e-9)
    assert NOW[0] >= sent + 10**9


@pytest.mark.usefixtures("_solver")
@pytest.mark.parametrize("in_the_way", [True, False])
def test_a_target_is_reported_once_more_when_an_obstacle_comes_in_its_way(
    in_the_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was confirmed after the motion had begun, and hit."""
    world = Streamed()
    [(motion, ended)] = world.watched.begun
    [report] = world.reports
    assert report.status.code == Status.SUCCESS
    world.go_on(0.4)
    standing = world.joint_states.of(PANDA).q

    def sleep(seconds: float) -> None:  # the robot brakes meanwhile
        NOW[0] += 100_000_000
        world.is_at(standing)

    clock = SimpleNamespace(monotonic=lambda: NOW[0] / 1e9, sleep=sleep)
    for module in (motion_run, published_end):
        monkeypatch.setattr(module, "time", clock)
    world.parameters.update(
        {"servo.state_timeout": 1.0, "servo.tracking_tolerance": 0.05, "arrival_tolerance": 0.1}
    )
    world.put(0.25 if in_the_way else 3.0)
    if not in_the_way:
        NOW[0] += 10**11  # it is over, and the robot where it has led
        world.is_at(np.concatenate([world.sent[0].points[-1].positions, START[7:]]))
    ended(motion.watch())
    if not in_the_way:
        assert len(world.sent) == len(world.reports) == 1
        return
    again = world.reports[1]
    assert again.status.code == Status.ENVIRONMENT_CHANGED, again.status.message
    assert "'late'" in again.status.message
    assert (again.header, again.group, again.duration) == (report.header, report.group, 0.0)
    first, brake = world.sent
    assert brake.joint_names == first.joint_names
    assert len(brake.points) == 1


@pytest.mark.usefixtures("_solver")
def test_what_was_planned_without_collisions_is_watched_too() -> None:
    """Else nobody knows whether a robot that stands at its end has done a motion."""
    world = Streamed()
    world.parameters["ik.avoid_collisions"] = False
    world.go_on(0.4)
    world.move(-0.3)
    assert [report.status.code for report in world.reports] == [Status.SUCCESS] * 2
    assert len(world.watched.begun) == 2


@pytest.mark.usefixtures("_solver")
@pytest.mark.parametrize("avoid", [True, False])
def test_no_motion_is_left_for_another_while_joints_move_that_it_leaves_out(avoid: bool) -> None:
    """It was checked with the hand as it was, which closed meanwhile."""
    world = Streamed()
    world.parameters["ik.avoid_collisions"] = avoid
    world.go_on(0.4)

    def closes(solved: int) -> None:
        state = world.joint_states.of(PANDA)
        velocity = state.velocity.copy()
        velocity[7] = 0.03
        world.is_at(state.q, velocity)

    world.meanwhile = closes
    world.move(-0.3)
    if avoid:
        assert len(world.sent) == 1
        assert "'panda_finger_joint1' moves" in world.reports[-1].status.message
        world.meanwhile = lambda solved: None
        world.go_on(0.05)
        world.move(-0.3)
    assert len(world.sent) == 2, world.reports[-1].status.message


class Controller:
    """A controller that motions are handed to."""

    kind = FOLLOWS

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def wait(self) -> None:
        """It is there."""

    def send(self, message: Any, ended: Any) -> Any:
        self.sent.append(message)
        return SimpleNamespace(over=False)


@pytest.mark.usefixtures("_solver")
@pytest.mark.parametrize("handed_over", [False, True])
@pytest.mark.parametrize("late", [0.1, 0.4])
@pytest.mark.parametrize("after", [0.2, 0.4])
def test_goals_do_not_begin_where_the_robot_was_before_a_motion(
    late: float, after: float, handed_over: bool
) -> None:
    """With joint states that are late, they began beside the robot, which was in a motion of the node by then."""
    world = Streamed()
    ends = trajectory_from_message(world.sent[0]).time[-1]
    world.go_on(after, late)
    runs = Commanded(trajectory_from_message(world.sent[0]), world.begin, world.begin, world.begin)
    controller = Controller() if handed_over else None

    def publish(q: np.ndarray, velocity: np.ndarray) -> None:
        action: Any = SimpleNamespace(context=world, output=world.output, watched=Unwatched())
        goal = _Goal(
            action, SimpleNamespace(), SimpleNamespace(goal_id=SimpleNamespace(uuid=bytes(16)), succeed=None)
        )
        goal.conclude = lambda *given: None  # type: ignore[method-assign]
        if controller is not None:
            goal.chosen = ChosenControllers({"arm": controller}, None, world)  # type: ignore[dict-item,arg-type]
        problem = SimpleNamespace(start=q, scene=None, clearance=0.0)
        asked: Any = SimpleNamespace(loaded=world.loaded, problem=problem, controller_joints=ARM)
        planned = plan_joint_motion(PANDA, ARM, q, velocity, GOAL, 1.0, 1.0)
        message = trajectory_message(planned.trajectory, "panda_link0")
        result = SimpleNamespace(
            trajectory=message, status=SimpleNamespace(code=Status.SUCCESS), solver_used="cpu"
        )
        goal._publish(asked, world.output.claim("goal", lambda owner: None), result)

    sent = world.sent if controller is None else controller.sent
    before = len(sent)
    measured = world.joint_states.of(PANDA)
    assert np.abs(runs.at(NOW[0]).position - measured.q[:7]).max() > 0.01
    with pytest.raises(StartStateError, match="has published before"):
        publish(measured.q, measured.velocity)
    assert len(sent) == before
    NOW[0] += round(1e9 * ends)
    world.is_at(START)  # somebody else has moved it
    NOW[0] += 2 * 10**9
    world.is_at(START)
    publish(START, np.zeros(PANDA.nq))
    assert len(sent) == before + 1


@pytest.mark.usefixtures("_solver")
@pytest.mark.parametrize("ends", [True, False])
def test_a_target_waits_for_the_end_of_the_controllers_motion_that_it_has_ended(
    ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stopped the robot, and then was refused itself, as the controller had not said so yet."""
    world = World()
    prepare_collisions(world.robot)
    world.loaded.pool = Pool(world.robot, lambda solved: None)
    output = MotionOutput(SimpleNamespace(publish=world.sent.append), LastLook(world), lambda: NOW[0])  # type: ignore[arg-type]
    handler = TargetPoseTopic(world, output, Unwatched(), SimpleNamespace(publish=world.reports.append))  # type: ignore[arg-type]
    execution: Any = SimpleNamespace(over=False)
    claim = output.claim("a goal", lambda owner: None)
    planned = PlannedFor(world.loaded, START, None)
    assert claim.hand_over(world.motion(), planned, lambda: execution)
    moves = np.zeros(PANDA.nq)
    moves[0] = 0.5
    world.is_at(START, moves)
    looks = [0]

    def sleep(seconds: float) -> None:
        looks[0] += 1
        NOW[0] += round(1e9 * seconds)
        execution.over = ends and looks[0] >= 10
        world.is_at(START, moves if looks[0] < 20 else np.zeros(PANDA.nq))

    clock = SimpleNamespace(monotonic=lambda: NOW[0] / 1e9, sleep=sleep)
    monkeypatch.setattr(target_pose, "time", clock)
    handler._handle(target(pose(0.4, 0.3, 0.5)), 0)
    handler.close()
    if ends:
        assert looks == [20]
        assert len(world.sent) == 1, world.reports[-1].status.message
        assert world.loaded.pool.solved == 1
    else:
        assert looks[0] == pytest.approx(target_pose.STOP_SECONDS / 0.02, abs=1)
        assert not world.sent
        assert "that this node has sent before moves" in world.reports[-1].status.message


@pytest.mark.usefixtures("_solver")
@pytest.mark.parametrize("avoid", [True, False])
def test_collisions_are_avoided_unless_a_parameter_says_otherwise(
    avoid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kinopt_ros.errors import MissingPackageError
    from kinopt_ros.planning import solver_pool

    def missing(robot: RobotModel) -> None:
        raise MissingPackageError("collision checks need the package coal")

    monkeypatch.setattr(solver_pool, "check_ready", missing)
    world = World()
    world.parameters["ik.avoid_collisions"] = avoid
    report, _ = moved(world, lambda solved: None)
    if avoid:
        assert report.status.code == Status.UNSUPPORTED_FEATURE
        assert "coal" in report.status.message
        assert "ik.avoid_collisions" in report.status.message
        assert not world.sent
    else:
        assert report.status.code == Status.SUCCESS, report.status.message
        assert {"self collision", "world collision"} <= set(report.not_checked)
        assert len(world.sent) == 1


@pytest.mark.usefixtures("_solver")
def test_a_motion_that_would_miss_its_target_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    from kinopt_ros.ros.topics import target_pose as motion_topic

    def elsewhere(robot: RobotModel, joints: Any, start: Any, velocity: Any, goal: Any, *rest: Any) -> Any:
        off = goal.copy()
        off[0] += 0.01
        return plan_joint_motion(robot, joints, start, velocity, off, *rest)

    monkeypatch.setattr(motion_topic, "plan_joint_motion", elsewhere)
    world = World()
    report, _ = moved(world, lambda solved: None)
    assert report.status.code == Status.VERIFICATION_FAILED
    assert "from the target" in report.status.message
    assert 0.004 < report.position_error < 0.006  # 0.5 m from the axis
    assert not world.sent
