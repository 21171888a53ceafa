"""Runs the nodes of a process: one, or one for each of several robots, which have nothing in common but the process."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import rclpy
from rclpy._rclpy_pybind11 import RCLError
from rclpy.exceptions import InvalidNamespaceException, ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from kinopt_ros.errors import InvalidRequestError, quoted
from kinopt_ros.interrupts import heard_at_once
from kinopt_ros.ros.node import ANSWER_SECONDS, STOP_SECONDS, KinoptNode
from kinopt_ros.ros.serving.guarded_executor import GuardedExecutor
from kinopt_ros.ros.serving.start_errors import argument_error, naming_arguments
from kinopt_ros.ros.serving.urgent import RestExecutor

_SWITCH_SECONDS = 5e-4
_COLLECT_SECONDS = 10.0
"""Least time between two collections of cyclic garbage, s."""
_PUT_OFF_SECONDS = 60.0
"""Longest time that a collection is put off while there is much to look through, s."""
_MANY_BLOCKS = 100_000
"""Increase of memory blocks that puts a collection off: most likely they belong to large messages that wait."""


def spin(arguments: list[str] | None = None) -> None:
    """Run one node, or one in each of the namespaces that the arguments name before ``--ros-args``, until the process
    is interrupted or ROS shuts down.

    Each node has four executors with a thread each, one of them for what is urgent, one for joint states and one for
    topics of the scene: no node waits for another one, and an emergency stop for nothing.

    Raises:
        KinoptError: an argument, or a parameter given at the start, is not allowed.
    """
    given = sys.argv if arguments is None else arguments
    with naming_arguments():
        words = remove_ros_args(given)[1:]
    namespaces = _namespaces(words)
    running = _Running()
    handles_signals = threading.current_thread() is threading.main_thread()
    handling = SignalHandlerOptions.NO if handles_signals else SignalHandlerOptions.ALL
    with naming_arguments():
        rclpy.init(args=arguments, signal_handler_options=handling)
    # Python hands the interpreter over every 5 ms by default: a request would wait for that several times over.
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        with ExitStack() as hearing:
            if handles_signals:  # they end the nodes between two callbacks: an exception would break one off
                hearing.enter_context(heard_at_once(running.stop, *_ending_signals()))
            for namespace in namespaces:
                running.start(namespace)
            running.spin()
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        _ignore_signals(handles_signals)  # a second Ctrl-C must not break off the clean-up
        running.close()
        rclpy.try_shutdown()
        _ignore_signals(handles_signals)  # ROS has put the default ones back
    _leave_running_solvers()


class _Running:
    """Nodes and their executors."""

    def __init__(self) -> None:
        self._stopping = False
        self._nodes: list[KinoptNode] = []
        self._executors: list[GuardedExecutor] = []
        self._threads: list[threading.Thread] = []
        self._failure: BaseException | None = None
        self._garbage = _Garbage()

    def start(self, namespace: str | None) -> None:
        """Create a node; it is served by ``spin``."""
        try:
            node = KinoptNode(namespace=namespace)
        except ParameterException as error:  # about one of rclpy's own
            raise argument_error(error) from error
        except InvalidNamespaceException as error:
            raise InvalidRequestError(
                f"{quoted(namespace or '')} is no namespace: {' '.join(str(error).split())}"
            ) from None
        except RCLError as error:  # as where security is wanted, and the middleware has none
            raise InvalidRequestError(f"ROS makes no node: {' '.join(str(error).split())}") from error
        others = [other.get_fully_qualified_name() for other in self._nodes]
        self._nodes.append(node)
        if node.get_fully_qualified_name() in others:
            raise InvalidRequestError(
                f"there would be two nodes {node.get_fully_qualified_name()}; several need namespaces of their own, "
                "which no __ns changes"
            )
        beside = node.urgent, node.sensing, node.scenes
        self._executors += [RestExecutor(node, *beside), *beside]

    def stop(self) -> None:
        """Let ``spin`` end between two callbacks. On any thread."""
        self._stopping = True
        for node in self._nodes:
            node.ending = True
        for executor in self._executors:
            executor.interrupt()

    def spin(self) -> None:
        """Serve all nodes, the first one on this thread, until one of them fails or all shall end."""
        self._threads = [
            threading.Thread(target=self._serve_beside, args=(executor,), name="executor", daemon=True)
            for executor in self._executors[1:]
            if executor not in [node.urgent for node in self._nodes]
        ]
        self._threads += [
            threading.Thread(target=self._serve_urgent, args=(node,), name="urgent", daemon=True)
            for node in self._nodes
        ]
        for thread in self._threads:
            thread.start()
        self._serve(self._executors[0], self._garbage.collect)
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """End all nodes."""
        self.stop()
        for thread in self._threads:
            thread.join()
        for node in self._nodes:
            node.close()
        for executor in self._executors:
            executor.shutdown(timeout_sec=0.0)
        for node in self._nodes:
            node.destroy_node()

    def _serve(self, executor: GuardedExecutor, between: Callable[[], None] = lambda: None) -> None:
        while rclpy.ok() and not self._stopping:
            # Not for ever: ROS may end unnoticed.
            executor.spin_once(timeout_sec=1.0)
            between()

    def _serve_beside(self, executor: GuardedExecutor) -> None:
        try:
            self._serve(executor)
        except ExternalShutdownException:
            pass
        except BaseException as error:  # handed to the main thread, as if it had happened there
            self._failure = error
        self.stop()

    def _serve_urgent(self, node: KinoptNode) -> None:
        """Stop what the node moves as soon as all shall end: the other threads may be at work for seconds."""
        self._serve_beside(node.urgent)
        try:
            if rclpy.ok():
                node.end_motions()
                _hear_the_robot(node)
        except BaseException as error:  # as above
            self._failure = error


def _hear_the_robot(node: KinoptNode) -> None:
    """Wait for the controllers to say that they do nothing any more, and for joint states that do not move.

    A controller that has not taken its motion yet can only be told to stop when it does, so that nobody may keep this
    thread waiting.
    """
    end = time.monotonic() + STOP_SECONDS
    while ((left := node.moving) or node.watches) and time.monotonic() < end and rclpy.ok():
        node.urgent.go_on()  # each signal interrupts it
        node.urgent.spin_once(timeout_sec=ANSWER_SECONDS)
    for name in left:
        print(
            f"kinopt: the controller {name} was told to stop, but has not said within {STOP_SECONDS:g} s that "
            "it does",
            file=sys.stderr,
        )


class _Garbage:
    """Looks for cyclic garbage when that disturbs least.

    Python looks through all of its objects again and again while rclpy makes 100,000 poses, for up to 160 ms during
    which no other thread runs, not even one that heard an emergency stop. Here Python looks through the newest ones
    only, and the executor that takes requests looks for the rest between two of them, when there are few objects of
    large messages. What is imported stays, so nobody looks at that.
    """

    def __init__(self) -> None:
        gc.set_threshold(5_000, 1_000_000, 1_000_000)
        self._imported = -1
        self._due = 0.0
        self._fewest = sys.getallocatedblocks()
        self._latest = 0.0
        """Time from which on a collection is put off no more."""
        self.collect()

    def collect(self) -> None:
        """Look for garbage, if some is to be expected and it is time."""
        now = time.monotonic()
        if now < self._due or gc.get_count()[1] == 0:
            return
        self._due = now + _COLLECT_SECONDS
        blocks = sys.getallocatedblocks()
        self._fewest = min(self._fewest, blocks)
        if blocks > self._fewest + _MANY_BLOCKS and now < self._latest:
            return
        self._latest = now + _PUT_OFF_SECONDS
        gc.collect()
        self._fewest = sys.getallocatedblocks()
        if len(sys.modules) != self._imported:
            gc.freeze()
            self._imported = len(sys.modules)


def _namespaces(words: Sequence[str]) -> list[str | None]:
    """Return namespaces of the nodes; a single None, that of the ROS arguments, if none is named."""
    for word in words:
        if word.startswith("-"):
            raise InvalidRequestError(
                f"unknown argument {quoted(word)}; allowed are namespaces, one for each node, and then --ros-args"
            )
    if len(set(words)) != len(words):
        raise InvalidRequestError(f"the namespaces {', '.join(words)} are not different")
    return list(words) or [None]


def _ending_signals() -> list[int]:
    """Return the signals that end the nodes: Ctrl-C, `kill`, and that the terminal is closed."""
    signals: list[int] = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants to go on
        signals.append(signal.SIGHUP)
    return signals


def _ignore_signals(ours: bool) -> None:
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _leave_running_solvers() -> None:
    """End the process if a request is still at work.

    Nobody waits for its answer any more, but Python would wait for its thread, up to the deadline of the request.
    """
    end = time.monotonic() + STOP_SECONDS
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(max(end - time.monotonic(), 0.0))
            if thread.is_alive():
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(0)
