"""A slider for each joint, named states, and a random reachable pose."""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.sampling import sampling_range
from kinopt_ros.viewer.page.actions import Actions
from kinopt_ros.viewer.session import Session

_CHOOSE = "choose"


class JointsPanel:
    """Sliders of the joints that move, and of all others that have one variable."""

    def __init__(self, server: Any, session: Session, actions: Actions, moved: Callable[[], None]) -> None:
        """``moved`` is called after the robot was put somewhere else by hand."""
        self._server, self._session, self._moved = server, session, moved
        gui = server.gui
        if session.states:
            self._states = gui.add_dropdown("Named state", (_CHOOSE, *session.states))
            self._states.on_update(actions.guarded(self._go_to_state))
        lower, upper = sampling_range(session.robot)
        self._sliders: dict[str, Any] = {}
        for i, name in enumerate(session.robot.variable_names):
            low, high = float(lower[i]), float(upper[i])
            if not high > low:
                continue
            value = float(np.clip(session.q[i], low, high))
            slider = gui.add_slider(name, low, high, (high - low) / 1000.0, value)
            slider.on_update(actions.guarded(self._set(name)))
            self._sliders[name] = slider

    def show(self, q: Annotated[Float64, "nq"]) -> None:
        """Put the sliders where the robot is."""
        for name, slider in self._sliders.items():
            slider.value = float(np.clip(q[self._session.robot.variable_index[name]], slider.min, slider.max))

    def _set(self, name: str) -> Callable[[Any], None]:
        def set_it(event: Any) -> None:
            self._session.set_variable(name, float(event.target.value))
            self._moved()

        return set_it

    def _go_to_state(self, event: Any) -> None:
        wanted, event.target.value = event.target.value, _CHOOSE  # so that the same one can be chosen again
        if wanted != _CHOOSE:
            self._session.go_to_state(wanted)
            self._moved()
