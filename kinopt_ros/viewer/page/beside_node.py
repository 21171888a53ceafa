"""The page beside a running node, which moves the robot: joint states are drawn, and a gizmo that is let go asks for a
motion.

What talks to the node is handed in: nothing here knows ROS.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Protocol

from kinopt_ros.array import Float64
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.viewer.page.page import GOAL, SEND, Page
from kinopt_ros.viewer.words import plain


class Link(Protocol):
    """What talks to the node."""

    on_state: Callable[[Mapping[str, float]], None]
    on_report: Callable[[str], None]

    def send(self, T_root_tip: Annotated[Float64, "4 4"], tip: str, robot: RobotModel) -> None:
        """Ask the node for a motion of a tip, if it is the one that the node places; else report what it places."""


class BesideNode:
    """Joins a page to a node."""

    def __init__(self, page: Page, link: Link) -> None:
        self._page, self._link = page, link
        self._report = page.server.gui.add_markdown(
            "The robot is the node's: let a gizmo go, and it moves there.", order=0.5
        )
        page.offer_modes((SEND, GOAL))
        page.released = self._released
        link.on_state = self._state
        link.on_report = self._say

    def _released(self, tip: str) -> None:
        if self._page.mode.value == SEND:
            session = self._page.session
            self._say("asked the node")
            self._link.send(session.targets[tip], tip, session.robot)

    def _state(self, positions: Mapping[str, float]) -> None:
        session = self._page.session
        q = session.q.copy()
        for name, value in positions.items():
            index = session.robot.variable_index.get(name)
            if index is not None:
                q[index] = value
        session.set_q(q)
        self._page.draw_robot()

    def _say(self, sentence: str) -> None:
        self._report.content = f"**Node**: {plain(sentence)}"
