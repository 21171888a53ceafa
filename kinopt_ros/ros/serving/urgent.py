"""Groups of callbacks on threads of their own, which run whatever else arrives.

To read a message of 100,000 poses takes rclpy a second. What is in the group of ``UrgentExecutor`` is served by a
thread that takes nothing else, so an emergency stop, a cancel, ~/ready or simulated time never waits behind that.
Messages of this group are small by their type, or come from the controller that does the motions, and callbacks do not
wait for anything.

Joint states come 1,000 times a second, and rclpy builds the list of all that it waits for anew each time: with the
node's forty services that takes four times as long as with one subscription. So they have a thread, too.

So have topics by which the scene changes: while a mesh of 200,000 triangles is read, a box in the way of a motion may
come by a service.
"""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from typing import Any

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.time_source import CLOCK_TOPIC

from kinopt_ros.ros.messages.stamps import hearing_times
from kinopt_ros.ros.serving.guarded_executor import GuardedExecutor


class GroupExecutor(GuardedExecutor):
    """Serves one callback group of a node, the rest of which ``RestExecutor`` serves."""

    def __init__(self, node: Node) -> None:
        super().__init__()
        self._node = node
        self.group = MutuallyExclusiveCallbackGroup()

    def get_nodes(self) -> list[Node]:
        """Return the node. It is not added: rclpy would take it from the other executor."""
        return [self._node]

    def can_execute(self, entity: Any) -> bool:
        """Check whether a callback is of the group, and it is its turn."""
        return entity.callback_group is self.group and super().can_execute(entity)


class UrgentExecutor(GroupExecutor):
    """Serves what is urgent."""


class SceneExecutor(GroupExecutor):
    """Serves topics by which the scene changes, whose messages may be large."""

    gives_way = True


class RestExecutor(GuardedExecutor):
    """Serves all of a node but what others serve."""

    gives_way = True

    def __init__(self, node: Node, *others: GroupExecutor) -> None:
        super().__init__()
        self._others = [other.group for other in others]
        self.add_node(node)

    def can_execute(self, entity: Any) -> bool:
        """Check whether nobody else serves a callback, and it is its turn."""
        group = entity.callback_group
        return not any(group is other for other in self._others) and super().can_execute(entity)


class TimelyNode(Node):
    """A node whose simulated time passes whatever else arrives.

    rclpy hears /clock between all other messages. While it read one of 100,000 poses, the time stood still, and motions
    left one another later than they said: the robot jumped.
    """

    def __init__(self, name: str, **options: Any) -> None:
        self.urgent = UrgentExecutor(self)
        """Executor of callbacks that run whatever else arrives."""
        self.sensing = GroupExecutor(self)
        """Executor of what sensors say."""
        self.scenes = SceneExecutor(self)
        """Executor of topics by which the scene changes."""
        super().__init__(name, **options)  # which subscribes to /clock

    def create_subscription(
        self, msg_type: Any, topic: str, callback: Any, qos_profile: Any, **options: Any
    ) -> Any:
        """Subscribe as rclpy does; /clock is urgent, and heard as far as it says times."""
        if topic == CLOCK_TOPIC:
            options["callback_group"] = self.urgent.group
            callback = hearing_times(self, callback)
        return super().create_subscription(msg_type, topic, callback, qos_profile, **options)
