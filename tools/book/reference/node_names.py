"""Topics, services and actions of the node with their QoS, from a node that runs while the book is built."""

from __future__ import annotations

import re
from typing import Any

import rclpy
from rclpy.action import get_action_server_names_and_types_by_node

from book.reference.markdown import code, table
from kinopt_ros.ros.client.isolation import isolate
from kinopt_ros.ros.node import KinoptNode

_ROSES_OWN = ("/parameter_events", "/rosout", "/clock")
_HIDDEN = "/_action/"
_EVERY_NODE = re.compile(r"parameter|get_type_description|_action/")
"""Services that every node of ROS has."""


def node_names() -> str:
    """Return tables of what a node without a robot listens to, publishes and serves."""
    isolate()
    rclpy.init(args=[])
    try:
        node = KinoptNode()
        try:
            return _tables(node)
        finally:
            node.close()
            node.destroy_node()
    finally:
        rclpy.try_shutdown()


def _tables(node: Any) -> str:
    head = ("topic", "type", "reliability", "durability", "depth")
    listened = sorted({_topic(one) for one in node.subscriptions} - {None})  # type: ignore[type-var]
    published = sorted({_topic(one) for one in node.publishers} - {None})  # type: ignore[type-var]
    own = node.get_fully_qualified_name()
    services = sorted(
        (name_of(one.srv_name, own), _type(one.srv_type))
        for one in node.services
        if not _EVERY_NODE.search(one.srv_name)
    )
    actions = sorted(
        (name_of(name, own), kind)
        for name, kinds in get_action_server_names_and_types_by_node(
            node, node.get_name(), node.get_namespace()
        )
        for kind in kinds
    )
    return "\n".join(
        (
            "## Topics that it listens to\n",
            table(head, listened),  # type: ignore[arg-type]
            "## Topics that it publishes\n",
            table(head, published),  # type: ignore[arg-type]
            "## Services\n",
            table(("service", "type"), [(code(name), code(kind)) for name, kind in services]),
            "## Actions\n",
            table(("action", "type"), [(code(name), code(kind)) for name, kind in actions]),
        )
    )


def name_of(name: str, node: str) -> str:
    """Return a name as the pages have it: below the node's with a ~, others in its namespace."""
    return name.replace(f"{node}/", "~/").removeprefix("/") if name not in ("/diagnostics",) else name


def _type(kind: Any) -> str:
    if kind is None:
        return ""
    package, what, _ = kind.__module__.split(".", 2)
    return f"{package}/{what}/{kind.__name__}"


def _topic(one: Any) -> tuple[str, ...] | None:
    name = one.topic_name
    if name in _ROSES_OWN or _HIDDEN in name:
        return None
    qos = one.qos_profile
    depth = "all" if qos.history.name == "KEEP_ALL" else str(qos.depth)
    latched = "transient local" if qos.durability.name == "TRANSIENT_LOCAL" else "volatile"
    return (
        code(name_of(name, "/kinopt")),
        code(_type(one.msg_type)),
        (qos.reliability.name.lower().replace("_", " ")),
        latched,
        depth,
    )
