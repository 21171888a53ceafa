"""The bookkeeping of interactive markers, without nodes."""

from typing import Any

import pytest
from geometry_msgs.msg import Point, Pose, Quaternion
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerFeedback,
    InteractiveMarkerUpdate,
)
from visualization_msgs.srv import GetInteractiveMarkers

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.ros.rviz.server import HELD_SECONDS, MarkerServer


class World:
    """A server, what it has sent, and a clock."""

    def __init__(self) -> None:
        self.sent: list[InteractiveMarkerUpdate] = []
        self.now = 100.0
        self.server = MarkerServer(self.sent.append, lambda: self.now)

    def add(self, *names: str) -> None:
        for name in names:
            self.server.set(marker(name))
        self.server.apply()

    def all(self) -> Any:
        return self.server.answer(GetInteractiveMarkers.Response())


def marker(name: str, x: float = 0.0) -> InteractiveMarker:
    made = InteractiveMarker(name=name, pose=at(x))
    made.header.frame_id = "base"
    return made


def at(x: float, w: float = 1.0) -> Pose:
    return Pose(position=Point(x=x), orientation=Quaternion(w=w))


def feedback(name: str = "a", client: str = "rviz", x: float = 0.0, **fields: Any) -> Any:
    given = {"event_type": InteractiveMarkerFeedback.POSE_UPDATE, "pose": at(x), **fields}
    message = InteractiveMarkerFeedback(marker_name=name, client_id=client, **given)
    message.header.frame_id = "base"
    return message


@pytest.fixture
def world() -> World:
    return World()


def test_nothing_is_sent_before_it_is_applied(world: World) -> None:
    world.server.set(marker("a"))
    assert not world.sent
    assert not world.all().markers
    assert world.server.changed
    world.server.apply()
    assert [one.name for one in world.sent[0].markers] == ["a"]
    assert world.sent[0].type == InteractiveMarkerUpdate.UPDATE
    assert not world.server.changed


def test_numbers_rise_by_one_and_the_answer_has_the_last(world: World) -> None:
    assert world.all().sequence_number == 0
    for k in range(5):
        world.add(f"m{k}")
        world.server.apply()  # nothing has changed: no update
        assert world.all().sequence_number == k + 1
    assert [update.seq_num for update in world.sent] == [1, 2, 3, 4, 5]


def test_a_move_is_a_pose_and_a_change_a_marker(world: World) -> None:
    world.add("a", "b")
    assert world.server.move("a", at(1.0))
    world.server.set(marker("b", 2.0))
    world.server.apply()
    update = world.sent[-1]
    assert [(one.name, one.pose.position.x, one.header.frame_id) for one in update.poses] == [
        ("a", 1.0, "base")
    ]
    assert [(one.name, one.pose.position.x) for one in update.markers] == [("b", 2.0)]
    assert {one.name: one.pose.position.x for one in world.all().markers} == {"a": 1.0, "b": 2.0}


def test_the_newest_of_several_moves_counts(world: World) -> None:
    world.add("a")
    for x in (1.0, 2.0, 3.0):
        world.server.move("a", at(x))
    world.server.apply()
    assert [one.pose.position.x for one in world.sent[-1].poses] == [3.0]
    assert world.sent[-1].seq_num == 2


def test_a_new_marker_that_is_moved_is_sent_once(world: World) -> None:
    world.server.set(marker("a"))
    world.server.move("a", at(4.0))
    world.server.apply()
    assert [one.pose.position.x for one in world.sent[0].markers] == [4.0]
    assert not world.sent[0].poses


def test_erasing(world: World) -> None:
    world.add("a", "b")
    assert world.server.erase("a")
    assert not world.server.move("a", at(1.0))
    assert not world.server.erase("a")
    assert not world.server.erase("nobody")
    assert world.server.names() == ["b"]
    world.server.apply()
    assert world.sent[-1].erases == ["a"]
    assert [one.name for one in world.all().markers] == ["b"]
    world.server.set(marker("c"))
    world.server.erase("c")  # never shown: nothing to tell
    world.server.apply()
    assert world.all().sequence_number == 2


def test_a_marker_that_comes_back_before_it_is_gone(world: World) -> None:
    world.add("a")
    world.server.erase("a")
    world.server.set(marker("a", 5.0))
    world.server.apply()
    assert not world.sent[-1].erases
    assert world.sent[-1].markers[0].pose.position.x == 5.0


def test_what_was_given_or_got_may_change_afterwards(world: World) -> None:
    given = marker("a")
    world.server.set(given)
    given.name, given.pose.position.x = "changed", 9.0
    world.server.apply()
    got = world.all().markers[0]
    got.pose.position.x = 9.0
    assert [(one.name, one.pose.position.x) for one in world.all().markers] == [("a", 0.0)]


def test_feedback_moves_the_marker_for_everybody(world: World) -> None:
    world.add("a", "b")
    world.server.take(feedback(x=1.5))
    world.server.apply()
    assert [(one.name, one.pose.position.x) for one in world.sent[-1].poses] == [("a", 1.5)]
    for kind in (0, 2, 3, 4, 5):  # none of the others does
        world.server.take(feedback(x=7.0, event_type=kind))
    assert not world.server.changed


def test_a_quaternion_that_is_nearly_of_unit_length_is_made_one(world: World) -> None:
    world.add("a")
    given = feedback(pose=at(0.0, w=1.05))
    world.server.take(given)
    assert given.pose.orientation.w == 1.0


def test_a_marker_is_the_clients_that_moves_it(world: World) -> None:
    world.add("a", "b")
    world.server.take(feedback(client="one", x=1.0))
    world.server.take(feedback("b", client="two", x=2.0))
    with pytest.raises(InvalidRequestError, match="moved by client 'one'"):
        world.server.take(feedback(client="two", x=3.0))
    world.server.take(feedback(client="two", event_type=2), shared=True)
    world.now += 0.9 * HELD_SECONDS
    world.server.take(feedback(client="one", event_type=InteractiveMarkerFeedback.KEEP_ALIVE))
    world.now += 0.9 * HELD_SECONDS
    with pytest.raises(InvalidRequestError, match="moved by client 'one'"):
        world.server.take(feedback(client="two", x=3.0))
    world.now += 0.2 * HELD_SECONDS
    world.server.take(feedback(client="two", x=3.0))
    with pytest.raises(InvalidRequestError, match="moved by client 'two'"):
        world.server.take(feedback(client="one", x=1.0))


def test_who_replaces_a_marker_leaves_it_to_who_drags_it(world: World) -> None:
    world.add("a")
    world.server.take(feedback(client="one"))
    world.add("a")
    with pytest.raises(InvalidRequestError, match="moved by client 'one'"):
        world.server.take(feedback(client="two"))


NAN, LONG = float("nan"), "x" * 2000


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (feedback("b"), "there is no marker 'b'; there are a"),
        (feedback(LONG), "2000 characters"),
        (feedback(client=LONG), "2000 characters"),
        (feedback(control_name=LONG), "2000 characters"),
        (feedback(event_type=6), "event_type is 6; allowed is 0 to 5"),
        (feedback(x=NAN), "not finite"),
        (feedback(x=float("inf")), "not finite"),
        (feedback(pose=at(0.0, w=NAN)), "not finite"),
        (feedback(pose=at(0.0, w=0.0)), "length 0"),
        (feedback(pose=at(0.0, w=2.0)), "length 2"),
        (feedback(x=1e5), "at most 10000 m"),
    ],
)
def test_bad_feedback_changes_nothing(world: World, bad: Any, said: str) -> None:
    world.add("a")
    with pytest.raises(InvalidRequestError, match=said):
        world.server.take(bad)
    assert not world.server.changed
    world.server.take(feedback(client="another"))  # nor is the marker anybody's


def test_other_frames_are_refused_and_none_is_its_own(world: World) -> None:
    world.add("a")
    given = feedback()
    given.header.frame_id = "map"
    with pytest.raises(InvalidRequestError, match="frame 'map'; allowed is its own one, 'base'"):
        world.server.take(given)
    given.header.frame_id = ""
    world.server.take(given)


def test_feedback_about_a_marker_that_goes_is_refused(world: World) -> None:
    world.add("a")
    world.server.erase("a")
    with pytest.raises(InvalidRequestError, match="no marker 'a'"):
        world.server.take(feedback())
