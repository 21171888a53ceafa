"""The ``jax_lm`` plugin: IK-Beam on JAX, for batches, on CPUs and graphics cards. Importing this module does not
import JAX."""

import threading
import weakref
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kinopt_ros.errors import InvalidRequestError, SolverUnavailableError
from kinopt_ros.files import read_text
from kinopt_ros.objectives.problem import ObjectiveProblem
from kinopt_ros.objectives.reading import LONGEST_TEXT, objective_problem_from_text
from kinopt_ros.objectives.result import ObjectiveCandidates
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.robot.chain import Motion
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver
from kinopt_ros.solvers.failures import hopeless_requests
from kinopt_ros.solvers.jax_lm.shapes import BeamShape, Effort, Width
from kinopt_ros.solvers.locked_joints import (
    DEFAULT_GROUP,
    PreparedChains,
    group_chain,
    named_groups,
    solve_in_parts,
)
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.version import package_version
from kinopt_ros.wanted import check_wanted

if TYPE_CHECKING:
    from kinopt_ros.solvers.jax_lm.chain import LaneChain
    from kinopt_ros.solvers.jax_lm.objectives.program import ObjectiveKey
    from kinopt_ros.solvers.jax_lm.objectives.solver import ObjectiveSearch

JACOBIANS = ("analytic", "autodiff")
DEVICES = ("auto", "cpu", "cuda", "cuda:N")
OLDEST_JAX = (0, 8)
ESCALATION_POLISH_STEPS = 30
# Numbers of targets that programs are compiled for. A CPU gains nothing from wider ones.
CPU_TARGETS, CPU_TARGETS_ESCALATED = (1, 16), (4,)
GPU_TARGETS, GPU_TARGETS_ESCALATED = (1, 16, 128, 1024), (1, 64)
CPU_WORTH, GPU_WORTH = 0.85, 0.25
"""Thirteen targets one by one take a CPU as long as sixteen at once. An H200 takes as long for 128 at once as for 21 by
sixteens, and as long for 1024 at once as for 280 by 128."""
LARGEST_BATCH = 65536


class JaxLmSolver(Solver):
    """IK-Beam: for every request many starts (the first are the problem's state and seeds), a few damped least-squares
    steps in float32; the best few go on, and end in float64. Requests that are not solved get wider beams.

    A request's answer is the solution nearest to its state among those that its beam ends with.
    """

    name: ClassVar[str] = "jax_lm"
    version: ClassVar[str] = package_version()
    capabilities: ClassVar[Capabilities] = Capabilities(
        joint_types=frozenset(
            {JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC, JointType.PLANAR}
        ),
        features=frozenset({Feature.TOOL, Feature.AXIS_TOLERANCES, Feature.OBJECTIVES}),
        max_variables=32,
    )
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "device",
            "auto",
            "Where to compute: auto (what JAX prefers), cpu, cuda, cuda:0, cuda:1, ...",
            choices=DEVICES,
        ),
        Option("beam.num_seeds", 64, "Starts per request", 1, 65536),
        Option("beam.keep", 4, "Best of them that go on", 1, 4096),
        Option("beam.init_steps", 6, "Steps of all starts", 0, 1000),
        Option("beam.total_steps", 16, "Most steps of those that go on, the first ones included", 0, 1000),
        Option("escalation.num_seeds", 256, "Starts per request that the beam did not solve", 1, 65536),
        Option("escalation.keep", 8, "Best of them that go on", 1, 4096),
        Option("escalation.init_steps", 8, "Steps of all starts", 0, 1000),
        Option(
            "escalation.total_steps", 32, "Most steps of those that go on, the first ones included", 0, 1000
        ),
        Option(
            "escalation.rounds",
            6,
            "Escalations per request, each from other starts; bounds the time spent on targets that cannot be reached",
            0,
            1000,
        ),
        Option(
            "batch_sizes",
            "",
            "Numbers of targets that programs are compiled for, separated by commas: batches are cut into, or filled "
            "up to, such portions; empty: 1,16 on a CPU, 1,16,128,1024 elsewhere",
        ),
        Option(
            "jacobian",
            "analytic",
            "analytic (from the joint axes), or autodiff (forward mode, for comparison)",
            choices=JACOBIANS,
        ),
        Option(
            "groups",
            DEFAULT_GROUP,
            "Groups whose requests never wait for the compiler, separated by commas; default: the group that requests "
            "mean which name none; others are compiled when they are first asked for",
        ),
        Option(
            "objectives",
            "",
            "YAML files of objectives, separated by commas, whose programs are compiled before the solver is ready; "
            "others are compiled when they are first asked for",
            read_only=True,
        ),
        Option(
            "multi_output_fusion",
            True,
            "On CPUs, let XLA fuse operations of several results, and compute where the call is made: flags of "
            "the whole process: they are set if nothing in the process has used JAX before",
        ),
    )

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Return why the plugin cannot run here; None if it can."""
        for package in ("jax", "jaxlib"):
            if find_spec(package) is None:
                return f"the package {package} is not installed (pip install jax, or jax[cuda13] for graphics cards)"
        found = version("jax")
        if tuple(map(int, found.split(".")[:2])) < OLDEST_JAX:
            oldest = ".".join(map(str, OLDEST_JAX))
            return f"the package jax is {found}, and {oldest} is the oldest that will do (pip install --upgrade jax)"
        return None

    @property
    def share_solved_by_beam(self) -> float:
        """Share of all requests so far that needed no escalation; NaN before the first one."""
        return self._counts.share

    @property
    def programs_compiled(self) -> int:
        """Number of programs that were compiled, rather than found on disk."""
        return self._programs.compiled

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        _effort(options, True)  # refuses before anything is loaded
        self._groups = named_groups(robot, options["groups"])

        from kinopt_ros.solvers.jax_lm.beam_program import beam_compilation
        from kinopt_ros.solvers.jax_lm.chain import lane_chain
        from kinopt_ros.solvers.jax_lm.programs import Programs
        from kinopt_ros.solvers.jax_lm.runtime import start
        from kinopt_ros.solvers.jax_lm.search import Counts, Tables, search

        runtime = start(options["device"], options["multi_output_fusion"])
        self._effort = _effort(options, runtime.on_cpu)
        self._programs = Programs(runtime, beam_compilation)
        weakref.finalize(self, self._programs.stop)  # who is replaced is not closed
        self._runtime = runtime
        self._objectives: tuple[ObjectiveSearch, Programs[ObjectiveKey]] | None = None
        self._objectives_lock = threading.Lock()
        self._chains: PreparedChains[LaneChain] = PreparedChains(
            robot, lambda chains: lane_chain(robot, chains[0])
        )
        self._counts = Counts()
        self._tables = Tables()
        self._search = search
        for name in self._groups:
            self._compile_for(robot, name)
        for file in (name.strip() for name in options["objectives"].split(",") if name.strip()):
            text = read_text(file, LONGEST_TEXT, "an objective")
            self._objective_search(robot).prepare(objective_problem_from_text(robot, text))
        self._keep_programs()

    def _keep_programs(self) -> None:
        """Keep for good what the options ask for."""
        self._programs.keep()
        if self._objectives is not None:
            self._objectives[1].keep()

    def is_prepared_for(self, group: str) -> bool:
        """Return whether the option ``groups`` names a group."""
        return group in self._groups

    def close(self) -> None:
        """Release what the solver holds. It cannot be used afterwards."""
        if self._robot is not None:
            self._programs.stop()
            if self._objectives is not None:
                self._objectives[1].stop()
        super().close()

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        return solve_in_parts(
            problem,
            self._chains,
            lambda part, prepared: self._search(
                part,
                prepared,
                self._programs,
                self._tables,
                self._effort,
                partial(hopeless_requests, self.robot, part),
                self._counts,
            ),
        )

    def _solve_objective(self, problem: ObjectiveProblem) -> ObjectiveCandidates:
        return self._objective_search().solve(problem)

    def _prepare_objective(self, problem: ObjectiveProblem) -> None:
        self._objective_search().prepare(problem)

    def _objective_search(self, robot: RobotModel | None = None) -> "ObjectiveSearch":
        """Return the search for objectives; imports what it needs when it is first asked for."""
        with self._objectives_lock:
            if self._objectives is None:
                for package in ("jaxlie", "jaxls"):
                    if find_spec(package) is None:
                        raise SolverUnavailableError(
                            f"objectives need the package {package} (pip install 'kinopt_ros[jax]')"
                        )
                from kinopt_ros.solvers.jax_lm.objectives.program import objective_compilation
                from kinopt_ros.solvers.jax_lm.objectives.solver import ObjectiveSearch
                from kinopt_ros.solvers.jax_lm.programs import MOST_FOR_OBJECTIVES, Programs

                programs = Programs(self._runtime, objective_compilation, MOST_FOR_OBJECTIVES)
                weakref.finalize(self, programs.stop)
                self._objectives = ObjectiveSearch(robot or self.robot, programs), programs
            return self._objectives[0]

    def _compile_for(self, robot: RobotModel, group_name: str) -> None:
        """Compile or load all programs for a group's plain requests."""
        from kinopt_ros.solvers.jax_lm.chain import lane_chain
        from kinopt_ros.solvers.jax_lm.search import needed, stages

        chain = group_chain(robot, group_name)
        if chain is None or (chain.motion == Motion.QUATERNION).any():
            return
        if len(chain.variables) > self.capabilities.max_variables:  # such requests are refused
            return
        plan = stages(PoseTarget(chain.tip_link, np.eye(4)[None]), self._effort)
        for key in needed(lane_chain(robot, chain), plan, 1 << 20):
            check_wanted()
            self._programs.get(key)


def _effort(options: Mapping[str, Any], on_cpu: bool) -> Effort:
    jacobian = options["jacobian"]
    beam = BeamShape(
        options["beam.num_seeds"],
        options["beam.keep"],
        options["beam.init_steps"],
        options["beam.total_steps"],
    )
    wide = BeamShape(
        options["escalation.num_seeds"],
        options["escalation.keep"],
        options["escalation.init_steps"],
        options["escalation.total_steps"],
        ESCALATION_POLISH_STEPS,
    )
    for name, size in (("beam", beam), ("escalation", wide)):
        if size.keep > size.num_seeds:
            raise InvalidRequestError(
                f"{name}.keep ({size.keep}) must not exceed {name}.num_seeds ({size.num_seeds})"
            )
        if size.init_steps > size.total_steps:
            raise InvalidRequestError(
                f"{name}.init_steps ({size.init_steps}) must not exceed {name}.total_steps ({size.total_steps})"
            )
    return Effort(
        beam=Width(
            beam,
            _batch_sizes(options["batch_sizes"]) or (CPU_TARGETS if on_cpu else GPU_TARGETS),
            CPU_WORTH if on_cpu else GPU_WORTH,
        ),
        escalation=Width(wide, CPU_TARGETS_ESCALATED if on_cpu else GPU_TARGETS_ESCALATED),
        rounds=options["escalation.rounds"],
        autodiff=jacobian == "autodiff",
    )


def _batch_sizes(text: str) -> tuple[int, ...]:
    """Parse batch sizes; return them ascending, or none for empty text."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if not all(part.isdecimal() and 1 <= int(part) <= LARGEST_BATCH for part in parts):
        raise InvalidRequestError(
            f"batch_sizes is {text!r}; allowed are numbers from 1 to {LARGEST_BATCH}, and commas"
        )
    return tuple(sorted({int(part) for part in parts}))
