"""Messages show what was given, cut to a length that a person reads."""

from kinopt_ros.errors import (
    InvalidRequestError,
    UnknownLinkError,
    quoted,
    said_by,
    shortened,
    shown,
    writable,
)


def test_long_values_are_cut() -> None:
    assert len(quoted("x" * 10**6)) < 200
    assert len(shortened(["x" * 10**6] * 1000)) < 2000
    assert len(shown([["x" * 10**6] * 1000] * 1000)) < 200
    assert len(shown(dict.fromkeys(range(1000), "y" * 1000))) < 200
    assert shown(10**5000) == "a whole number of 16610 bits"
    assert quoted(5) == "5"
    quoted("a\ud800").encode()


def test_unknown_names_are_compared_and_listed_within_bounds() -> None:
    error = UnknownLinkError("l" * 100, [f"{'l' * 95}{i}" for i in range(100_000)])
    assert "did you mean" in str(error)
    assert len(str(error)) < 5_000
    assert "unknown link 5; known: a" in str(UnknownLinkError(5, ["a"]))


def test_no_message_is_endless() -> None:
    sentence = str(InvalidRequestError("x" * 10**6))
    assert len(sentence) < 5_000
    assert sentence.endswith("(1000000 characters)")


def test_every_message_can_be_sent() -> None:
    """ROS carries UTF-8: an answer with half of a surrogate pair was lost."""
    assert writable("grün\ud800") == "grün\\ud800"
    assert str(InvalidRequestError("\ud800")) == "\\ud800"


def test_any_exception_can_be_told() -> None:
    class Mute(BaseException):
        def __str__(self) -> str:
            raise OSError

    assert said_by(Mute()) == "Mute: it does not say why"
    assert said_by(KeyError("\ud800")) == "KeyError: '\\ud800'"
    assert said_by(InvalidRequestError("too many")) == "too many"
    assert len(said_by(ValueError("x" * 10**6))) < 5_000
