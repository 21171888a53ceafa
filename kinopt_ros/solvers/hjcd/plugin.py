"""The ``hjcd`` plugin: many starts in parallel, in Warp. Importing this module does not import Warp."""

import math
import threading
import weakref
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.problems.ik import IkProblem
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.solvers.base import Capabilities, Feature, Option, Solver
from kinopt_ros.solvers.hjcd.chain import kernel_chain
from kinopt_ros.solvers.locked_joints import DEFAULT_GROUP, group_chain, named_groups
from kinopt_ros.solvers.result import IkCandidates
from kinopt_ros.solvers.version import package_version

if TYPE_CHECKING:
    from kinopt_ros.solvers.hjcd.engine import DeviceLostError
    from kinopt_ros.solvers.hjcd.stand_in import StandIn

ALGORITHMS = ("screened_lm", "hjcd_ik")
DEVICES = ("auto", "cpu", "cuda", "cuda:N")


class HjcdSolver(Solver):
    """Thousands of starts at once, on CUDA devices or, with the same kernels, on the CPU.

    Two algorithms: ``screened_lm`` (starts whose tips are nearest to the target, damped least squares) and ``hjcd_ik``
    (that of the paper: orientation-aware coordinate descent, selection, Jacobian-based refinement). Requests that are
    not solved get further rounds from other starts. A request's answer is the solution nearest to its state among those
    that its round ends with.

    Where this process cannot use its device any more, a child process with the same engine answers.
    """

    name: ClassVar[str] = "hjcd"
    version: ClassVar[str] = package_version()
    capabilities: ClassVar[Capabilities] = Capabilities(
        joint_types=frozenset(
            {JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC, JointType.PLANAR}
        ),
        features=frozenset({Feature.TOOL, Feature.SEVERAL_SOLUTIONS}),
        max_variables=32,
    )
    options: ClassVar[tuple[Option, ...]] = (
        Option(
            "device",
            "auto",
            "Where to compute: auto (the first CUDA device, else the CPU), cpu, cuda, cuda:1, ...",
            choices=DEVICES,
        ),
        Option(
            "algorithm",
            "screened_lm",
            "screened_lm (the best of many starts by their tips, then damped least squares), or hjcd_ik (HJCD-IK as "
            "published: PO-CCD and PJ-IK)",
            choices=ALGORITHMS,
        ),
        Option("rounds", 12, "Most rounds per request, each from other starts", 1, 10_000),
        Option(
            "screen.num_starts",
            1024,
            "screened_lm: configurations per round whose tips are compared",
            2,
            1_000_000,
        ),
        Option("screen.keep", 16, "screened_lm: how many of them are refined", 2, 4096),
        Option("screen.steps", 16, "screened_lm: most float32 steps of each", 1, 1000),
        Option(
            "graphs",
            False,
            "On CUDA devices: replay rounds as CUDA graphs, captured when they are first asked for and for "
            "1, 16, 128, 1024 or 8192 targets (an H200 saves 2 to 10 % of single targets)",
        ),
        Option("coarse.num_seeds", 100, "hjcd_ik: starts per request and round", 1, 8192),
        Option("coarse.max_iterations", 20, "hjcd_ik: most iterations of PO-CCD", 0, 10_000),
        Option("coarse.position_tolerance", 0.02, "hjcd_ik: where PO-CCD ends, m ...", 0.0, 10.0),
        Option("coarse.orientation_tolerance", 0.5 * math.pi, "hjcd_ik: ... and rad", 0.0, math.pi),
        Option("coarse.gain", 1e-5, "hjcd_ik: least improvement by a step of PO-CCD, m or rad", 0.0, 1.0),
        Option(
            "coarse.noise", 0.05, "hjcd_ik: perturbations in PO-CCD, part of each joint's range", 0.0, 1.0
        ),
        Option("refine.max_iterations", 40, "hjcd_ik: most iterations of PJ-IK", 0, 10_000),
        Option("refine.radius", 0.3, "hjcd_ik: trust region of PJ-IK, rad or m", 1e-6, 10.0),
        Option(
            "refine.noise", 0.015, "hjcd_ik: perturbations in PJ-IK, part of each joint's range", 0.0, 1.0
        ),
        Option(
            "groups",
            DEFAULT_GROUP,
            "Groups whose requests never wait for the compiler, separated by commas; default: the group that requests "
            "mean which name none; kernels for other numbers of joints are compiled when they are first asked for",
        ),
    )

    @classmethod
    def unavailable_reason(cls) -> str | None:
        """Return why the plugin cannot run here; None if it can. Without a CUDA device it runs on the CPU."""
        if find_spec("warp") is None:
            return "the package warp-lang is not installed (pip install warp-lang)"
        return None

    def _configure(self, robot: RobotModel, options: Mapping[str, Any]) -> None:
        _check(options)  # refuses before anything is loaded
        self._groups = named_groups(robot, options["groups"])

        from kinopt_ros.solvers.hjcd.engine import Engine

        self._options = dict(options)
        self._engine = Engine(robot, options)
        weakref.finalize(self, self._engine.stop)  # who is replaced is not closed
        self._stand_in: StandIn | None = None
        self._closed = False
        self._lock = threading.Lock()
        for name in self._groups:
            self._load_for(robot, name)

    def is_prepared_for(self, group: str) -> bool:
        """Return whether the option ``groups`` names a group."""
        return group in self._groups

    def close(self) -> None:
        """Release what the solver holds. It cannot be used afterwards."""
        if self._robot is not None:
            with self._lock:
                self._closed = True
            if self._stand_in is not None:
                self._stand_in.close()
            self._engine.close()
        super().close()

    @property
    def algorithm(self) -> str:
        """Name of the algorithm that answers."""
        return self._engine.algorithm.name

    @property
    def remark(self) -> str:
        """Whether a child process answers, and why."""
        stand_in = self._stand_in
        return "" if stand_in is None else f"works in a child process: {stand_in.reason}"

    def _solve_ik(self, problem: IkProblem) -> IkCandidates:
        return self._solved(problem, False)

    def _solve_pool(self, problem: IkProblem) -> IkCandidates:
        return self._solved(problem, True)

    def _solved(self, problem: IkProblem, every_lane: bool) -> IkCandidates:
        from kinopt_ros.solvers.hjcd.engine import DeviceLostError

        stand_in = self._stand_in
        if stand_in is None:
            try:
                return self._engine.solve(problem, every_lane)
            except DeviceLostError as error:
                stand_in = self._found_lost(error)
                if problem.deadline is not None:  # which does not wait for a process to start
                    stand_in.begin()
                    raise DeviceLostError(f"{error}; a child process is started to go on in") from error
        return stand_in.solve(problem, every_lane)

    def _found_lost(self, error: "DeviceLostError") -> "StandIn":
        """Return what answers from now on, whoever finds out first."""
        from kinopt_ros.solvers.hjcd.stand_in import StandIn

        with self._lock:
            if self._closed:
                raise error
            if self._stand_in is None:
                # The device by its name: a child must not take another one for it.
                options = {**self._options, "device": self._engine.device}
                self._stand_in = StandIn(self.robot, options, self._engine.loaded, str(error))
            return self._stand_in

    def _load_for(self, robot: RobotModel, group_name: str) -> None:
        """Load the kernels for a group's plain requests."""
        chain = group_chain(robot, group_name)
        types = {robot.joint(name).type for name in robot.group(group_name).joints}
        able = types <= self.capabilities.joint_types
        if chain is not None and able and len(chain.variables) <= self.capabilities.max_variables:
            self._engine.load([kernel_chain(robot, chain).shape])


def _check(options: Mapping[str, Any]) -> None:
    if options["screen.keep"] > options["screen.num_starts"]:
        raise InvalidRequestError(
            f"screen.keep ({options['screen.keep']}) must not exceed screen.num_starts ({options['screen.num_starts']})"
        )
    for name, value in options.items():
        if isinstance(value, float) and not np.isfinite(value):
            raise InvalidRequestError(f"{name} is {value}; give a finite number")
