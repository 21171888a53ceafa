"""A client of MoveIt's actions and a simulated Panda, of which every step is judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from support.moveit_requests import TIP, motion_request

from kinopt_msgs.msg import SceneOperation
from kinopt_msgs.srv import ApplyScene
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.simulated_robot import SimulatedRobotTopics
from kinopt_ros.status import Status

PANDA = load_robot("panda")
SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED,
    GoalStatus.STATUS_CANCELED,
    GoalStatus.STATUS_ABORTED,
)
PATIENCE = 60.0
"""Longest time that a test waits for anything, s."""


SLOWLY = {"use_sim_time": True}
"""Parameters of a node beside such a robot: without them it would not wait for a robot that is late."""


class Slowly(SimulatedRobotTopics):
    """A simulated robot that remembers where it was, and the time of all: it stands still while this process does."""

    most = 20_000_000
    """Longest time between two looks at its clock, ns."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self.own = 0
        self.path: list[tuple[float, np.ndarray, np.ndarray]] = []
        """Times (s), positions and velocities."""
        self._time = given[0].create_publisher(Clock, "/clock", 10)
        super().__init__(*given, **options)

    def close(self) -> None:
        """Leave the graph."""
        super().close()
        self._node.destroy_publisher(self._time)

    def now(self) -> int:
        real = super().now()
        self.own = min(real, (self.own or real) + self.most)
        return self.own

    def tell(self, states: bool) -> None:
        """Publish joint states, or none from now on."""
        (self._timer.reset if states else self._timer.cancel)()

    def without_controllers(self) -> None:
        """Let the actions of its controllers go, while it goes on telling its state."""
        for action in self._actions:
            action.close()
        self._actions = []

    def _advance(self) -> None:
        super()._advance()
        now = self.now()
        _, position, velocity = self.robot.states(now)
        self.path.append((now / 1e9, position[:7], velocity[:7]))
        self._time.publish(Clock(clock=Time(nanoseconds=now).to_msg()))


class Moving:
    """A client, the simulated robot beside it, and the node between them."""

    def __init__(self, client: Client, robot: Slowly, types: Any) -> None:
        """``types``: the module moveit_msgs."""
        self.client, self.robot, self.types = client, robot, types
        self.move = ActionClient(client.node, types.action.MoveGroup, "move_action")
        self.execute = ActionClient(client.node, types.action.ExecuteTrajectory, "execute_trajectory")
        self.cartesian = client.node.create_client(types.srv.GetCartesianPath, "compute_cartesian_path")
        self.plan = client.node.create_client(types.srv.GetMotionPlan, "plan_kinematic_path")
        self.events = client.node.create_publisher(String, "trajectory_execution_event", 10)
        for one in (self.move, self.execute):
            assert client.spin_until(one.server_is_ready, PATIENCE)
        for service in (self.cartesian, self.plan):
            assert client.spin_until(service.service_is_ready, PATIENCE)
        client.wait_until_heard()

    def request(self, *goals: Any, scaling: float = 0.5, **fields: Any) -> Any:
        """A MotionPlanRequest as MoveGroupInterface makes it."""
        pace = {"max_velocity_scaling_factor": scaling, "max_acceleration_scaling_factor": scaling}
        return motion_request(self.types, *goals, **pace, **fields).motion_plan_request

    def goal(self, *goals: Any, scaling: float = 0.5, **options: Any) -> Any:
        made = self.types.action.MoveGroup.Goal(request=self.request(*goals, scaling=scaling))
        made.planning_options.planning_scene_diff.is_diff = True
        made.planning_options.planning_scene_diff.robot_state.is_diff = True
        for name, value in options.items():
            setattr(made.planning_options, name, value)
        return made

    def send(self, action: Any, goal: Any) -> Sent:
        feedback: list[str] = []
        future = action.send_goal_async(
            goal, feedback_callback=lambda one: feedback.append(one.feedback.state)
        )
        assert self.client.spin_until(future.done, PATIENCE), "the goal was not taken"
        return Sent(self, future.result(), feedback)

    def call(self, service: Any, request: Any) -> Any:
        future = service.call_async(request)
        assert self.client.spin_until(future.done, PATIENCE)
        return future.result()

    def trajectory(self, *goals: Any, **fields: Any) -> Any:
        """A motion that plan_kinematic_path gives."""
        request = self.types.srv.GetMotionPlan.Request(motion_plan_request=self.request(*goals, **fields))
        answer = self.call(self.plan, request).motion_plan_response
        assert answer.error_code.val == 1, answer.error_code.message
        return answer.trajectory

    def at(self) -> np.ndarray:
        """Where the joints are."""
        return self.robot.robot.states(self.robot.now())[1]

    def tip(self) -> np.ndarray:
        q = PANDA.default_q.copy()
        names, position, _ = self.robot.robot.states(self.robot.now())
        at = dict(zip(names, position, strict=True))
        for name in PANDA.variable_names:
            q[PANDA.variable_index[name]] = at[name]
        return forward_kinematics(PANDA, q, links=(TIP,))[0]

    def until_it_moves(self, sent: Sent, by: float = 0.03) -> None:
        begin = self.at()
        assert self.client.spin_until(lambda: np.abs(self.at() - begin).max() > by or sent.done, PATIENCE)
        assert not sent.done, sent.result()

    def apply(self, *operations: SceneOperation) -> None:
        answer = self.client.call("apply_scene", ApplyScene.Request(operations=list(operations)))
        assert answer.status.code == Status.SUCCESS, answer.status.message


class Sent:
    """A goal that was taken."""

    def __init__(self, moving: Moving, handle: Any, feedback: list[str]) -> None:
        assert handle.accepted
        self._moving, self.handle, self.feedback = moving, handle, feedback
        self._result = handle.get_result_async()

    @property
    def done(self) -> bool:
        return bool(self._result.done())

    def result(self) -> tuple[int, Any]:
        assert self._moving.client.spin_until(self._result.done, PATIENCE), "there is no result"
        answer = self._result.result()
        return answer.status, answer.result

    def told(self) -> list[str]:
        """Return the feedback of a goal that is over: it comes by another way than the result, and may come later."""
        self._moving.client.spin_until(lambda: self.feedback[-1:] == ["IDLE"], PATIENCE)
        return self.feedback

    def cancel(self) -> tuple[int, Any]:
        self.handle.cancel_goal_async()
        return self.result()


STOOD = 1e-3
"""Farthest that a robot may go which stands, rad or m: motions end as soon as it counts as standing, and a brake may
have a little left."""
LATE_BRAKE = 5.0
"""Times the acceleration limits that a brake may have here. It is made for where the robot is expected when it comes; a
busy machine brings it later. How good brakes are that come at a given time is judged in test/unit/ros/motion."""


def kept_limits(moving: Moving, braked: bool = False) -> None:
    """Judge joint states: no step, velocities and accelerations within the limits."""
    times = np.array([time for time, *_ in moving.robot.path])
    position, velocity = (np.array([row[k] for row in moving.robot.path]) for k in (1, 2))
    moved = np.diff(times) > 1e-6
    dt = np.diff(times)[moved, None]
    limits = PANDA.limits
    speed = np.diff(position, axis=0)[moved] / dt
    assert (np.abs(speed) <= limits.velocity[:7] + 1e-6).all()
    assert (np.abs(velocity) <= limits.velocity[:7] + 1e-6).all()
    acceleration = np.diff(velocity, axis=0)[moved] / dt
    share = (np.abs(acceleration) / limits.acceleration[:7]).max()
    assert share <= (LATE_BRAKE if braked else 1.0 + 1e-6)
