"""The bundled Panda: figures of the manufacturer, frames of the published description, honest SRDF."""

import xml.etree.ElementTree as ET
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import kinopt_ros
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import installed_robots, load_robot

FOLDER = Path(kinopt_ros.__file__).parent / "assets" / "panda"
URDF, SRDF = FOLDER / "panda.urdf", FOLDER / "panda.srdf"
LIMITS = Path(kinopt_ros.__file__).parent / "assets" / "panda" / "joint_limits.yaml"
ARM = tuple(f"panda_joint{i}" for i in range(1, 8))
READY = np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4])
SHAPED = [*(f"panda_link{i}" for i in range(8)), "panda_hand", "panda_leftfinger", "panda_rightfinger"]


@pytest.fixture(scope="module")
def panda() -> RobotModel:
    return load_robot("panda")


def test_limits_are_the_manufacturers(panda: RobotModel) -> None:
    # FCI documentation, "Limits in joint space", typed in anew.
    lower = [-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973]
    upper = [2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973]
    robot = apply_joint_limits(panda, yaml.safe_load(LIMITS.read_text())["joint_limits"])
    arm = [robot.variable_index[name] for name in ARM]
    np.testing.assert_array_equal(robot.limits.lower[arm], lower)
    np.testing.assert_array_equal(robot.limits.upper[arm], upper)
    np.testing.assert_array_equal(robot.limits.velocity[arm], [2.175] * 4 + [2.61] * 3)
    np.testing.assert_array_equal(robot.limits.acceleration[arm], [15, 7.5, 10, 12.5, 15, 20, 20])
    np.testing.assert_array_equal(robot.limits.jerk[arm], [7500, 3750, 5000, 6250, 7500, 10000, 10000])
    finger = robot.variable_index["panda_finger_joint1"]
    assert (robot.limits.lower[finger], robot.limits.upper[finger]) == (0.0, 0.04)
    efforts = [float(x.attrib["effort"]) for x in ET.parse(URDF).iterfind("joint[@type='revolute']/limit")]
    assert efforts == [87.0] * 4 + [12.0] * 3


def test_frames_follow_the_published_dh_parameters(panda: RobotModel) -> None:
    # a, d, alpha (Craig): the same page, table of Denavit-Hartenberg parameters; flange d = 0.107.
    table = [
        (0.0, 0.333, 0.0),
        (0.0, 0.0, -np.pi / 2),
        (0.0, 0.316, np.pi / 2),
        (0.0825, 0.0, np.pi / 2),
        (-0.0825, 0.384, -np.pi / 2),
        (0.0, 0.0, np.pi / 2),
        (0.088, 0.0, np.pi / 2),
        (0.0, 0.107, 0.0),
    ]
    rng = np.random.default_rng(0)
    q = np.zeros(panda.nq)
    arm = [panda.variable_index[name] for name in ARM]
    for _ in range(20):
        q[arm] = rng.uniform(panda.limits.lower[arm], panda.limits.upper[arm])
        T = np.eye(4)
        for (a, d, alpha), theta in zip(table, [*q[arm], 0.0], strict=True):
            ca, sa, ct, stheta = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
            T = T @ np.array(
                [
                    [ct, -stheta, 0, a],
                    [stheta * ca, ct * ca, -sa, -d * sa],
                    [stheta * sa, ct * sa, ca, d * ca],
                    [0, 0, 0, 1],
                ]
            )
        links = ("panda_link8", "panda_hand", "panda_hand_tcp")
        flange, hand, tcp = forward_kinematics(panda, q[None], links)[0]
        np.testing.assert_allclose(flange, T, atol=1e-12)
        half = np.sqrt(0.5)
        turn = np.array([[half, half, 0, 0], [-half, half, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
        np.testing.assert_allclose(hand, T @ turn, atol=1e-12)
        np.testing.assert_allclose(tcp[:3, 3], hand[:3, 3] + 0.1034 * hand[:3, 2], atol=1e-12)


def test_groups_and_states(panda: RobotModel) -> None:
    arm = panda.group("panda_arm")
    assert (arm.base_link, arm.tip_link) == ("panda_link0", "panda_link8")
    assert arm.joints == ARM
    assert panda.group("hand").joints == ("panda_finger_joint1",)
    assert panda.group("panda_arm_hand").joints == (*ARM, "panda_finger_joint1")
    for state in ("ready", "home"):
        np.testing.assert_array_equal([arm.states[state][name] for name in ARM], READY)
    states = panda.group("hand").states
    assert states["open"] == {"panda_finger_joint1": 0.04}
    assert states["close"] == {"panda_finger_joint1": 0.0}
    assert panda.joint("panda_finger_joint2").mimics == "panda_finger_joint1"
    assert panda.virtual_joint is not None
    assert (panda.virtual_joint.parent_frame, panda.virtual_joint.child_link) == ("world", "panda_link0")
    assert [effector.parent_link for effector in panda.end_effectors] == ["panda_link8"]
    assert panda.warnings == ()


def test_files_need_nothing_else() -> None:
    root = ET.parse(URDF).getroot()
    assert not root.findall(".//mesh")
    shapes = {link.attrib["name"]: link for link in root.iterfind("link")}
    for name in SHAPED:
        drawn, solid = (
            [ET.tostring(shape[0]) for shape in shapes[name].iterfind(f"{kind}/geometry")]
            for kind in ("visual", "collision")
        )
        assert drawn == solid
        assert drawn


@pytest.fixture(scope="module")
def pinocchio() -> Any:
    return pytest.importorskip("pinocchio")


@pytest.mark.peers
def test_all_frames_agree_with_example_robot_data(pinocchio: Any) -> None:
    published = installed_robots().get("panda")
    if published is None:
        pytest.skip("example-robot-data is not installed")
    ours, theirs = (pinocchio.buildModelFromUrdf(str(path), mimic=True) for path in (URDF, published))
    ours_data, theirs_data = ours.createData(), theirs.createData()
    np.testing.assert_array_equal(ours.lowerPositionLimit, theirs.lowerPositionLimit)
    np.testing.assert_array_equal(ours.upperPositionLimit, theirs.upperPositionLimit)
    rng = np.random.default_rng(0)
    for _ in range(100):
        q = rng.uniform(ours.lowerPositionLimit, ours.upperPositionLimit)
        pinocchio.framesForwardKinematics(ours, ours_data, q)
        pinocchio.framesForwardKinematics(theirs, theirs_data, q)
        for name in (*SHAPED, "panda_link8", "panda_hand_tcp"):
            T_ours = ours_data.oMf[ours.getFrameId(name)].homogeneous
            T_theirs = theirs_data.oMf[theirs.getFrameId(name)].homogeneous
            np.testing.assert_allclose(T_ours, T_theirs, atol=1e-9)


class Collisions:
    """Finds which pairs of links touch, judged by Coal."""

    def __init__(self, pinocchio: Any) -> None:
        self.pin = pinocchio
        self.model = pinocchio.buildModelFromUrdf(str(URDF), mimic=True)
        self.data = self.model.createData()
        kind = pinocchio.GeometryType.COLLISION
        self.geometry = pinocchio.buildGeomFromUrdf(self.model, str(URDF), kind)
        shapes = defaultdict(list)
        for i, shape in enumerate(self.geometry.geometryObjects):
            shapes[self.model.frames[shape.parentFrame].name].append(i)
        assert set(shapes) == set(SHAPED)
        self.owner = []
        for one, two in combinations(SHAPED, 2):
            for i in shapes[one]:
                for j in shapes[two]:
                    self.geometry.addCollisionPair(pinocchio.CollisionPair(i, j))
                    self.owner.append(frozenset((one, two)))
        self.geometry_data = self.geometry.createData()

    def touching(self, q: np.ndarray) -> set[frozenset[str]]:
        self.pin.forwardKinematics(self.model, self.data, q)
        self.pin.updateGeometryPlacements(self.model, self.data, self.geometry, self.geometry_data)
        self.pin.computeCollisions(self.geometry, self.geometry_data, False)
        results = self.geometry_data.collisionResults
        return {owner for k, owner in enumerate(self.owner) if results[k].isCollision()}


@pytest.mark.peers
def test_disabled_collisions_are_those_that_never_or_always_happen(pinocchio: Any) -> None:
    pytest.importorskip("coal")
    reasons = {
        frozenset((pair.attrib["link1"], pair.attrib["link2"])): pair.attrib["reason"]
        for pair in ET.parse(SRDF).iterfind("disable_collisions")
    }
    collisions = Collisions(pinocchio)
    low, high = collisions.model.lowerPositionLimit, collisions.model.upperPositionLimit
    rng = np.random.default_rng(1)
    neighbours = {pair for pair, reason in reasons.items() if reason == "Adjacent"}
    seen: set[frozenset[str]] = set()
    for _ in range(400):
        touching = collisions.touching(rng.uniform(low, high))
        # Neighbours overlap at their common joint; the fingers slide out of the hand's shapes now and then.
        assert {pair for pair in neighbours if "finger" not in str(pair)} <= touching
        seen |= touching
    never = {pair for pair, why in reasons.items() if why == "Never"}
    # The README says why this pair is disabled although its simple shapes overlap.
    assert never & seen <= {frozenset(("panda_link5", "panda_link7"))}
    # Nothing that can be told apart by sampling is left enabled without having been seen to touch.
    assert seen - set(reasons)
    assert frozenset(("panda_hand", "panda_link0")) not in reasons
    for finger in (0.0, 0.04):
        assert collisions.touching(np.append(READY, finger)) <= set(reasons)
