"""~/markers: who gets what."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.topics import markers
from kinopt_ros.scene.scene import EMPTY_SCENE


class AtOnce:
    """Does work on the thread that asks for it."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    def submit(self, work: Callable[[], None]) -> None:
        work()


def test_one_that_comes_while_another_goes_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_robot("panda")
    listeners = [frozenset([b"one"])]
    sent: list[set[str]] = []
    timer: list[Callable[[], None]] = []

    def publish(array: Any) -> None:
        sent.append({marker.ns.split("/")[0] for marker in array.markers})

    context: Any = SimpleNamespace(
        node=SimpleNamespace(create_timer=lambda seconds, look: timer.append(look), get_logger=lambda: None),
        loader=SimpleNamespace(is_ready=True),
        loaded=SimpleNamespace(model=robot),
        scene=SimpleNamespace(of=lambda robot: EMPTY_SCENE),
        joint_states=SimpleNamespace(
            of=lambda robot: SimpleNamespace(q=robot.default_q, known=np.zeros(robot.nq, dtype=bool))
        ),
    )
    publisher = SimpleNamespace(
        publish=publish, topic_name="markers", get_subscription_count=lambda: len(listeners[0])
    )
    monkeypatch.setattr(markers, "ThreadPoolExecutor", AtOnce)
    monkeypatch.setattr(markers, "listeners_of", lambda node, topic: listeners[0])
    monkeypatch.setattr("kinopt_ros.ros.serving.newcomers.AGAIN", (0.0,))
    markers.MarkersTopic(context, publisher)
    [look] = timer
    for present in (b"one", b"two"):
        listeners[0] = frozenset([present])
        sent.clear()
        look()
        assert "spheres" in set().union(*sent), f"{present!r} was not sent all"
        sent.clear()
        look()
        assert not sent, "what is known was sent again"
