"""Answers that come later, from another thread: each exactly once, to whom they belong."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("rclpy")

from kinopt_ros.ros.deferred import Pending, create_deferred_service


class Node:
    """Gives services whose send_response writes down what rclpy would send."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any]] = []
        self.callback: Callable[[Any, Any], Any] | None = None

    def create_service(
        self, kind: Any, name: str, callback: Callable[[Any, Any], Any], **options: Any
    ) -> Any:
        node = self
        self.callback = callback

        class Service:
            def send_response(self, response: Any, header: Any) -> None:
                node.sent.append((response, header))

        return Service()


def ask(node: Node, service: Any, request: Any, header: Any) -> None:
    """What the executor does with a request."""
    assert node.callback is not None
    service.send_response(node.callback(request, object()), header)


@pytest.fixture
def begun() -> list[tuple[Any, Pending]]:
    return []


@pytest.fixture
def serving(begun: list[tuple[Any, Pending]]) -> tuple[Node, Any]:
    node = Node()
    service = create_deferred_service(
        node,  # type: ignore[arg-type]
        object,
        "~/s",
        lambda request, pending: begun.append((request, pending)),
    )
    return node, service


def test_an_answer_after_the_callback_goes_to_its_request(
    serving: tuple[Node, Any], begun: list[tuple[Any, Pending]]
) -> None:
    node, service = serving
    for i in range(3):
        ask(node, service, f"request {i}", f"header {i}")
    assert node.sent == []
    for request, pending in reversed(begun):
        pending.send(request.replace("request", "answer"))
    assert node.sent == [(f"answer {i}", f"header {i}") for i in (2, 1, 0)]


def test_an_answer_within_the_callback_waits_for_the_header() -> None:
    node = Node()
    service = create_deferred_service(
        node,  # type: ignore[arg-type]
        object,
        "~/s",
        lambda request, pending: pending.send("at once"),
    )
    ask(node, service, "request", "header")
    assert node.sent == [("at once", "header")]


def test_the_race_of_header_and_answer_sends_exactly_one() -> None:
    for i in range(300):
        sent: list[Any] = []
        pending = Pending()
        start = threading.Barrier(2)

        def answer(pending: Pending = pending, start: threading.Barrier = start) -> None:
            start.wait()
            pending.send("answer")

        thread = threading.Thread(target=answer)
        thread.start()
        start.wait()
        if i % 3:
            time.sleep(0.0)
        pending.bind(sent.append)
        thread.join()
        assert sent == ["answer"]
