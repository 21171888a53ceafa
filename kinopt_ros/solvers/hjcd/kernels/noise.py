"""The numbers of ``reference.noise``, on a device."""

import warp as wp

FACTOR = wp.constant(wp.uint32(747796405))
INCREMENT = wp.constant(wp.uint32(2891336453))
MIX = wp.constant(wp.uint32(277803737))


@wp.func
def hashed(value: wp.uint32):
    state = value * FACTOR + INCREMENT
    word = ((state >> ((state >> wp.uint32(28)) + wp.uint32(4))) ^ state) * MIX
    return (word >> wp.uint32(22)) ^ word


@wp.func
def key_of(seed: wp.uint32, lane: int, step: int):
    return hashed(hashed(hashed(seed) ^ wp.uint32(lane)) ^ wp.uint32(step))


@wp.func
def uniform(key: wp.uint32, which: int):
    """Return a number in (0, 1)."""
    bits = hashed(key ^ wp.uint32(which))
    return (wp.float64(bits >> wp.uint32(8)) + wp.float64(0.5)) * wp.float64(5.9604644775390625e-08)


@wp.func
def normal(key: wp.uint32, which: int):
    """Return a standard normal number."""
    u = uniform(key, 2 * which)
    v = uniform(key, 2 * which + 1)
    turn = wp.float64(6.283185307179586)
    return wp.sqrt(wp.float64(-2.0) * wp.log(u)) * wp.cos(turn * v)
