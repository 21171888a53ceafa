"""What an executor waits for, put together once and waited for many times.

rclpy looks at all entities several times in each round, and makes a new wait set for them: with dozens of services that
takes as long as an answer.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.waitable import NumberOfEntities

_KINDS = {
    "timers": "timer",
    "subscriptions": "subscription",
    "guards": "guard_condition",
    "clients": "client",
    "services": "service",
}
"""Kinds of entities of a node and their names in wait sets, in the order in which rclpy serves them."""


def entities_of(nodes: Sequence[Any]) -> list[Any]:
    """Return all entities of some nodes."""
    return [
        entity
        for node in nodes
        for entities in (node.waitables, *(getattr(node, kind) for kind in _KINDS))
        for entity in entities
    ]


class WaitList:
    """Some entities of nodes. None of them is destroyed before ``close``."""

    def __init__(
        self, nodes: Sequence[Any], wanted: Callable[[Any], bool], wakers: Sequence[Any], context: Any
    ) -> None:
        """
        Args:
            nodes: whose entities these are.
            wanted: tells which of them are waited for.
            wakers: guard conditions of no node, which end a wait.
            context: of ROS.

        Raises:
            InvalidHandle: an entity is being destroyed.
        """
        self.one_of_each_group: dict[Any, Any] = {}
        """One entity of each callback group."""
        self._uses = ExitStack()
        self._waitables: list[tuple[Any, Any]] = []
        self._others: dict[str, dict[int, tuple[Any, Any]]] = {name: {} for name in _KINDS.values()}
        handles: dict[str, list[Any]] = {name: [] for name in _KINDS.values()}
        handles["guard_condition"] = [waker.handle for waker in wakers]
        try:
            for node in nodes:
                for waitable in filter(wanted, node.waitables):
                    self._uses.enter_context(waitable)
                    self._waitables.append((waitable, node))
                    self.one_of_each_group[waitable.callback_group] = waitable
                for kind, name in _KINDS.items():
                    for entity in filter(wanted, getattr(node, kind)):
                        handles[name].append(entity.handle)
                        self._others[name][entity.handle.pointer] = entity, node
                        self.one_of_each_group[entity.callback_group] = entity
            for handle in (context.handle, *(handle for listed in handles.values() for handle in listed)):
                self._uses.enter_context(handle)
            self._set = self._wait_set({name: len(listed) for name, listed in handles.items()}, context)
        except BaseException:
            self.close()
            raise
        self._add = [(getattr(self._set, f"add_{name}"), listed) for name, listed in handles.items()]

    def _wait_set(self, counts: dict[str, int], context: Any) -> Any:
        inside = NumberOfEntities()
        for waitable, _ in self._waitables:
            inside += waitable.get_num_entities()
        return rclpy_implementation.WaitSet(
            counts["subscription"] + inside.num_subscriptions,
            counts["guard_condition"] + inside.num_guard_conditions,
            counts["timer"] + inside.num_timers,
            counts["client"] + inside.num_clients,
            counts["service"] + inside.num_services,
            inside.num_events,
            context.handle,
        )

    def wait(self, nanoseconds: int) -> None:
        """Wait until something is ready; for ever, if the time is less than 0."""
        self._set.clear_entities()  # waiting has taken out what was not ready
        for add, handles in self._add:
            for handle in handles:
                add(handle)
        for waitable, _ in self._waitables:
            waitable.add_to_wait_set(self._set)
        self._set.wait(nanoseconds)

    def ready(self) -> Iterator[tuple[Any, Any, str]]:
        """Yield what was ready after the wait, with its node and kind (``waitable``, ``timer``, ...), in rclpy's
        order."""
        for waitable, node in self._waitables:
            if waitable.is_ready(self._set):
                yield waitable, node, "waitable"
        for name, known in self._others.items():
            for pointer in self._set.get_ready_entities(name) if known else ():
                if pointer in known:  # else it only woke the executor
                    yield *known[pointer], name

    def close(self) -> None:
        """Let go of the entities."""
        self._uses.close()
