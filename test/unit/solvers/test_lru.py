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


def test_what_is_heavy_makes_others_go_but_a_few_stay() -> None:
    recent: LruCache[str, int] = LruCache(10, heaviest=10.0, fewest=2)
    assert [recent.put(key, 1, 4.0) for key in "abc"] == [0, 0, 1]
    assert "a" not in recent
    assert recent.get("b") == 1
    assert recent.put("d", 1, 1.0) == 0
    assert recent.put("e", 1, 3.0) == 1  # and no more, as 8 are left
    assert [key in recent for key in "bcde"] == [True, False, True, True]
    assert recent.weigh("e", 100.0) == 1
    assert [key in recent for key in "bde"] == [False, True, True]
    assert recent.weigh("nobody", 1e9) == 0
    assert recent.take_all() == {"d": 1, "e": 1}
    assert len(recent) == 0
    assert recent.put("f", 1, 9.0) == 0


def test_one_that_is_forgotten_weighs_nothing() -> None:
    cache: LruCache[str, int] = LruCache(8, heaviest=3.0)
    cache.put("a", 1, 2.0)
    cache.pop("a")
    cache.pop("b")  # there was none
    assert "a" not in cache
    assert cache.put("c", 3, 1.0) + cache.put("d", 4, 2.0) == 0
