"""The page beside a running node, which moves the robot: joint states are drawn, and a gizmo that is let go asks for a
motion.

What talks to the node is handed in: nothing here knows ROS.
"""

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Protocol

from kinopt_ros.array import Float64
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.silence import silence
from kinopt_ros.viewer.page.page import GOAL, SEND, Page
from kinopt_ros.viewer.words import plain

SILENT_SECONDS = 1.0
"""Time after which joints that are not heard of are said to be silent, s."""


class Link(Protocol):
    """What talks to the node."""

    on_state: Callable[[Mapping[str, float]], None]
    on_report: Callable[[str], None]
    on_look: Callable[[], None]
    """Called some times a second, whatever is heard."""

    def send(self, T_root_tip: Annotated[Float64, "4 4"], tip: str, robot: RobotModel) -> None:
        """Ask the node for a motion of a tip, if it is the one that the node places; else report what it places."""


class BesideNode:
    """Joins a page to a node."""

    def __init__(self, page: Page, link: Link, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds."""
        self._page, self._link, self._clock = page, link, clock
        self._begun = clock()
        self._heard: dict[str, float] = {}
        """When each joint of the robot was heard of last."""
        self._silence = page.server.gui.add_markdown("", order=0.4, visible=False)
        self._report = page.server.gui.add_markdown(
            "The robot is the node's: let a gizmo go, and it moves there.", order=0.5
        )
        page.offer_modes((SEND, GOAL))
        page.released = self._released
        link.on_state = self._state
        link.on_report = self._say
        link.on_look = self._look

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
                self._heard[name] = self._clock()
        session.set_q(q)
        self._page.draw_robot()

    def _look(self) -> None:
        """Say of which joints nothing is heard any more."""
        now = self._clock()
        moving = {self._page.session.robot.variable_names[i] for i in self._page.session.variables}
        ages = {name: now - heard for name, heard in self._heard.items() if name in moving}
        said = silence(ages, SILENT_SECONDS) if ages or now > self._begun + SILENT_SECONDS else ""
        said = f"**{plain(said)}**" if said else ""
        if said != self._silence.content:
            self._silence.content, self._silence.visible = said, bool(said)

    def _say(self, sentence: str) -> None:
        self._report.content = f"**Node**: {plain(sentence)}"
