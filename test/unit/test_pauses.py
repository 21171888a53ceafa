"""Steps that hold Python's lock for long wait until no robot moves; long work waits while a robot is stopped."""

import threading

import pytest

from kinopt_ros import pauses
from kinopt_ros.pauses import begin_to_look, end_to_look, give_way, urgent, wait_until_nothing_moves


def test_it_is_waited_until_no_robot_moves() -> None:
    looks: list[bool] = []

    def moves() -> bool:
        looks.append(len(looks) < 3)
        return looks[-1]

    begin_to_look(moves)
    try:
        assert wait_until_nothing_moves(60.0, look=0.0)
        assert looks == [True, True, True, False]
    finally:
        end_to_look(moves)


def test_a_robot_that_moves_for_ever_is_not_waited_for() -> None:
    moves = lambda: True  # noqa: E731
    begin_to_look(moves)
    assert not wait_until_nothing_moves(0.0)
    end_to_look(moves)
    assert wait_until_nothing_moves(0.0)
    end_to_look(moves)  # nothing happens


def test_programs_are_not_serialized_while_a_robot_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """To serialize one took up to 166 ms, in which no emergency stop was heard."""
    pytest.importorskip("jax")
    from kinopt_ros.solvers.jax_lm import programs

    monkeypatch.setattr(programs, "PATIENCE", 0.0)
    monkeypatch.setattr(programs.serialize_executable, "serialize", lambda program: pytest.fail("serialized"))
    moves = lambda: True  # noqa: E731
    begin_to_look(moves)
    try:
        programs._save(None, "name", None)  # type: ignore[arg-type]
    finally:
        end_to_look(moves)


def works_beside() -> tuple[threading.Thread, threading.Event]:
    """A thread that works until its next pause, and what it sets after that."""
    went_on = threading.Event()

    def work() -> None:
        give_way()
        went_on.set()

    thread = threading.Thread(target=work)
    thread.start()
    return thread, went_on


def test_work_gives_way_to_what_is_urgent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pauses, "GIVES_WAY", 60.0)
    with urgent():
        with urgent():  # a brake within a stop
            thread, went_on = works_beside()
        give_way()  # not to itself
        assert not went_on.wait(0.05)
    assert went_on.wait(60.0)
    thread.join()
    give_way()


def test_work_gives_way_to_all_that_is_urgent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop of the node's own and an emergency come on different threads."""
    monkeypatch.setattr(pauses, "GIVES_WAY", 60.0)
    begun, may_end = threading.Event(), threading.Event()

    def stops() -> None:
        with urgent():
            begun.set()
            may_end.wait(60.0)

    other = threading.Thread(target=stops)
    other.start()
    assert begun.wait(60.0)
    with urgent():
        thread, went_on = works_beside()
    assert not went_on.wait(0.05)
    may_end.set()
    assert went_on.wait(60.0)
    for one in (thread, other):
        one.join()


def test_work_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is urgent may wait for it."""
    monkeypatch.setattr(pauses, "GIVES_WAY", 0.01)
    with urgent():
        thread, went_on = works_beside()
        assert went_on.wait(60.0)
    thread.join()
