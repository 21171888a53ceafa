"""A gizmo for each tip."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import matrix_to_quaternion, normalized, pose, quaternion_to_matrix

Dragged = Callable[[str, Annotated[Float64, "4 4"]], None]


def pose_of(handle: Any) -> Annotated[Float64, "4 4"]:
    """Return the pose of what was dragged; not a number where that is none."""
    wxyz, position = np.asarray(handle.wxyz, np.float64), np.asarray(handle.position, np.float64)
    length = float(np.linalg.norm(wxyz))
    if not (np.isfinite(wxyz).all() and np.isfinite(position).all() and 0.5 < length < 2.0):
        return np.full((4, 4), np.nan)
    return pose(quaternion_to_matrix(normalized(wxyz)), position)


class Gizmos:
    """Gizmos of the tips."""

    def __init__(self, server: Any, scale: float, dragged: Dragged, released: Callable[[str], None]) -> None:
        """
        Args:
            server: viser's.
            scale: length of their axes, m.
            dragged: is told the tip and its new pose, on viser's thread; must be quick.
            released: is told the tip when its gizmo is let go, likewise.
        """
        self._server, self._scale = server, scale
        self._dragged, self._released = dragged, released
        self._handles: dict[str, Any] = {}

    def show(self, targets: Mapping[str, Annotated[Float64, "4 4"]]) -> None:
        """Put them somewhere; those of other tips go."""
        for tip in [tip for tip in self._handles if tip not in targets]:
            self._handles.pop(tip).remove()
        for i, (tip, T) in enumerate(targets.items()):
            if tip not in self._handles:
                self._handles[tip] = self._new(i, tip)
            handle = self._handles[tip]
            handle.wxyz, handle.position = matrix_to_quaternion(T[:3, :3]), T[:3, 3]

    def _new(self, number: int, tip: str) -> Any:
        handle = self._server.scene.add_transform_controls(
            f"/gizmo/{number}", scale=self._scale, line_width=3.0, depth_test=False
        )

        @handle.on_update  # type: ignore[untyped-decorator]
        async def _(event: Any) -> None:
            T = pose_of(event.target)
            self._dragged(tip, T)
            # viser says "end" of a drag, too, when its connection is lost: nobody has let the gizmo go then.
            there = event.client_id in self._server.get_clients()
            if event.phase == "end" and there and tip in self._handles and np.isfinite(T).all():
                self._released(tip)

        return handle
