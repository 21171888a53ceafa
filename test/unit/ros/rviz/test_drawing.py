"""What is drawn beside the scene."""

from types import SimpleNamespace
from typing import Any

from visualization_msgs.msg import Marker

from kinopt_ros.ros.rviz.drawing import Drawing


class World:
    def __init__(self) -> None:
        self.listeners = 1
        self.sent: list[list[Any]] = []
        publisher = SimpleNamespace(
            publish=lambda array: self.sent.append(list(array.markers)),
            get_subscription_count=lambda: self.listeners,
        )
        self.drawing = Drawing(publisher)
        self.drawing.look()

    def keys(self) -> list[tuple[str, int, int]]:
        return [(marker.ns, marker.id, marker.action) for marker in self.sent[-1]]


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


def test_who_joins_late_gets_everything_once() -> None:
    world = World()
    world.listeners = 0
    world.drawing.look()
    world.drawing.draw({"a": [Marker(), Marker()], "b": [Marker()]})
    world.drawing.draw({"a": [Marker()]})
    assert not world.sent
    assert not world.drawing.heard
    world.listeners = 1
    world.drawing.look()
    assert sorted(world.keys()) == [("a", 0, Marker.ADD), ("b", 0, Marker.ADD)]
    world.drawing.look()
    assert len(world.sent) == 1
    world.listeners = 2
    world.drawing.look()
    assert len(world.sent) == 2
