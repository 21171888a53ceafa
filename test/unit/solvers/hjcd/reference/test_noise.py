"""Random numbers by counter."""

import numpy as np

from kinopt_ros.solvers.hjcd.reference.noise import hashed, normal, uniform


def test_the_hash_is_the_published_one() -> None:
    """Recomputed with Python's own integers."""

    def pcg(value: int) -> int:
        state = (value * 747796405 + 2891336453) & 0xFFFFFFFF
        word = ((state >> ((state >> 28) + 4)) ^ state) * 277803737 & 0xFFFFFFFF
        return (word >> 22) ^ word

    values = np.array([0, 1, 2, 12345, 0xFFFFFFFF], dtype=np.uint32)
    assert hashed(values).tolist() == [pcg(int(value)) for value in values]


def test_numbers_depend_on_every_part_of_their_name_and_on_nothing_else() -> None:
    first = uniform(1, 2, 3, 4)
    np.testing.assert_array_equal(first, uniform(1, 2, 3, 6)[:4])
    for other in (uniform(0, 2, 3, 4), uniform(1, 3, 3, 4), uniform(1, 2, 4, 4), uniform(2, 1, 3, 4)):
        assert not np.isin(first, other).any()


def test_they_are_spread_as_they_should_be() -> None:
    u = np.concatenate([uniform(7, lane, 0, 8) for lane in range(1000)])
    assert ((u > 0.0) & (u < 1.0)).all()
    assert (np.abs(np.histogram(u, 10, (0.0, 1.0))[0] - 800) < 120).all()
    z = np.concatenate([normal(7, lane, 0, 8) for lane in range(1000)])
    assert abs(z.mean()) < 0.05
    assert abs(z.std() - 1.0) < 0.05
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 0.05
