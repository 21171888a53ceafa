"""Node with the states of ROS 2's managed nodes (design.ros2.org, "Managed nodes"), if it is wanted.

========================== =========== ========= ======== =====================================================
state                      description robot     requests motions
========================== =========== ========= ======== =====================================================
unconfigured               heard       none      refused  none
inactive (configured)      heard       in memory refused  none: what runs is stopped on the way from active
active                     heard       in memory answered as in a node that is not managed
finalized (shut down)      heard       none      refused  none, for ever
========================== =========== ========= ======== =====================================================
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from rclpy._rclpy_pybind11 import RCLError
from rclpy.lifecycle import LifecycleNodeMixin, TransitionCallbackReturn

from kinopt_ros.ros.serving.defects import log_defect
from kinopt_ros.ros.serving.urgent import TimelyNode


class ManagedNode(LifecycleNodeMixin, TimelyNode, ABC):
    """A node that has the services of a managed one (``~/change_state`` and others) once ``manage`` was called.

    Transitions run on the executor's thread.
    """

    def __init__(self, name: str, **node_options: Any) -> None:
        TimelyNode.__init__(self, name, **node_options)

    def manage(self) -> None:
        """Offer the services of a managed node, which is unconfigured."""
        LifecycleNodeMixin.__init__(self)

    @abstractmethod
    def configure(self) -> None:
        """Begin to build the robot and its solvers, now and whenever a description comes; return at once."""

    @abstractmethod
    def activate(self) -> None:
        """Answer requests, and let the robot move."""

    @abstractmethod
    def deactivate(self) -> None:
        """Stop what this node moves, and refuse requests and motions from now on."""

    @abstractmethod
    def clean_up(self) -> None:
        """Forget the robot, its solvers and the scene."""

    @abstractmethod
    def finalize(self) -> None:
        """Refuse all that comes for ever."""

    def on_configure(self, state: Any) -> TransitionCallbackReturn:
        """Answer the transition from unconfigured to inactive."""
        return self._done(state, self.configure)

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        """Answer the transition from inactive to active."""
        return self._done(state, self.activate)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        """Answer the transition from active to inactive."""
        return self._done(state, self.deactivate)

    def on_cleanup(self, state: Any) -> TransitionCallbackReturn:
        """Answer the transition from inactive to unconfigured."""
        return self._done(state, self.clean_up)

    def on_shutdown(self, state: Any) -> TransitionCallbackReturn:
        """Answer the transition from any state to finalized."""
        return self._done(state, self.deactivate, self.clean_up, self.finalize)

    def on_error(self, state: Any) -> TransitionCallbackReturn:
        """Stop and clean up after a transition that failed: the node is unconfigured then, or else finalized."""
        return self._done(state, self.deactivate, self.clean_up)

    def _LifecycleNodeMixin__on_change_state(self, request: Any, response: Any) -> Any:
        """As rclpy's, and refuse what is not possible now: rclpy of Jazzy raises, and its client gets no answer."""
        try:
            return super()._LifecycleNodeMixin__on_change_state(request, response)  # type: ignore[misc]
        except RCLError:
            response.success = False
            return response

    def _done(self, state: Any, *steps: Callable[[], None]) -> TransitionCallbackReturn:
        """Take all steps, also where one fails: rclpy would not say which exception ended a transition."""
        done = TransitionCallbackReturn.SUCCESS
        for step in steps:
            try:
                step()
            except Exception as error:
                log_defect(self.get_logger(), f"in the transition {step.__name__} from {state.label}", error)
                done = TransitionCallbackReturn.ERROR
        return done
