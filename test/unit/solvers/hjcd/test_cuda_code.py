"""All kernels can be compiled for CUDA, which needs no GPU: Warp's wheel has the compiler. What the code does there is
another question."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

wp = pytest.importorskip("warp")

from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.hjcd.chain import kernel_chain
from kinopt_ros.solvers.hjcd.kernels.lm import lm_kernels
from kinopt_ros.solvers.hjcd.kernels.pj_ik import pj_ik_kernels
from kinopt_ros.solvers.hjcd.kernels.po_ccd import po_ccd_kernels
from kinopt_ros.solvers.hjcd.kernels.screen import screen

from .arms import coupled_robot, planar_robot

pytestmark = pytest.mark.slow

OLDEST, H100 = 75, 90
"""Architectures: the oldest that CUDA 13 compiles for, and what `make bench-gpu` is meant for."""


def compiled(module: object, folder: Path, arch: int) -> set[str]:
    """Names of the kernels that the machine code for an architecture holds."""
    files = wp.compile_aot_module(module, arch=arch, module_dir=folder, use_ptx=False)
    (code,) = (Path(file).read_bytes() for file in files if Path(file).suffix == ".cubin")
    names = re.findall(rb"[.]text[.](?:[a-z_]*__locals__)?(\w+)_[0-9a-f]{8}_cuda_kernel_forward", code)
    return {name.decode() for name in names}


@pytest.mark.parametrize(
    ("make", "arch", "one_to_one"), [(planar_robot, H100, True), (coupled_robot, OLDEST, False)]
)
def test_kernels_of_a_chain(
    make: Callable[[], RobotModel], arch: int, one_to_one: bool, tmp_path: Path
) -> None:
    """Few joints: loops over them are written out, and all that depends on more is how long it takes."""
    robot = make()
    shape = kernel_chain(robot, build_chain(robot, robot.root_link, robot.link_names[-1])).shape
    assert shape.one_to_one == one_to_one
    lm_kernels(shape, wp.float64)  # in one module with those of float32
    least_squares = {"descend_float32", "descend_float64", "tips_float32", "tips_float64"}
    assert compiled(lm_kernels(shape, wp.float32).descend.module, tmp_path, arch) == least_squares
    assert compiled(po_ccd_kernels(shape, wp.float32).po_ccd.module, tmp_path, arch) == {"po_ccd", "draw"}
    assert compiled(pj_ik_kernels(shape, wp.float64).pj_ik.module, tmp_path, arch) == {"pj_ik", "replicate"}


@pytest.mark.parametrize("arch", [OLDEST, H100])
def test_kernels_that_no_chain_matters_to(arch: int, tmp_path: Path) -> None:
    names = {"screen", "settle", "settle_double", "widen", "begin", "begin_refinement", "keep_best"}
    assert compiled(screen.module, tmp_path, arch) == names
