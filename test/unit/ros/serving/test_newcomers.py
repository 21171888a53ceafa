"""Who joins late."""

from kinopt_ros.ros.serving.newcomers import AGAIN, Newcomers


def test_each_newcomer_counts_a_few_times() -> None:
    """Also one that comes while another one goes; it may not have heard the first time."""
    present, now = [frozenset([b"one"])], [0.0]
    newcomers = Newcomers(lambda: present[0], lambda: now[0])

    def due_at() -> list[float]:
        begin, found = now[0], []
        for k in range(100):
            now[0] = begin + k / 8
            if newcomers.are_due():
                found.append(k / 8)
        return found

    assert due_at() == list(AGAIN)
    assert due_at() == []
    present[0] = frozenset([b"two"])
    assert due_at() == list(AGAIN)
    present[0] = frozenset()
    assert due_at() == []


def test_many_newcomers_one_after_the_other() -> None:
    """Each gets everything at once, and what is due ends."""
    count, now = [0], [0.0]
    newcomers = Newcomers(lambda: frozenset([bytes([count[0]])]), lambda: now[0])
    for count[0] in range(100):
        assert newcomers.are_due()
    now[0] = 100.0
    assert newcomers.are_due()
    assert not newcomers.are_due()
