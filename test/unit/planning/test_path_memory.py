"""Configurations of earlier answers."""

import numpy as np

from kinopt_ros.planning.path_memory import CAPACITY, PathMemory


def test_the_least_detour_comes_first() -> None:
    memory = PathMemory()
    variables = np.array([0, 1])
    assert memory.near(np.zeros(3), np.ones(3), variables, 3).shape == (0, 2)
    for height in (5.0, 1.0, 3.0):
        path = np.stack([np.linspace(0.0, 1.0, 9), np.full(9, height), np.zeros(9)], axis=1)
        memory.add(path)
    found = memory.near(np.zeros(3), np.array([1.0, 0.0, 0.0]), variables, 4)
    np.testing.assert_array_equal(found[:, 1], [1.0, 1.0, 1.0, 3.0])
    assert found[0, 0] == 0.5


def test_it_does_not_grow_without_end() -> None:
    memory = PathMemory()
    for _ in range(CAPACITY):
        memory.add(np.zeros((5, 2)))
    assert len(memory.near(np.zeros(2), np.ones(2), np.array([0, 1]), 10 * CAPACITY)) == CAPACITY
