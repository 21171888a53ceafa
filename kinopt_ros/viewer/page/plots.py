"""Curves of a motion."""

from typing import Any

import numpy as np

from kinopt_ros.viewer.planned import PlannedMotion

_COLORS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e")
_LIMIT = {"label": "limit", "stroke": "#888888", "width": 1, "dash": [4, 4]}
_TITLES = {
    "position": "position / half its range",
    "velocity": "velocity / limit asked for",
    "acceleration": "acceleration / limit asked for",
}


class Plots:
    """Position, velocity and acceleration of the joints against their limits, which are at -1 and 1."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._handles: list[Any] = []
        self._folder = server.gui.add_folder("Curves", visible=False)

    def show(self, motion: PlannedMotion | None) -> None:
        """Draw the curves of a motion; none removes them."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._folder.visible = motion is not None
        if motion is None:
            return
        curves = motion.curves
        line = np.ones_like(curves.time)
        series = (
            {"label": "s"},
            *(
                {"label": name, "stroke": _COLORS[i % len(_COLORS)], "width": 1.5}
                for i, name in enumerate(curves.names)
            ),
            _LIMIT,
            {**_LIMIT, "label": "-limit"},
        )
        with self._folder:
            for what, title in _TITLES.items():
                values = getattr(curves, what)
                self._handles.append(
                    self._server.gui.add_uplot(
                        (curves.time, *values.T.copy(), line, -line),
                        series,
                        title=title,
                        scales={"x": {"time": False}, "y": {"range": _range(values)}},
                        legend={"show": False},
                        aspect=2.0,
                    )
                )


def _range(values: Any) -> tuple[float, float]:
    most = 1.1 * max(1.0, float(np.abs(values).max(initial=0.0)))
    return -most, most
