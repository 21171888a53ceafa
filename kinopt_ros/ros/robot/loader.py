"""Builds the robot and its solvers outside the serving path, whenever a description or a setting changes."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kinopt_ros.errors import KinoptError, NotReadyError, said_by
from kinopt_ros.freed_memory import give_back
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.planning.solver_pool import SolverPool
from kinopt_ros.problems.builder import default_group, ik_problem
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import AUTO
from kinopt_ros.verification.collision import left_out_by_guess, without_shapes
from kinopt_ros.wanted import AbandonedError, as_long_as

_WARM_UP_SECONDS = 60.0
_CLOSE_SECONDS = 0.5
"""Longest wait for solvers to close, s: most do at once."""
_HANGS_SECONDS = 600.0
"""Time after which a solver that is still being prepared on demand keeps no other one waiting, s."""
_LOOK_SECONDS = 0.1
"""Time between two looks whether somebody still wants one that waits, s."""


@dataclass(frozen=True, eq=False)
class LoadedRobot:
    """A robot and the solvers that are configured for it. Replaced as a whole, never changed."""

    model: RobotModel
    pool: SolverPool


class RobotLoader:
    """Keeps the newest usable robot. Thread-safe.

    A description that cannot be used is reported and leaves the previous robot in service.
    """

    def __init__(
        self,
        report: Callable[[str, KinoptError | None], None],
        comes: Callable[[RobotModel], None] = lambda robot: None,
    ) -> None:
        """
        Args:
            report: called as ``report(sentence, error)`` after every attempt; error is None if it succeeded.
            comes: called with a robot before the first request can see it.
        """
        self._report = report
        self._comes = comes
        self._newest = 0
        self._unloaded = 0
        """Number of the newest attempt that nobody wants any more."""
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="robot_loader")
        self._afterwards = ThreadPoolExecutor(max_workers=1, thread_name_prefix="warm_up")
        """Prepares what a robot in service may need later, so that a new description need not wait for compilers."""
        self._to_warm_up: Callable[[], None] | None = None
        """What is prepared next: of the newest robot only, as those that it replaced would wait here in memory."""
        self._lock = threading.Lock()
        self._coming = threading.Lock()
        """Held while ``comes`` is called: after ``unload`` no robot comes that was asked for before."""
        self._closed = False
        self._loaded: LoadedRobot | None = None
        self._in_work: set[tuple[int, str]] = set()
        """Pools and the solvers that are prepared for them on demand."""
        self._one_at_a_time = threading.Lock()
        """Held by who prepares a solver on demand."""
        self._refusal: KinoptError = _none_yet()

    @property
    def loaded(self) -> LoadedRobot:
        """The robot in service.

        Raises:
            KinoptError: there is none; the message says why.
        """
        with self._lock:
            if self._loaded is None:
                raise self._refusal
            return self._loaded

    @property
    def is_ready(self) -> bool:
        """Whether a robot is in service."""
        with self._lock:
            return self._loaded is not None

    def load(
        self,
        build: Callable[[], RobotModel],
        options: Mapping[str, Mapping[str, Any]],
        solver: str,
        chain: Sequence[str],
    ) -> None:
        """Build a robot in the background, prepare its solvers, put it into service.

        ``solver`` comes first and solves what most requests ask for before the robot serves; those that may take over
        (``chain``, else what ``auto`` picks), and what only special requests need, follow. Others are prepared when a
        request names them. What was asked for meanwhile replaces what has not begun.
        """
        with self._lock:
            if self._closed:
                return
            self._newest += 1
            if self._loaded is None:
                self._refusal = NotReadyError(
                    "the robot is being loaded and its solver compiled, which takes minutes on a new, slow machine; "
                    "~/ready says when that is done"
                )
            self._worker.submit(self._load, self._newest, build, options, solver, chain)

    def unload(self) -> None:
        """Take the robot out of service, with its solvers; what is being loaded is not put into it."""
        with self._coming, self._lock:
            self._unloaded = self._newest
            loaded, self._loaded = self._loaded, None
            self._refusal = _none_yet()
        if loaded is not None:
            loaded.pool.retire()  # running requests keep it until they are done
        with self._lock:
            if not self._closed:
                self._afterwards.submit(give_back)

    def close(self) -> None:
        """Stop loading and close the solvers. Nothing is reported any more."""
        with self._lock:
            self._closed = True
        for worker in (self._worker, self._afterwards):
            worker.shutdown(wait=False, cancel_futures=True)  # a compiler may be at work
        with self._lock:
            loaded, self._loaded = self._loaded, None
            self._refusal = NotReadyError("the node is shutting down")
        if loaded is not None:
            # A plugin may wait for its compiler, or not come back: the end of the process does not wait for that.
            closing = threading.Thread(target=loaded.pool.close, name="closing solvers")
            closing.start()
            closing.join(_CLOSE_SECONDS)

    def _load(
        self,
        number: int,
        build: Callable[[], RobotModel],
        options: Mapping[str, Mapping[str, Any]],
        solver: str,
        chain: Sequence[str],
    ) -> None:
        if number != self._newest or number == self._unloaded:
            return
        try:
            model = build()
            pool = SolverPool(model, options, chain, on_demand=lambda name: self._prepare_later(pool, name))
            unable = _prepare(pool, solver)
            # Who takes over must be there when the first request comes.
            for name in (chain or (AUTO,)) if unable else ():
                if name != solver and not _prepare(pool, name):
                    break
        except Exception as error:  # nothing may end the worker: the node must keep serving
            refusal = error if isinstance(error, KinoptError) else KinoptError(said_by(error))
            with self._lock:
                if self._closed or number <= self._unloaded:
                    return
                self._refusal = refusal
            self._report(f"robot not loaded: {refusal}", refusal)
            return
        sentences = tuple(dict.fromkeys((*model.warnings, *unable)))
        with self._coming:  # not the other lock: who has one of the scene's may ask for the robot in service
            if number > self._unloaded:
                self._comes(model)
        with self._lock:
            closed = self._closed or number <= self._unloaded
            if not closed:
                # The previous pool is left to its running requests; it goes when the last of them does.
                if self._loaded is not None:
                    self._loaded.pool.retire()
                self._loaded = LoadedRobot(model, pool)
                self._to_warm_up = partial(self._warm_up, model, pool, solver, chain, set(sentences))
                self._afterwards.submit(self._warm_up_newest)
        if closed:
            pool.close()
            return
        self._report(
            f"ready: robot {model.name!r}, {model.nq} variables, groups {', '.join(model.groups)}", None
        )
        for sentence in sentences:
            self._report(sentence, None)

    def _warm_up_newest(self) -> None:
        with self._lock:
            warm_up, self._to_warm_up = self._to_warm_up, None
        if warm_up is not None:
            warm_up()

    def _warm_up(
        self,
        model: RobotModel,
        pool: SolverPool,
        solver: str,
        chain: Sequence[str],
        told: set[str],
    ) -> None:
        """Prepare what only some requests need, as long as the robot serves; log what is not possible, and when all is
        done."""

        def tell(sentences: Iterable[str]) -> None:
            for sentence in sentences:
                if sentence not in told and self._serves(model):
                    told.add(sentence)
                    self._report(sentence, None)

        # Others, which may be large, are prepared when they are asked for.
        for name in chain or (AUTO,):
            if name != solver and self._serves(model):
                tell(_prepare(pool, name, ik=False))

        def guess() -> None:
            tell(left_out_by_guess(model))

        def collisions() -> None:
            tell(without_shapes(model))  # before anybody hears it in a refusal
            prepare_collisions(model)

        # Last what only some requests need and takes its time: compiling, reading meshes; what most need comes first,
        # and motions last, as ``SolverPool.missing`` has it. All of it asks now and then whether the robot still
        # serves, so that the next one need not wait.
        for work in (collisions, guess, pool.warm_up, pool.warm_up_trajectories):
            if self._serves(model):
                try:
                    with as_long_as(lambda: self._serves(model)):
                        work()
                except AbandonedError:
                    return
                except Exception as error:  # as above
                    tell([said_by(error)])
        give_back()  # what was needed to get ready, and by the robot before
        if not pool.missing:
            tell([f"robot {model.name!r}: all is prepared"])

    def _serves(self, model: RobotModel) -> bool:
        with self._lock:
            return self._loaded is not None and self._loaded.model is model

    def _prepare_later(self, pool: SolverPool, name: str) -> None:
        """Prepare a solver on a thread of its own, unless that is being done or the node shuts down.

        One at a time, as compilers take gigabytes, and only as long as the pool's robot serves.
        """

        def wanted() -> bool:
            return not self._closed and self._serves(pool.robot)

        def work() -> None:
            turn = self._turn(wanted)
            try:
                with as_long_as(wanted):
                    for sentence in _prepare(pool, name, ik=False) if wanted() else ():
                        if wanted():
                            self._report(sentence, None)
            finally:
                if turn is not None:
                    turn.release()
                with self._lock:
                    self._in_work.discard((id(pool), name))

        with self._lock:
            if self._closed or (id(pool), name) in self._in_work:
                return
            self._in_work.add((id(pool), name))
        # No daemon: the end of the process looks for threads at work that are none.
        threading.Thread(target=work, name=f"prepare {name}", daemon=False).start()

    def _turn(self, wanted: Callable[[], bool]) -> "threading.Lock | None":  # no class before Python 3.13
        """Wait for one's turn to prepare a solver on demand; return what is held then, None if nobody wants it any
        more."""
        held, begin = self._one_at_a_time, time.monotonic()
        while not held.acquire(timeout=_LOOK_SECONDS):
            if not wanted():
                return None
            if time.monotonic() - begin > _HANGS_SECONDS:
                with self._lock:
                    # Its holder hangs: the others take turns by another one.
                    if held is self._one_at_a_time:
                        self._one_at_a_time = threading.Lock()
                    held, begin = self._one_at_a_time, time.monotonic()
        return held


def _none_yet() -> KinoptError:
    return NotReadyError(
        "no robot yet: set the parameter robot_description or publish the topic robot_description"
    )


def _prepare(pool: SolverPool, solver: str, ik: bool = True) -> list[str]:
    """Configure a solver and solve what requests ask for, so that none of them waits for a compiler.

    ``ik`` says whether one that optimizes trajectories alone is unable to do what it is wanted for.

    Returns why that is not possible or not wanted, if so: forward kinematics, and other solvers, serve all the same.
    """
    try:
        prepared = pool.prepare(solver)
        if not (ik or prepared.solves_ik()):
            return []
        group = default_group(pool.robot)
        if not prepared.is_prepared_for(group.name):
            return [
                f"solver {prepared.name!r} compiles what plain requests of {group.name!r} need when the first one "
                "comes; other solvers may answer meanwhile"
            ]
        # As requests do it: with a deadline, reachable and not.
        links = (group.base_link or pool.robot.root_link, group.tip_link or pool.robot.root_link)
        T = forward_kinematics(pool.robot, pool.robot.default_q, links=links)
        for T_base_target in (inverse(T[0]) @ T[1], np.eye(4)):
            deadline = time.monotonic() + _WARM_UP_SECONDS
            problem = ik_problem(pool.robot, T_base_target, group=group.name, deadline=deadline)
            pool.solve_ik(problem, solver, allow_fallback=False)
    except KinoptError as error:
        return [str(error)]
    return []
