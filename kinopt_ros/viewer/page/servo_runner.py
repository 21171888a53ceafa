"""The thread of servo by dragging."""

import threading
import time
from collections.abc import Callable

from kinopt_ros.viewer.servo import PERIOD, DraggedServo, ServoState
from kinopt_ros.viewer.session import Session


class ServoRunner:
    """Lets the robot follow the gizmo, period by period, on a thread of its own."""

    def __init__(
        self, session: Session, shown: Callable[[ServoState], None], failed: Callable[[BaseException], None]
    ) -> None:
        """
        Args:
            session: whose robot moves.
            shown: is told every state.
            failed: is told what ends servo.
        """
        self._session, self._shown, self._failed = session, shown, failed
        self._on = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def on(self) -> bool:
        """Whether servo runs."""
        return self._on.is_set()

    def start(self) -> None:
        """Begin where the robot stands."""
        if not self._on.is_set():
            self._on.set()
            self._thread = threading.Thread(target=self._run, name="servo", daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Come to rest, at most so long (s), and end."""
        self._on.clear()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        session, settings = self._session, self._session.settings
        try:
            servo = DraggedServo(
                session.robot,
                session.tips,
                session.joints,
                session.q,
                time.monotonic_ns(),
                velocity_scaling=settings["velocity_scaling"],
                acceleration_scaling=settings["acceleration_scaling"],
                scene=session.scene,
                clearance=settings["clearance"],
            )
            due = time.monotonic()
            while True:
                target = next(iter(session.targets.values())) if self._on.is_set() else None
                tolerance = settings["position_tolerance"], settings["orientation_tolerance"]
                state = servo.step(time.monotonic_ns(), target, session.scene, tolerance)
                session.set_q(state.q)
                self._shown(state)
                if target is None and state.at_rest:
                    return
                due = max(due + PERIOD, time.monotonic())
                time.sleep(max(0.0, due - time.monotonic()))
        except Exception as error:  # the page says so, and goes on without servo
            self._failed(error)
        finally:
            self._on.clear()
