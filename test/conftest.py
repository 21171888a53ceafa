"""Set-up that all tests share: the order of their files, and a process that stays quick however long it runs."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from interface_packages import BuildError, provide

if TYPE_CHECKING:
    from kinopt_ros.viewer.page.page import Page

FOLDER = Path(__file__).parent
ROS, SLOW = 10, 100
"""Number of usual tests that one takes as long as that starts nodes, or is marked ``slow``."""
PATIENT = 1200.0
"""A test that may take longer than this, s, is a slow one, too."""


with suppress(ImportError):  # those who need it import it themselves
    from hypothesis import settings

    settings.register_profile("on_any_machine", deadline=None)
    settings.load_profile("on_any_machine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long first: where files go to several processes, none works at the last one alone.

    Files stay whole, and the order of tests in them as it is. (``make test`` has xdist keep this order.)
    """
    weights: Counter[Path] = Counter()
    for item in items:
        starts_nodes = item.path.is_relative_to(FOLDER / "ros")
        may_take = item.get_closest_marker("timeout")
        slow = item.get_closest_marker("slow") or (may_take and may_take.args[0] > PATIENT)
        weights[item.path] += SLOW if slow else ROS if starts_nodes else 1
    items.sort(key=lambda item: -weights[item.path])


PARTS = (
    """
import kinopt_ros as ko
from kinopt_ros.planning.trajectory_warm_up import warm_up_trajectories
solver = ko.create_solver("cpu", ko.load_robot("panda"))
solver.warm_up_motions()
warm_up_trajectories(solver)
""",
    """
import kinopt_ros as ko
from kinopt_ros.solvers.cpu import nearest
from kinopt_ros.solvers.cpu.objectives.solve import load_or_compile
ko.prepare_collisions(ko.load_robot("panda"))
load_or_compile(may_compile=True)
nearest.load_or_compile(may_compile=True)
""",
)
"""What has little in common: the second compiles shapes, which the first needs last, and what motions do not need."""

COMPILERS = 900.0
"""Longest time for that, s."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile once what every one of several processes would compile for itself: two minutes of work where numba has
    kept nothing yet. What fails here is for the tests to tell."""
    if session.config.getoption("numprocesses", None):  # the processes themselves have none
        compilers = [subprocess.Popen([sys.executable, "-c", part]) for part in PARTS]
        end = time.monotonic() + COMPILERS
        for compiler in compilers:
            try:
                compiler.wait(max(end - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                compiler.kill()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Objects that collecting makes stay to the end: looking for garbage among them took a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="session")
def kept_folder(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for XDG_CACHE_HOME, shared with other runs of the tests.

    Programs and spheres are kept in it as for users, and made anew when their source changes. Tests of how they are
    kept have folders of their own.
    """
    cache = getattr(pytestconfig, "cache", None)
    return tmp_path_factory.mktemp("kept") if cache is None else Path(cache.mkdir("kept"))


@pytest.fixture(scope="module")
def without_llvm() -> Iterator[None]:
    """Programs that jax_lm makes in a module are compiled without LLVM's optimizations, which takes a quarter less.

    What they compute is the same but for rounding. Those of objectives/test_answers.py, of the conformance suite and of
    nodes are as users have them.
    """
    pytest.importorskip("jax")
    from kinopt_ros.solvers.jax_lm import runtime

    usual = runtime.start("auto", True)
    quick = replace(usual, compiler_options=(*usual.compiler_options, ("xla_backend_optimization_level", 0)))
    with pytest.MonkeyPatch.context() as patch:
        if usual.on_cpu:
            patch.setattr(runtime, "start", lambda device, multi_output_fusion: quick)
        yield


@pytest.fixture(scope="module")
def interface_packages() -> Iterator[None]:
    """Packages of interfaces that ROS has and its wheels lack, for this process and those that tests of this module
    start."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PYTHONPATH", "LD_LIBRARY_PATH"):  # to what they were, afterwards
            patch.setenv(name, os.environ.get(name, ""))
        try:
            provide()
        except BuildError as error:
            pytest.skip(f"interface packages are not installed, and cannot be built for the tests: {error}")
        yield


@pytest.fixture(scope="module")
def moveit(interface_packages: None) -> ModuleType:
    """The module moveit_msgs, with what is in it."""
    for name in ("action", "msg", "srv"):
        import_module(f"moveit_msgs.{name}")
    return import_module("moveit_msgs")


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """The viewer's page of the Panda, served on this machine, ready."""
    from kinopt_ros.robot.sources import load_robot
    from kinopt_ros.viewer.looks import looks_of
    from kinopt_ros.viewer.page.page import Page
    from kinopt_ros.viewer.server import start_server
    from kinopt_ros.viewer.session import Session

    robot = load_robot("panda")
    served = Page(start_server(port=0), Session(robot), looks_of(robot), "panda")
    assert served.wait(800.0)
    yield served
    served.close()


@pytest.fixture(scope="session", autouse=True)
def jax_as_the_solver_starts_it() -> None:
    """XLA reads its flags once: programs of the plugin jax_lm compile several times as long where others were first."""
    if "jax" in sys.modules:
        from kinopt_ros.solvers.jax_lm.runtime import start

        start("auto", True)


@pytest.fixture(scope="module", autouse=True)
def what_was_there_before() -> None:
    """Objects of modules before are not looked through again: every search for garbage would take half a second."""
    gc.collect()
    gc.freeze()
