"""The solvers that answer now: others may take their place meanwhile, and they are closed once nobody uses them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kinopt_ros.solvers.base import Solver


@dataclass(eq=False)
class _Pair:
    """Solvers for poses and for plans: a plan must not keep who drags a gizmo waiting."""

    for_poses: Solver
    for_plans: Solver
    users: int = 0
    replaced: bool = False

    def close_if_free(self) -> None:
        """Free what they hold, if others have taken their place and nobody uses them."""
        if self.replaced and self.users == 0:
            self.for_poses.close()
            self.for_plans.close()


class SolverSlot:
    """Place of two solvers. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pair: _Pair | None = None

    @contextmanager
    def for_poses(self) -> Iterator[Solver | None]:
        """Use the solver for poses; None if there is none."""
        with self._used() as pair:
            yield None if pair is None else pair.for_poses

    @contextmanager
    def for_plans(self) -> Iterator[Solver | None]:
        """Use the solver for plans; None if there is none."""
        with self._used() as pair:
            yield None if pair is None else pair.for_plans

    def put(self, for_poses: Solver, for_plans: Solver) -> None:
        """Let others answer from now on."""
        self._replace(_Pair(for_poses, for_plans))

    def clear(self) -> None:
        """Let none answer any more."""
        self._replace(None)

    def _replace(self, pair: _Pair | None) -> None:
        with self._lock:
            before, self._pair = self._pair, pair
            if before is not None:
                before.replaced = True
                before.close_if_free()

    @contextmanager
    def _used(self) -> Iterator[_Pair | None]:
        with self._lock:
            pair = self._pair
            if pair is not None:
                pair.users += 1
        try:
            yield pair
        finally:
            if pair is not None:
                with self._lock:
                    pair.users -= 1
                    pair.close_if_free()
