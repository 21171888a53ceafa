"""Tests of which of Warp's errors mean that this process cannot go on."""

import pytest

from kinopt_ros.solvers.hjcd.sticky import about_memory, is_sticky


@pytest.mark.parametrize(
    ("sentence", "sticky", "memory"),
    [
        (
            "Failed to synchronize device cuda:0: Warp CUDA error 719: unspecified launch failure (in function "
            "wp_cuda_context_synchronize, /builds/warp.cu:2869)",
            True,
            False,
        ),
        (
            "Error launching kernel: descend on device cuda:0: Warp CUDA error 700: an illegal memory",
            True,
            False,
        ),
        ("CUDA error 700 detected on device cuda:0", True, False),
        ("Warp CUDA error 400: invalid resource handle", False, False),
        ("Warp CUDA error 70: something else", False, False),
        ("Failed to allocate 700 bytes on device 'cuda:0'", False, True),
        ("Warp CUDA error 2: out of memory (in function wp_alloc_device_default)", False, True),
        ("", False, False),
    ],
)
def test_errors(sentence: str, sticky: bool, memory: bool) -> None:
    error = RuntimeError(sentence)
    assert (is_sticky(error), about_memory(error)) == (sticky, memory)
