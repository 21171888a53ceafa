"""What is drawn beside the scene."""

from types import SimpleNamespace
from typing import Any

from visualization_msgs.msg import Marker

from kinopt_ros.ros.rviz.drawing import Drawing


class World:
    def __init__(self) -> None:
        self.listeners = frozenset([b"one"])
        self.now = 0.0
        self.sent: list[list[Any]] = []
        publisher = SimpleNamespace(publish=lambda array: self.sent.append(list(array.markers)))
        self.drawing = Drawing(publisher, lambda: self.listeners, lambda: self.now)

    def keys(self) -> list[tuple[str, int, int]]:
        return [(marker.ns, marker.id, marker.action) for marker in self.sent[-1]]

    def look(self) -> int:
        """Look; return how often everything was sent."""
        before = len(self.sent)
        self.drawing.look()
        return len(self.sent) - before


def test_fewer_markers_delete_the_others() -> None:
    world = World()
    world.drawing.draw({"a": [Marker(), Marker(), Marker()], "b": [Marker()]})
    assert world.keys() == [
        ("a", 0, Marker.ADD),
        ("a", 1, Marker.ADD),
        ("a", 2, Marker.ADD),
        ("b", 0, Marker.ADD),
    ]
    world.drawing.draw({"a": [Marker()]})
    assert world.keys() == [("a", 1, Marker.DELETE), ("a", 2, Marker.DELETE), ("a", 0, Marker.ADD)]
    world.drawing.draw({"a": (), "nothing": ()})
    assert world.keys() == [("a", 0, Marker.DELETE)]
    sent = len(world.sent)
    world.drawing.draw({"a": ()})  # it is not there
    assert len(world.sent) == sent
    world.drawing.clear()
    assert world.keys() == [("b", 0, Marker.DELETE)]


def test_who_joins_late_gets_everything_a_few_times() -> None:
    world = World()
    world.drawing.draw({"a": [Marker(), Marker()], "b": [Marker()]})
    world.drawing.draw({"a": [Marker()]})
    assert world.look() == 1
    assert sorted(world.keys()) == [("a", 0, Marker.ADD), ("b", 0, Marker.ADD)]
    assert world.look() == 0
    world.now = 1.0  # it may not have heard the first one
    assert world.look() == 1
    assert world.look() == 0
    world.now = 100.0
    assert world.look() == 1
    world.now = 200.0
    assert world.look() == 0
    world.listeners = frozenset([b"two"])  # one has come while another one went
    assert world.look() == 1
    world.listeners = frozenset()
    world.now = 300.0
    assert world.look() == 1
    assert world.look() == 0


def test_nothing_drawn_is_not_sent() -> None:
    assert World().look() == 0
