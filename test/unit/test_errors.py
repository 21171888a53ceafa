"""Messages show what was given, cut to a length that a person reads."""

from kinopt_ros.errors import InvalidRequestError, UnknownLinkError, quoted, shortened, shown


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
