"""Programs are compiled once, kept on disk, and made anew where what lies there cannot be used."""

import logging
import os
import pickle
import shutil
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from kinopt_ros.bench.extended_panda import extended_panda
from kinopt_ros.errors import NotReadyError, SolverUnavailableError, UnknownNameError
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.chain import build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver
from kinopt_ros.solvers.jax_lm.programs import Compilation, Programs
from kinopt_ros.solvers.jax_lm.runtime import start

from .conftest import SMALL, SolverMaker

pytestmark = pytest.mark.slow  # compilers take seconds


def programs_in(cache: Path) -> list[Path]:
    """Files of programs in a user's cache folder."""
    return list((cache / "kinopt_ros" / "jax_lm").glob("*.program"))


def problem_of(robot: RobotModel, count: int, deadline: float | None = None) -> IkProblem:
    q = random_configurations(robot, count, 1)
    T = forward_kinematics(robot, q, links=("l4",))[:, 0]
    return ik_problem(
        robot,
        T,
        tip_link="l4",
        position_tolerance=(1e-4, 1e-4, np.inf),
        orientation_tolerance=np.inf,
        deadline=deadline,
    )


@pytest.fixture(scope="module")
def compiled(planar_arm: RobotModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's cache folder with the program of ``problem_of(planar_arm, 1)``, to be copied."""
    folder = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        solver = JaxLmSolver()
        solver.configure(planar_arm, SMALL)
        solver.solve_ik(problem_of(planar_arm, 1))
        solver.close()
    return folder


def test_a_program_is_compiled_once_per_machine(
    planar_arm: RobotModel, solver_for: SolverMaker, tmp_path: Path
) -> None:
    first = solver_for(planar_arm, cache=tmp_path)
    expected = first.solve_ik(problem_of(planar_arm, 3))
    assert expected.success.all()
    assert first.programs_compiled == len(programs_in(tmp_path)) == 1
    second = solver_for(planar_arm, cache=tmp_path)
    np.testing.assert_array_equal(second.solve_ik(problem_of(planar_arm, 3)).q, expected.q)
    assert second.programs_compiled == 0


def test_a_damaged_file_is_replaced(
    planar_arm: RobotModel,
    solver_for: SolverMaker,
    compiled: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = shutil.copytree(compiled, tmp_path / "cache")
    (file,) = programs_in(cache)
    file.write_bytes(b"not a program")
    with caplog.at_level(logging.WARNING):
        again = solver_for(planar_arm, cache=cache)
        assert again.solve_ik(problem_of(planar_arm, 1)).success.all()
    assert again.programs_compiled == 1
    assert str(file) in caplog.text
    assert file.stat().st_size > 1000


def test_without_a_folder_to_write_to_it_works_and_says_so(
    planar_arm: RobotModel, solver_for: SolverMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING):
        solver = solver_for(planar_arm, cache=tmp_path / "file" / "below")
        assert solver.solve_ik(problem_of(planar_arm, 1)).success.all()
    assert "cannot be kept" in caplog.text


def test_no_deadline_waits_for_the_compiler(
    planar_arm: RobotModel, solver_for: SolverMaker, tmp_path: Path
) -> None:
    solver = solver_for(planar_arm, cache=tmp_path, **{"escalation.rounds": 0})  # one program
    begin = time.monotonic()
    with pytest.raises(NotReadyError, match="compiles"):
        solver.solve_ik(problem_of(planar_arm, 1, begin + 60.0))
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        try:
            result = solver.solve_ik(problem_of(planar_arm, 1, time.monotonic() + 60.0))
        except NotReadyError:
            time.sleep(0.05)
        else:
            break
    assert result.success.all()  # compiled meanwhile


def test_many_structures_keep_nobody_waiting_for_all_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kinopt_ros.solvers.jax_lm import programs
    from kinopt_ros.solvers.jax_lm.beam_program import beam_compilation
    from kinopt_ros.solvers.jax_lm.runtime import start

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler: programs.Programs[Any] = programs.Programs(start("cpu", False), beam_compilation)
    begun, may_go_on = threading.Event(), threading.Event()
    made: list[Any] = []

    def make(key: Any) -> Any:
        begun.set()
        assert may_go_on.wait(60.0)
        made.append(key)
        return key, None, 0

    monkeypatch.setattr(compiler, "_make", make)
    flood: list[Any] = [f"structure {number}" for number in range(1000)]
    compiler.make_in_background(flood[:1])
    assert begun.wait(60.0)
    for key in flood[1:]:
        compiler.make_in_background([key])
    last: list[Any] = [f"last {number}" for number in range(2 * programs.MOST_WANTED)]
    compiler.make_in_background(last)
    may_go_on.set()
    end = time.monotonic() + 60.0
    while compiler.missing(last):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert made[: 1 + len(last)] == flood[:1] + last
    thread = compiler._background
    if thread is not None:
        thread.join(60.0)
    assert len(made) == 1 + len(last), "a request may want more than are kept for others"


def test_a_flood_of_structures_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """128 programs were kept, of 13 to 88 MB each. What options ask for stays."""
    from kinopt_ros.solvers.jax_lm import programs
    from kinopt_ros.solvers.jax_lm.beam_program import beam_compilation
    from kinopt_ros.solvers.jax_lm.runtime import start

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler: programs.Programs[Any] = programs.Programs(start("cpu", False), beam_compilation)
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    given_back: list[bool] = []
    sizes: dict[Any, int] = {}

    class Program:
        pass

    def make(key: Any) -> Any:
        program = Program()
        alive.add(program)
        compiled = int(key.split()[1]) % 2 == 0  # the others were on disk
        return program, key if compiled else None, sizes[key]

    def save(folder: Any, name: Any, program: Any) -> int:
        return sizes[name]

    monkeypatch.setattr(compiler, "_make", make)
    monkeypatch.setattr(programs, "_save", save)
    monkeypatch.setattr(programs, "give_back", lambda: given_back.append(True))
    prepared: Any = "prepared 0"
    sizes[prepared] = 50_000_000
    kept = compiler.get(prepared)
    compiler.keep()
    often: Any = "often 1"
    sizes[often] = 1_000_000
    for number in range(300):
        key: Any = f"structure {number}"
        sizes[key] = 500_000 + 10_000 * number
        compiler.get(key)
        assert not compiler.missing([key])
        compiler.get(often)
        taken = programs.MEMORY_PER_BYTE * sum(
            size for one, size in sizes.items() if one != prepared and not compiler.missing([one])
        )
        assert taken <= programs.MOST_MEMORY or len(alive) <= programs.FEWEST + 1
        assert len(alive) <= programs.IN_MEMORY + 1
    assert not compiler.missing([often])
    assert compiler.get(prepared) is kept
    assert given_back


EXIT = """
import sys, threading, time
import numpy as np
from kinopt_ros import create_solver, ik_problem, load_robot
from kinopt_ros.errors import NotReadyError
robot = load_robot(sys.argv[1])
solver = create_solver("jax_lm", robot, {"groups": ""})
try:
    solver.solve_ik(ik_problem(robot, np.eye(4), tip_link="l4", deadline=time.monotonic() + 60.0))
except NotReadyError:
    while "jax_lm at work" not in [thread.name for thread in threading.enumerate()]:
        time.sleep(0.01)  # to be in the middle of it
print("jax_lm compiler" in [thread.name for thread in threading.enumerate()])
"""


def test_a_program_may_end_while_the_compiler_works(planar_arm_file: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXIT, str(planar_arm_file)],
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
    assert len(programs_in(tmp_path)) == 1, "the program in work is finished, no other one is begun"


SEVERAL_DEVICES = """
import sys
import jax
import numpy as np
from kinopt_ros import create_solver, ik_problem, load_robot
robot = load_robot(sys.argv[1])
target = np.eye(4)
target[0, 3] = 1.0
problem = ik_problem(robot, target, tip_link="l4", orientation_tolerance=np.inf)
devices = jax.devices()
def solve():
    solver = create_solver("jax_lm", robot, {"groups": "", "batch_sizes": "4"})
    print(bool(solver.solve_ik(problem).success[0]), solver.programs_compiled)
with jax.set_mesh(jax.make_mesh((2,), ("x",))), jax.default_device(devices[1]), jax.enable_x64(False):
    solve()
for first in (0, 0, 1, 1, 0):
    jax.devices = lambda *kind: devices[first:]
    solve()
print(len(devices))
"""


def test_programs_from_disk_run_on_one_of_several_devices(planar_arm_file: Path, tmp_path: Path) -> None:
    """What the caller has set for JAX does not matter: the first one is compiled within a mesh, for another device and
    single precision."""
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL_DEVICES, str(planar_arm_file)],
        env=os.environ
        | {
            "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
            "XDG_CACHE_HOME": str(tmp_path / "programs"),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == [
        *("True 1", "True 0", "True 0", "True 1", "True 0", "True 0"),
        "2",
    ]


SCRIPT = """
import os, sys
from kinopt_ros import load_robot
from kinopt_ros.solvers.jax_lm.plugin import JaxLmSolver
assert "jax" not in sys.modules, "imported too early"
before = os.environ.get("XLA_FLAGS")
{first}
from kinopt_ros.solvers.jax_lm import runtime
started = runtime.start("cpu", True)
assert os.environ.get("XLA_FLAGS") == before
import jax
assert not jax.config.jax_enable_x64
print(bool(started.compiler_options))
"""


@pytest.mark.parametrize(
    ("first", "slower"), [("", "False"), ("import jax; jax.devices()", "True"), ("import jax", "False")]
)
def test_the_flag_is_set_where_jax_was_not_in_use(first: str, slower: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(first=first)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == slower


def test_programs_are_known_by_the_flags_they_are_compiled_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on disk was used again by who had set XLA_FLAGS since."""
    from kinopt_ros.solvers.jax_lm import runtime

    runtime.start("cpu", True)  # XLA has read its flags: those below reach nobody
    found = []
    for flags in ("", "--xla_cpu_enable_fast_math=true", ""):
        monkeypatch.setattr(runtime, "_started", None)
        monkeypatch.setenv("XLA_FLAGS", flags)
        found.append(runtime.start("cpu", True).fingerprint)
    assert found[0] == found[2] != found[1]


def test_one_kernel_changes_no_result(planar_arm: RobotModel, monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    from kinopt_ros.solvers.jax_lm import beam_program
    from kinopt_ros.solvers.jax_lm.beam import constants
    from kinopt_ros.solvers.jax_lm.chain import lane_chain
    from kinopt_ros.solvers.jax_lm.runtime import start
    from kinopt_ros.solvers.jax_lm.seeds import start_table
    from kinopt_ros.solvers.jax_lm.shapes import BeamShape, ProgramKey, RowShape

    runtime = start("cpu", True)
    chain, targets = lane_chain(planar_arm, build_chain(planar_arm, "l0", "l4")), 4
    rows = RowShape(free_position=(False, False, True), free_orientation=(True, True, True))
    size = BeamShape(num_seeds=16, keep=3)
    q = random_configurations(planar_arm, targets, 5)
    poses = forward_kinematics(planar_arm, q, links=("l4",))[:, 0, :3].reshape(targets, 12)
    arguments = (
        constants(chain, np.array([[1e-4] * 6, [5e-7] * 6, [0.0] * 6])),
        chain.ranges32,
        np.concatenate([poses, 0.0 * q, 0.0 * q], axis=1),
        np.repeat(start_table(chain, 0, 16, 0), targets, axis=1),
    )
    found, kernels = [], []
    for lanes in (beam_program.ONE_KERNEL, 0):
        monkeypatch.setattr(beam_program, "ONE_KERNEL", lanes)
        with jax.enable_x64(True):
            program = beam_program.compiled(runtime, ProgramKey(chain.shape, rows, size, targets))
            found.append(np.asarray(program(*arguments)))
        entry = program.as_text().rsplit("ENTRY", 1)[1]
        kernels.append(entry.count(" fusion(") + entry.count(" while("))
    assert kernels[0] == 0 < kernels[1]
    assert (found[0][-2] <= 1.0).all()
    np.testing.assert_allclose(found[0][:-1], found[1][:-1], atol=1e-5)


class Evil:
    """A pickle of this runs a command when it is read."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.proof}'",)


def test_a_program_that_others_may_have_written_is_not_loaded(
    planar_arm: RobotModel,
    solver_for: SolverMaker,
    compiled: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache, proof = shutil.copytree(compiled, tmp_path / "cache"), tmp_path / "proof"
    (file,) = programs_in(cache)
    header = file.read_bytes().splitlines(keepends=True)[0]
    file.write_bytes(header + pickle.dumps(Evil(proof)))
    foreign = file.parent / "firmware.bin"
    foreign.write_bytes(b"not ours")
    file.parent.chmod(0o777)
    with caplog.at_level(logging.WARNING):
        again = solver_for(planar_arm, cache=cache)
        assert again.solve_ik(problem_of(planar_arm, 1)).success.all()
    assert again.programs_compiled == 1
    assert not proof.exists()
    assert "other users may write to it (mode 777)" in caplog.text
    assert foreign.exists()
    with pytest.raises(UnknownNameError, match="cache_dir"):
        solver_for(planar_arm, cache=cache, cache_dir=str(tmp_path))


@pytest.mark.parametrize("waits", [True, False])
def test_who_waits_for_the_compiler_is_told(
    waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script stood still for minutes without a word. Nobody waits for what is made in the background."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seen, done = list[bool](), threading.Event()

    def compiled() -> Any:
        seen.append(programs._notice.at_work)
        done.set()
        return jax.jit(lambda x: x).lower(1.0).compile()

    programs = Programs[str](
        start("cpu", False), lambda runtime, key: Compilation(lambda: "0" * 32, compiled)
    )
    if waits:
        programs.get("one")
    else:
        programs.make_in_background(["one"])
    assert done.wait(60.0)
    assert seen == [waits]
    programs.get("one")
    assert not programs._notice.at_work


def test_a_program_that_cannot_be_compiled_says_so_once() -> None:
    """It was only logged: whoever asked was told for ever to ask again later."""

    def fails(runtime: Any, key: str) -> Any:
        raise TypeError(f"no body of {key}")

    made: Programs[str] = Programs(start("cpu", False), fails)
    made.make_in_background(["a loop"])
    compiler = made._background
    if compiler is not None:  # it may have ended
        compiler.join(60.0)
    with pytest.raises(SolverUnavailableError, match="could not be compiled: TypeError: no body of a loop"):
        made.check_can_be_made(iter(["another", "a loop"]))
    made.check_can_be_made(["a loop"])  # and may be tried again


def test_nothing_is_compiled_for_groups_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their requests are refused: a chain of 400 joints took a gigabyte and minutes."""
    asked: list[object] = []
    monkeypatch.setattr(Programs, "get", lambda programs, key: asked.append(key))
    for joints, compiled in ((7, True), (33, False)):
        asked.clear()
        solver = JaxLmSolver()
        solver.configure(robot_from_urdf(extended_panda(joints)), None)
        solver.close()
        assert bool(asked) == compiled


def test_a_program_is_compiled_on_no_daemon_whoever_asks() -> None:
    """Else the end of a process would not know of it, and wait for it."""
    daemons: list[bool] = []

    class Told:
        known_as = None

        def name(self) -> str:
            daemons.append(threading.current_thread().daemon)
            raise NotReadyError("enough")

    programs: Programs[str] = Programs(start("auto", True), lambda runtime, key: Told())  # type: ignore[arg-type]

    def ask() -> None:
        with pytest.raises(NotReadyError, match="enough"):
            programs.get("any")

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(60.0)
    assert daemons == [False]
