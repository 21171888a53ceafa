"""Answers that come later, from another thread: each exactly once, to whom they belong."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy")

from rclpy.serialization import serialize_message

from kinopt_msgs.msg import Status
from kinopt_msgs.srv import SolveIK
from kinopt_ros.ros.serving.deferred import Pending, create_deferred_service


class Node:
    """Gives services whose send_response writes down what rclpy would send."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, Any]] = []
        self.waiting: list[tuple[Any, Any]] = []
        """Requests behind the one that the executor takes, and their headers."""
        self.callback: Callable[[Any, Any], Any] | None = None

    def create_service(
        self, kind: Any, name: str, callback: Callable[[Any, Any], Any], **options: Any
    ) -> Any:
        node = self
        self.callback = callback

        class Handle:
            def __enter__(self) -> None:
                pass

            def __exit__(self, *error: object) -> None:
                pass

            def service_take_request(self, kind: Any) -> tuple[Any, Any]:
                return node.waiting.pop(0) if node.waiting else (None, None)

        class Service:
            handle = Handle()
            srv_type = SimpleNamespace(Request=object)

            def send_response(self, response: Any, header: Any) -> None:
                if hasattr(response, "get_fields_and_field_types"):
                    serialize_message(response)  # as rclpy does
                node.sent.append((response, header))

        return Service()


def ask(node: Node, service: Any, request: Any, header: Any) -> None:
    """Do what the executor does with a request."""
    assert node.callback is not None
    service.send_response(node.callback(request, object()), header)


@pytest.fixture
def begun() -> list[tuple[Any, Pending, bool]]:
    return []


@pytest.fixture
def serving(begun: list[tuple[Any, Pending, bool]]) -> tuple[Node, Any]:
    node = Node()
    service = create_deferred_service(
        node,  # type: ignore[arg-type]
        object,
        "~/s",
        lambda request, pending, alone: begun.append((request, pending, alone)),
    )
    return node, service


def test_an_answer_after_the_callback_goes_to_its_request(
    serving: tuple[Node, Any], begun: list[tuple[Any, Pending, bool]]
) -> None:
    node, service = serving
    for i in range(3):
        ask(node, service, f"request {i}", f"header {i}")
    assert node.sent == []
    for request, pending, _ in reversed(begun):
        pending.send(request.replace("request", "answer"))
    assert node.sent == [(f"answer {i}", f"header {i}") for i in (2, 1, 0)]


def test_requests_that_wait_are_taken_at_the_same_time(
    serving: tuple[Node, Any], begun: list[tuple[Any, Pending, bool]]
) -> None:
    node, service = serving
    ask(node, service, "request 0", "header 0")
    node.waiting = [(f"request {i}", f"header {i}") for i in (2, 3)]
    ask(node, service, "request 1", "header 1")
    assert [alone for _, _, alone in begun] == [True, False, False, False]
    for request, pending, _ in reversed(begun):
        pending.send(request.replace("request", "answer"))
    assert sorted(node.sent) == [(f"answer {i}", f"header {i}") for i in range(4)]


def test_a_flood_is_not_taken_in_one_go(
    serving: tuple[Node, Any], begun: list[tuple[Any, Pending, bool]]
) -> None:
    node, service = serving
    node.waiting = [(f"request {i}", f"header {i}") for i in range(1, 1000)]
    ask(node, service, "request 0", "header 0")
    assert 1 < len(begun) < 100


def test_an_answer_within_the_callback_waits_for_the_header() -> None:
    node = Node()
    service = create_deferred_service(
        node,  # type: ignore[arg-type]
        object,
        "~/s",
        lambda request, pending, alone: pending.send("at once"),
    )
    ask(node, service, "request", "header")
    assert node.sent == [("at once", "header")]


def test_each_empty_response_is_another_one() -> None:
    """Who fills one and fails sends another one, in which nothing is left of that."""
    made = SolveIK.Response()
    pending = Pending(made)
    first, second, third = (pending.response() for _ in range(3))
    assert first is made  # rclpy makes one for every request: that is enough for most answers
    first.joint_names = ["a"]
    assert second == third == SolveIK.Response()
    assert second is not third


def test_requests_that_wait_have_responses_of_their_own(
    serving: tuple[Node, Any], begun: list[tuple[Any, Pending, bool]]
) -> None:
    node, service = serving
    node.waiting = [("request 1", "header 1")]
    ask(node, service, "request 0", "header 0")
    assert len({id(response) for response in [pending.response() for _, pending, _ in begun]}) == 2


@pytest.mark.parametrize("at_once", [True, False])
def test_an_answer_with_a_text_that_cannot_be_sent_is_no_lost_one(at_once: bool) -> None:
    """A plugin may say anything; its client waited for ever, and the thread that sent it ended."""
    node = Node()
    begun: list[Pending] = []
    answer = SolveIK.Response(status=Status(message="\ud800"), messages=["\udfff", "ü"])

    def begin(request: Any, pending: Pending, alone: bool) -> None:
        begun.append(pending)
        if at_once:
            pending.send(answer)

    service = create_deferred_service(node, object, "~/s", begin)  # type: ignore[arg-type]
    ask(node, service, "request", "header")
    if not at_once:
        begun[0].send(answer)
    (sent, header) = node.sent[-1]
    assert header == "header"
    assert (sent.status.message, list(sent.messages)) == ("\\ud800", ["\\udfff", "ü"])
    serialize_message(sent)


def test_the_race_of_header_and_answer_sends_exactly_one() -> None:
    for i in range(300):
        sent: list[Any] = []
        pending = Pending(None)
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
