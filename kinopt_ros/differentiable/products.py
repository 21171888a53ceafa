"""Products of transforms: frames of many links for many configurations at once.

A frame is four arrays of shape (3, lanes): the columns x, y, z of its rotation and its origin p. With the lanes last,
and three numbers in one array, XLA makes quick code of it without any flag: the rows of a product of transforms do not
depend on one another, so that fusing the operations into loops repeats little.
"""

from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from kinopt_ros.differentiable.components import Component, add, dot, exact, mul, plain
from kinopt_ros.differentiable.frames import FramePlan
from kinopt_ros.differentiable.motions import Geometry, Values, motion_of, quaternion_rotation
from kinopt_ros.robot.chain import Motion

Frame: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array]
Transform: TypeAlias = tuple[list[list[Component]], list[Component]]

WRITTEN_OUT = 60
"""Most entries of rotations, other than zeros, along the paths to all links for which the program is written out, zeros
and ones left out; a joint has 5 to 9. For more, and where gradients in parameters may be wanted, it is a loop, which
compiles in a second however many there are: XLA on CPUs computes anew what several results need when it fuses
operations, which along a chain of ten joints with oblique axes takes a thousand times as long."""


def frames(
    plan: FramePlan,
    own: Geometry,
    at: Values,
    q: jax.Array,
    wanted: Sequence[int],
    written_out: int | None = None,
) -> jax.Array:
    """Compute frames in frame 0, as (len(wanted), 4, 3, lanes).

    Args:
        plan: the plan.
        own: geometry of its motions.
        at: their values.
        q: configurations, (nq, lanes).
        wanted: numbers of frames.
        written_out: in place of ``WRITTEN_OUT``.
    """
    identity = jnp.eye(4, 3, dtype=jnp.result_type(q, own.axis) if own.depends else q.dtype)[:, :, None]
    if not own.depends:
        transforms = [_transform(own, at, i) for i in range(len(plan.steps))]
        weights = [
            9 if motion_of(s) is Motion.QUATERNION else _weight(R)
            for s, (R, _) in zip(plan.steps, transforms, strict=True)
        ]
        most = WRITTEN_OUT if written_out is None else written_out
        if sum(weights[i] for frame in set(wanted) for i in plan.path(frame)) <= most:
            return _written_out(plan, transforms, q, wanted, identity)
    return _looped(plan, own, at, q, identity)[np.array(wanted)]


def _after(frame: Frame, R: Sequence[Sequence[Component]], p: Sequence[Component]) -> Frame:
    axes = frame[:3]
    x, y, z = (jnp.asarray(plain(dot(column, axes))) for column in zip(*R, strict=True))
    return x, y, z, jnp.asarray(plain(add(frame[3], dot(p, axes))))


def _written_out(
    plan: FramePlan, transforms: Sequence[Transform], q: jax.Array, wanted: Sequence[int], identity: jax.Array
) -> jax.Array:
    known: list[Frame] = [(identity[0], identity[1], identity[2], identity[3])]
    for step, (R, p) in zip(plan.steps, transforms, strict=True):
        frame = _after(known[step.parent], R, p)
        if motion_of(step) is Motion.QUATERNION:
            frame = _after(frame, [list(row) for row in quaternion_rotation(step, q)], (0.0, 0.0, 0.0))
        known.append(frame)
    shape = (3, q.shape[1])
    return jnp.stack([jnp.stack([jnp.broadcast_to(v, shape) for v in known[number]]) for number in wanted])


def _weight(R: list[list[Component]]) -> int:
    return sum(not (isinstance(entry, float) and entry == 0.0) for row in R for entry in row)


def _transform(own: Geometry, at: Values, i: int) -> Transform:
    """Return the transform of motion i as components; those that are known are floats."""
    R = [
        [
            add(
                _number(own.constant[i, r, c]),
                add(
                    mul(_number(own.sine[i, r, c]), at.sine[i]),
                    mul(_number(own.cosine[i, r, c]), at.cosine[i]),
                ),
            )
            for c in range(3)
        ]
        for r in range(3)
    ]
    p = [add(_number(own.shift[i, r]), mul(_number(own.along[i, r]), at.value[i])) for r in range(3)]
    return R, p


def _number(value: jax.Array | np.float64) -> Component:
    return value if isinstance(value, jax.Array) else exact(float(value))


def _looped(plan: FramePlan, own: Geometry, at: Values, q: jax.Array, identity: jax.Array) -> jax.Array:
    """Compute all frames, (m + 1, 4, 3, lanes)."""
    dtype, lanes = identity.dtype, q.shape[1]
    start = jnp.broadcast_to(identity, (4, 3, lanes))
    if not plan.steps:
        return start[None]

    def number(array: object) -> jax.Array:
        return jnp.asarray(array, dtype)[..., None]

    R = number(own.constant) + number(own.sine) * at.sine[:, None, None]
    R = R + number(own.cosine) * at.cosine[:, None, None]
    p = number(own.shift) + number(own.along) * at.value[:, None]
    for i, step in enumerate(plan.steps):
        if motion_of(step) is Motion.QUATERNION:
            turned = (R[i][:, :, None] * quaternion_rotation(step, q)).sum(1)
            # No R.at[i].set(turned): mapped over one configuration, XLA 0.10 on CPUs makes wrong poses of that.
            R = jnp.concatenate([R[:i], turned[None], R[i + 1 :]])
    parents = [step.parent for step in plan.steps]

    def moved(frame: jax.Array, R: jax.Array, p: jax.Array) -> jax.Array:
        return jnp.stack(_after((frame[0], frame[1], frame[2], frame[3]), tuple(R), tuple(p)))

    if parents == list(range(len(parents))):  # one chain

        def along(frame: jax.Array, step: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            following = moved(frame, *step)
            return following, following

        return jnp.concatenate([start[None], jax.lax.scan(along, start, (R, p))[1]])

    def grown(
        known: jax.Array, step: tuple[jax.Array, jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, None]:
        R, p, parent, number = step
        following = moved(jax.lax.dynamic_index_in_dim(known, parent, keepdims=False), R, p)
        return jax.lax.dynamic_update_index_in_dim(known, following, number, 0), None

    known = jnp.zeros((len(parents) + 1, 4, 3, lanes), dtype).at[0].set(start)
    numbers = jnp.arange(1, len(parents) + 1)
    return jax.lax.scan(grown, known, (R, p, jnp.array(parents), numbers))[0]
