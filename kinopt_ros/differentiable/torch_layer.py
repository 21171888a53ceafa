"""Forward kinematics for PyTorch: tensors go to JAX and back by DLPack, without a copy where both are on one device."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from kinopt_ros.differentiable.forward import forward_kinematics
from kinopt_ros.errors import InvalidStateError
from kinopt_ros.robot.model import RobotModel

if TYPE_CHECKING:
    import torch


def torch_layer(
    robot: RobotModel, links: Sequence[str] | None = None, base_link: str | None = None
) -> "Callable[[torch.Tensor], torch.Tensor]":
    """Build a function of tensors (..., nq) -> (..., L, 4, 4), differentiable once in joint values. Needs torch.

    float64 tensors need JAX's x64 mode, and tensors on a GPU need a JAX that sees it.

    Args:
        robot: the robot.
        links: as in ``forward_kinematics``.
        base_link: as in ``forward_kinematics``.

    Raises:
        UnknownLinkError: a link that the robot does not have.
        InvalidStateError: when called with a tensor of another shape, or of a type that JAX would change.
    """
    import torch

    fk = forward_kinematics(robot, links, base_link)
    pullback = jax.jit(lambda q, cotangent: jax.vjp(fk, q)[1](cotangent)[0])

    def to_jax(tensor: "torch.Tensor") -> jax.Array:
        if tensor.dtype == torch.float64 and jnp.result_type(float) != jnp.float64:
            raise InvalidStateError("q is float64: enable jax_enable_x64, or give float32")
        return jnp.from_dlpack(tensor.detach().contiguous())

    def to_torch(array: jax.Array) -> "torch.Tensor":
        # Until it is there, the input's memory is in use.
        return torch.from_dlpack(array.block_until_ready())

    class Poses(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, q: "torch.Tensor") -> "torch.Tensor":
            ctx.save_for_backward(q)
            return to_torch(fk(to_jax(q)))

        @staticmethod
        @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
        def backward(ctx: Any, cotangent: "torch.Tensor") -> "torch.Tensor":
            (q,) = ctx.saved_tensors
            return to_torch(pullback(to_jax(q), to_jax(cotangent)))

    def layer(q: "torch.Tensor") -> "torch.Tensor":
        if q.ndim == 0 or q.shape[-1] != robot.nq:
            raise InvalidStateError(f"q must have shape (..., {robot.nq}), not {tuple(q.shape)}")
        if not q.dtype.is_floating_point:
            raise InvalidStateError(f"q must be of a floating type, not {q.dtype}")
        result: torch.Tensor = Poses.apply(q)
        return result

    return layer
