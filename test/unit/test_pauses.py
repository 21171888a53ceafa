"""Steps that hold Python's lock for long wait until no robot moves."""

import pytest

from kinopt_ros.pauses import begin_to_look, end_to_look, wait_until_nothing_moves


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
