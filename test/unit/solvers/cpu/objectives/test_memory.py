"""Memory of the compiled search belongs to it as long as it runs, and one program is enough for all structures."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core.runtime import _nrt_python, rtsys

from kinopt_ros.costs.alignment import Alignment
from kinopt_ros.costs.base import Cost
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.look_at import LookAt
from kinopt_ros.costs.manipulability import Manipulability
from kinopt_ros.costs.position_limits import PositionLimits
from kinopt_ros.costs.rest import Rest
from kinopt_ros.numba_cache import without_compiling
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import objective_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.cpu.objectives.kernels.search import search
from kinopt_ros.solvers.cpu.objectives.solve import _Work
from kinopt_ros.solvers.cpu.plugin import CpuSolver
from kinopt_ros.status import Status


def arrays_in(arguments: Any) -> int:
    """Number of arrays in tuples of tuples: numba holds each as long as a call lasts."""
    if isinstance(arguments, np.ndarray):
        return 1
    return sum(map(arrays_in, arguments)) if isinstance(arguments, tuple) else 0


def test_arrays_of_a_search_are_not_freed_before_its_end(
    shared: Callable[[RobotModel], Solver], arm: RobotModel
) -> None:
    """They were, and other threads got what it was still writing to: whatever they computed was wrong, or the process
    ended with a segmentation fault."""
    solver = shared(arm)
    assert isinstance(solver, CpuSolver)
    objective = Objective([LinkPose(link="hand", T_base_target=np.eye(4), tolerance=None), Rest(weight=0.3)])
    problem = objective_problem(arm, [objective] * 1000)  # long beside the start and the end of a thread
    solver.prepare_objective(problem)
    structure = solver._objectives._packed(problem)
    work = _Work.start(problem, structure, solver._objectives._first(problem, structure))
    _nrt_python.memsys_enable_stats()
    entered = threading.Event()

    def run() -> None:
        entered.set()
        assert search(*structure.arrays, *work.asked, 10**9, *work.outcome)

    def held() -> int:
        stats = rtsys.get_allocation_stats()
        return int(stats.mi_alloc - stats.mi_free)

    known = held() + arrays_in((structure.arrays, work.asked, work.outcome))
    seen: list[bool] = []
    while len(seen) < 100:  # a machine may be too busy to look while it runs
        entered.clear()
        work.outcome.done[:], work.outcome.tried[:] = False, 0
        thread = threading.Thread(target=run)
        thread.start()
        entered.wait()
        while thread.is_alive():
            seen.append(held() > known + 20)
        thread.join()
    _nrt_python.memsys_disable_stats()
    assert np.mean(seen) > 0.5


def test_nothing_is_compiled_for_new_structures(
    shared: Callable[[RobotModel], Solver], arm: RobotModel, panda: RobotModel
) -> None:
    """One program solves and one judges all of them: requests do not wait for a compiler."""
    rng = np.random.default_rng(0)
    for robot in (arm, panda):
        shared(robot).warm_up()
    with without_compiling():
        for number in range(40):
            robot, link = (arm, "hand") if number % 2 else (panda, "panda_hand")
            axis, place = tuple(rng.normal(size=3)), tuple(rng.normal(size=3))
            known: list[Cost] = [
                Alignment(link=link, axis=axis, direction=place),
                LookAt(link=link, place=place),
                Manipulability(link=link, part="translation", weight=0.1),
                PositionLimits(margin=0.1),
                LinkPose(link=link, T_base_target=np.eye(4)),
            ]
            costs = [Rest(weight=0.3), *(cost for cost in known if rng.random() < 0.5)]
            size, starts = int(rng.integers(1, 6)), int(rng.integers(0, 4))
            result = shared(robot).solve_objective(
                objective_problem(robot, [Objective(costs)] * size, num_starts=starts)
            )
            assert (result.status == Status.NEAREST).all()
