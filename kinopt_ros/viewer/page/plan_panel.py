"""Planning to the gizmos, and playing what was planned."""

import threading
import time
from collections.abc import Callable
from typing import Annotated, Any

from kinopt_ros.array import Float64
from kinopt_ros.viewer.newest import Newest
from kinopt_ros.viewer.page.actions import Actions
from kinopt_ros.viewer.page.plots import Plots
from kinopt_ros.viewer.planned import PlannedMotion
from kinopt_ros.viewer.session import Session
from kinopt_ros.viewer.words import OUTDATED, of_failure, of_motion

_FRAME = 1.0 / 60.0
"""s between two pictures of a motion that is played."""


class PlanPanel:
    """Buttons that plan and play, a slider of time, curves."""

    def __init__(
        self,
        server: Any,
        session: Session,
        actions: Actions,
        draw: Callable[[Annotated[Float64, "nq"]], None],
        arrived: Callable[[], None],
    ) -> None:
        """
        Args:
            server: viser's.
            session: what is planned for.
            actions: what handlers of events are wrapped by.
            draw: draws the robot without moving it.
            arrived: is called when the robot was put at the end of a motion.
        """
        self._server, self._session, self._draw, self._arrived = server, session, draw, arrived
        self._worker = Newest("plan", actions.failed)
        self._playing = threading.Event()
        self._cancel = threading.Event()
        gui = server.gui
        self._plan = gui.add_button("Plan to the gizmo", icon="route", color="green")
        self._stop = gui.add_button("Stop planning", icon="player-stop", visible=False)
        self._said = gui.add_markdown("A plan begins where the robot is and ends at the gizmo.")
        self._time = gui.add_slider("time, s", 0.0, 1.0, 0.001, 0.0, visible=False)
        self._play = gui.add_button("Play", icon="player-play", visible=False)
        self._take = gui.add_button("Put the robot at the end", icon="check", visible=False)
        self._plots = Plots(server)
        self._plan.on_click(actions.guarded(lambda _: self.plan()))
        self._stop.on_click(actions.guarded(lambda _: self._cancel.set()))
        self._time.on_update(actions.guarded(lambda event: self._show_at(float(event.target.value))))
        self._play.on_click(actions.guarded(lambda _: self._toggle()))
        self._take.on_click(actions.guarded(lambda _: self._take_end()))

    @property
    def said(self) -> str:
        """What is said of the last plan."""
        return str(self._said.content)

    @property
    def is_playing(self) -> bool:
        """Whether a motion is played."""
        return self._playing.is_set()

    def plan(self) -> None:
        """Plan on a thread of its own."""
        self._playing.clear()
        self._cancel.clear()
        self._worker.ask("plan", self._work)

    def look_again(self) -> None:
        """Say of a motion whether the scene is still the one that it was verified in."""
        motion = self._session.motion
        if motion is None or self._said.content == OUTDATED:
            return
        scene = motion.problem.scene
        # What was planned without a scene does not hold once collisions are avoided.
        if self._session.avoid_collisions if scene is None else scene is not self._session.obstacles.scene:
            self._said.content = OUTDATED

    def wait(self, timeout: float) -> bool:
        """Wait for a plan, at most so long (s)."""
        return self._worker.wait(timeout)

    def close(self) -> None:
        """End what runs."""
        self._cancel.set()
        self._playing.clear()
        self._worker.close()

    def _work(self) -> None:
        self._said.content = "planning ..."
        self._plan.disabled, self._stop.visible = True, True
        motion: PlannedMotion | None = None
        try:
            result = self._session.plan(lambda *_: not self._cancel.is_set())
            motion = self._session.motion
            self._said.content = (
                of_failure(result.status, result.message) if motion is None else of_motion(motion)
            )
            self.look_again()  # the scene may have changed while it was planned
        finally:
            self._plan.disabled, self._stop.visible = False, False
            if self._said.content == "planning ...":
                self._said.content = "There is no plan."
        self._plots.show(motion)
        for handle in (self._time, self._play, self._take):
            handle.visible = motion is not None
        if motion is not None:
            self._time.max = motion.duration
            self._time.value = 0.0
            self._begin(motion)

    def _toggle(self) -> None:
        motion = self._session.motion
        if self._playing.is_set():
            self._playing.clear()
        elif motion is not None:
            self._begin(motion)

    def _begin(self, motion: PlannedMotion) -> None:
        self._playing.set()
        self._play.label = "Pause"
        threading.Thread(target=self._run, args=(motion,), name="play", daemon=True).start()

    def _run(self, motion: PlannedMotion) -> None:
        begin = float(self._time.value)
        begin = 0.0 if begin >= motion.duration - 1e-3 else begin
        start = time.monotonic()
        try:
            while self._playing.is_set() and motion is self._session.motion:
                passed = begin + time.monotonic() - start
                self._draw(motion.at(passed))
                self._time.value = min(passed, motion.duration)
                if passed >= motion.duration:
                    break
                time.sleep(_FRAME)
        finally:  # else the robot would never be drawn again where it is
            self._playing.clear()
            self._play.label = "Play"

    def _show_at(self, seconds: float) -> None:
        self._playing.clear()
        motion = self._session.motion
        if motion is not None:
            self._draw(motion.at(seconds))

    def _take_end(self) -> None:
        self._playing.clear()
        motion = self._session.motion
        if motion is not None:
            self._session.set_q(motion.at(motion.duration))
            self._arrived()
