"""The longest unused ones go first."""

from kinopt_ros.solvers.lru import LruCache


def test_the_longest_unused_one_goes_first() -> None:
    recent: LruCache[str, int] = LruCache(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert [key in recent for key in "abc"] == [True, False, True]
    assert recent.get("b") is None
    assert len(recent) == 2


def test_to_put_is_to_use() -> None:
    recent: LruCache[str, int] = LruCache(2)
    recent.put("a", 1)
    recent.put("b", 2)
    recent.put("a", 3)
    recent.put("c", 4)
    assert recent.get("a") == 3
    assert "b" not in recent


def test_to_ask_whether_there_is_one_is_not_to_use_it() -> None:
    recent: LruCache[str, int] = LruCache(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert "a" in recent
    recent.put("c", 3)
    assert "a" not in recent


def test_clear() -> None:
    recent: LruCache[str, int] = LruCache(2)
    recent.put("a", 1)
    recent.clear()
    assert len(recent) == 0
    assert recent.get("a") is None
