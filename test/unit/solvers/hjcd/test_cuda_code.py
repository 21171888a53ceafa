"""All kernels can be compiled for CUDA, which needs no GPU: Warp's wheel has the compiler. What the code does there is
another question."""

import os
import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

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
KeptCode = Callable[[Any, int], bytes]


@pytest.fixture
def kept_code(kept_folder: Path, tmp_path: Path) -> KeptCode:
    """Machine code of a module for an architecture, compiled when its source or Warp is new."""
    folder = kept_folder / "cuda"
    folder.mkdir(exist_ok=True)

    def code(module: Any, arch: int) -> bytes:
        # Warp's hash is of all kernels and functions of the module, and of its options.
        key = f"{wp.__version__} {arch} {module.hash_module().hex()}"
        kept = folder / f"{sha256(key.encode()).hexdigest()[:32]}.cubin"
        if not kept.exists():
            files = wp.compile_aot_module(module, arch=arch, module_dir=tmp_path, use_ptx=False)
            (made,) = (Path(file) for file in files if Path(file).suffix == ".cubin")
            part = kept.with_suffix(f".{os.getpid()}")  # another file system than that of temporary files
            shutil.copy(made, part)
            part.replace(kept)
        return kept.read_bytes()

    return code


def kernels_in(code: bytes) -> set[str]:
    """Names of the kernels that machine code holds."""
    names = re.findall(rb"[.]text[.](?:[a-z_]*__locals__)?(\w+)_[0-9a-f]{8}_cuda_kernel_forward", code)
    return {name.decode() for name in names}


@pytest.mark.parametrize(
    ("make", "arch", "one_to_one"), [(planar_robot, H100, True), (coupled_robot, OLDEST, False)]
)
def test_kernels_of_a_chain(
    make: Callable[[], RobotModel], arch: int, one_to_one: bool, kept_code: KeptCode
) -> None:
    """Few joints: loops over them are written out, and all that depends on more is how long it takes."""
    robot = make()
    shape = kernel_chain(robot, build_chain(robot, robot.root_link, robot.link_names[-1])).shape
    assert shape.one_to_one == one_to_one
    lm_kernels(shape, wp.float64)  # in one module with those of float32
    least_squares = {"descend_float32", "descend_float64", "tips_float32", "tips_float64"}
    assert kernels_in(kept_code(lm_kernels(shape, wp.float32).descend.module, arch)) == least_squares
    if one_to_one:
        return  # what else depends on it is compiled for it on the CPU: test_kernels.py
    assert kernels_in(kept_code(po_ccd_kernels(shape, wp.float32).po_ccd.module, arch)) == {"po_ccd", "draw"}
    assert kernels_in(kept_code(pj_ik_kernels(shape, wp.float64).pj_ik.module, arch)) == {
        "pj_ik",
        "replicate",
    }


@pytest.mark.parametrize("arch", [OLDEST, H100])
def test_kernels_that_no_chain_matters_to(arch: int, kept_code: KeptCode) -> None:
    names = {"screen", "settle", "settle_double", "widen", "begin", "begin_refinement", "keep_best"}
    assert kernels_in(kept_code(screen.module, arch)) == names
