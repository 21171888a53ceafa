"""Messages of any size."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from kinopt_msgs.msg import CollisionObject, SceneOperation, SceneUpdate, Shape, Waypoint
from kinopt_msgs.srv import PlanTrajectory, SolveIK
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.scheduler import QueueFullError
from kinopt_ros.ros.messages.sizes import MOST_LISTED, Room, _lists, check_lengths, let_go, weight


def test_a_refused_message_is_emptied_in_pieces() -> None:
    request = SolveIK.Request(poses=[Pose() for _ in range(2500)], tip_links=["a"], seeds=[1.0])
    let_go(request)
    assert request.poses == []
    assert request.tip_links == []
    assert list(request.seeds) == []


def test_what_somebody_looks_at_in_an_array_stays() -> None:
    request = SolveIK.Request(seeds=[1.0, 2.0])
    seeds = np.asarray(request.seeds)
    let_go(request)
    assert seeds.tolist() == [1.0, 2.0]


def test_texts_and_what_entries_of_lists_hold_too() -> None:
    shape = Shape(type="mesh", points=[0.0] * 3, resource="x" * 100)
    operation = SceneOperation(object=CollisionObject(id="mug", shapes=[shape]), names=["a"])
    update = SceneUpdate(operations=[operation], expected_version=7)
    let_go(update)
    assert (operation.object.id, operation.object.shapes, operation.names) == ("", [], [])
    assert (shape.type, len(shape.points), shape.resource) == ("", 0, "")
    assert update == SceneUpdate(expected_version=7)


def test_lists_of_nested_messages_too() -> None:
    request = SolveIK.Request(state=JointState(name=["a"] * 2500, position=[0.0] * 2500))
    let_go(request)
    assert request.state.name == []


def test_what_is_too_long_is_named_with_what_is_allowed() -> None:
    poses = SolveIK.Request(poses=[Pose()] * (MOST_LISTED + 1))
    with pytest.raises(InvalidRequestError, match=r"10001 poses were given; allowed are at most 10000$"):
        check_lengths(poses, 100)
    with pytest.raises(InvalidRequestError, match=r"at most 10000 \(parameter max_batch\)"):
        check_lengths(poses, 10_000)
    check_lengths(poses, 20_000)
    names = SolveIK.Request(state=JointState(name=["a"] * (MOST_LISTED + 1)))
    with pytest.raises(InvalidRequestError, match="10001 name were given"):
        check_lengths(names, 1)


def test_arrays_of_numbers_may_be_long() -> None:
    check_lengths(SolveIK.Request(seeds=[0.0] * 100_000), 1)
    received = deserialize_message(serialize_message(SolveIK.Request(seeds=[0.0] * 100_000)), SolveIK.Request)
    check_lengths(received, 1)


def test_lists_in_entries_of_lists_are_looked_at() -> None:
    shapes = SceneUpdate(operations=[SceneOperation(object=CollisionObject(shapes=[Shape()] * 10_001))])
    with pytest.raises(InvalidRequestError, match="10001 shapes were given"):
        check_lengths(shapes, 1)
    poses = PlanTrajectory.Request(waypoints=[Waypoint(poses=[Pose()] * 10_001)])
    with pytest.raises(InvalidRequestError, match="10001 poses were given"):
        check_lengths(poses, 1)
    goals = PlanTrajectory.Request(waypoints=[Waypoint(poses=[Pose()] * 10_000)] * 21)
    with pytest.raises(InvalidRequestError, match="more than 200000 entries together"):
        check_lengths(goals, 1)
    assert check_lengths(PlanTrajectory.Request(waypoints=[Waypoint(poses=[Pose()] * 3)] * 2), 1) == 8


def test_the_weight_is_about_the_memory() -> None:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    operations = [SceneOperation(object=CollisionObject(shapes=[Shape()])) for _ in range(100)]
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    update = SceneUpdate(operations=operations)
    assert taken / 5 < weight(update, 10**9) < taken * 5  # some of it was memory that Python had at hand
    operations[0].object.id = "x" * 1_000_000
    operations[1].object.shapes[0].points = [0.0] * 100_000
    assert weight(update, 10**9) > 1_800_000
    operations[2].names = ["x" * 1_000_000] * 2
    assert weight(update, 10**9) > 3_800_000
    assert weight(update, 10_000) < 1_000_000  # no longer than it matters


def test_requests_that_wait_have_room_for_so_many_entries() -> None:
    room = Room(most=10)
    room.take(1000)  # alone
    with pytest.raises(QueueFullError, match="1000 entries, and those of this one 1; allowed are 10"):
        room.take(1)
    room.leave(1000)
    room.take(6)
    room.take(4)
    with pytest.raises(QueueFullError):
        room.take(1)
    room.take(0)  # small ones are bounded by the queue
    room.leave(6)
    room.take(5)


@pytest.mark.parametrize(
    ("message", "names"),
    [
        (SolveIK.Request(tip_links=["a"], seeds=[1.0]), ["tip_links"]),
        (SolveIK.Request(state=JointState(name=["a", "b"])), ["name"]),
        (
            SceneUpdate(operations=[SceneOperation(object=CollisionObject(shapes=[Shape()]))]),
            ["operations", "shapes"],
        ),
        (Pose(), []),
        (SolveIK.Request(), []),
    ],
)
def test_every_list_counts_once_at_any_depth(message: Any, names: list[str]) -> None:
    assert [name for name, _ in _lists(message)] == names
    assert check_lengths(message, 1) == sum(len(values) for _, values in _lists(message))


def test_a_message_of_a_single_list_is_looked_at() -> None:
    assert weight(String(data="x" * 1000), 10_000) == 1000
    assert [name for name, _ in _lists(SceneUpdate(operations=[SceneOperation()]))] == ["operations"]
