"""Random requests of MoveIt's services, actions and topics: good, bad and impossible ones, from a seed."""

from collections.abc import Callable
from importlib import import_module
from random import Random
from typing import Any

from geometry_msgs.msg import Pose
from std_msgs.msg import String
from std_srvs.srv import Empty
from trajectory_msgs.msg import JointTrajectoryPoint

JOINTS = [f"panda_joint{number}" for number in range(1, 8)]
FINGER = "panda_finger_joint1"
ARM, HAND, TIP, BASE = "panda_arm", "hand", "panda_hand_tcp", "panda_link0"
_LOWER = (-2.8, -1.7, -2.8, -3.0, -2.8, 0.0, -2.8)
_UPPER = (2.8, 1.7, 2.8, -0.1, 2.8, 3.7, 2.8)
_UNKNOWN = "nobody"
"""Name of no joint, link, group or frame."""


class MoveItRequests:
    """Makes random requests for the Panda. ``of`` has one function for each name."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._solid = import_module("shape_msgs.msg").SolidPrimitive
        self._msg = import_module("moveit_msgs.msg")
        srv, action = import_module("moveit_msgs.srv"), import_module("moveit_msgs.action")
        self.services: dict[str, tuple[Any, Callable[[], Any]]] = {
            "compute_ik": (srv.GetPositionIK, self._ik),
            "compute_fk": (srv.GetPositionFK, self._fk),
            "check_state_validity": (srv.GetStateValidity, self._validity),
            "compute_cartesian_path": (srv.GetCartesianPath, self._cartesian),
            "plan_kinematic_path": (srv.GetMotionPlan, self._plan),
            "query_planner_interface": (srv.QueryPlannerInterfaces, srv.QueryPlannerInterfaces.Request),
            "get_planning_scene": (srv.GetPlanningScene, srv.GetPlanningScene.Request),
            "apply_planning_scene": (srv.ApplyPlanningScene, self._apply),
            "clear_octomap": (Empty, Empty.Request),
        }
        """Types and makers of requests, by name."""
        self.actions: dict[str, tuple[Any, Callable[[], Any]]] = {
            "move_action": (action.MoveGroup, self._move),
            "execute_trajectory": (action.ExecuteTrajectory, self._execute),
        }
        """Likewise of goals."""
        self.topics: dict[str, tuple[Any, Callable[[], Any]]] = {
            "trajectory_execution_event": (String, lambda: String(data=self._one_of("stop", "go"))),
            "collision_object": (self._msg.CollisionObject, self._object),
            "planning_scene": (self._msg.PlanningScene, self._scene),
        }
        """Likewise of messages."""
        optional = (
            ("get_planner_params", "GetPlannerParams", self._params),
            ("plan_sequence_path", "GetMotionSequence", self._plan_sequence),
        )
        for name, kind, make in optional:  # whose types not every distribution has
            if hasattr(srv, kind):
                self.services[name] = getattr(srv, kind), make
        if hasattr(action, "MoveGroupSequence"):
            self.actions["sequence_move_group"] = action.MoveGroupSequence, self._move_sequence
        self._srv, self._action = srv, action

    @property
    def random(self) -> Random:
        """The source of all that is random."""
        return self._random

    def _one_of(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _perhaps(self, share: float) -> bool:
        return self._random.random() < share

    def _pose(self) -> Pose:
        pose, between = Pose(), self._random.uniform
        p, q = pose.position, pose.orientation
        p.x, p.y, p.z = between(0.2, 0.7), between(-0.5, 0.5), between(0.1, 0.8)
        q.x, q.w = 1.0, 0.0
        if self._perhaps(0.1):
            p.x = float("nan")
        if self._perhaps(0.1):
            q.x = 0.0
        return pose

    def _state(self) -> Any:
        state = self._msg.RobotState(is_diff=True)
        names = JOINTS[: self._one_of(0, 7, 7, 3)]
        count = self._one_of(len(names), len(names), len(names), len(names), 2)
        state.joint_state.name = names
        state.joint_state.position = [self._random.uniform(-1.0, 1.0) for _ in range(count)]
        return state

    def _joint_goal(self) -> Any:
        one = self._msg.JointConstraint
        return self._msg.Constraints(
            joint_constraints=[
                one(
                    joint_name=_UNKNOWN if self._perhaps(0.02) else name,
                    position=float("inf")
                    if self._perhaps(0.03)
                    else self._random.uniform(0.4 * low, 0.4 * high),
                    tolerance_above=0.01,
                    tolerance_below=0.01,
                    weight=1.0,
                )
                for name, low, high in zip(JOINTS, _LOWER, _UPPER, strict=True)
            ]
        )

    def _pose_goal(self) -> Any:
        near = self._msg.PositionConstraint(link_name=TIP, weight=1.0)
        near.header.frame_id = self._one_of(BASE, "", _UNKNOWN)
        size = [0.01] * self._one_of(1, 1, 1, 3, 0)
        near.constraint_region.primitives = [self._solid(type=self._one_of(1, 2, 2, 2, 3), dimensions=size)]
        near.constraint_region.primitive_poses = [self._pose()]
        turned = self._msg.OrientationConstraint(link_name=TIP, weight=1.0)
        turned.absolute_x_axis_tolerance = turned.absolute_y_axis_tolerance = 0.01
        turned.absolute_z_axis_tolerance = 0.01
        turned.orientation.x, turned.orientation.w = 1.0, 0.0
        return self._msg.Constraints(position_constraints=[near], orientation_constraints=[turned])

    def _hand_goal(self) -> Any:
        one = self._msg.JointConstraint(joint_name=FINGER, position=self._random.uniform(0.0, 0.04))
        one.tolerance_above = one.tolerance_below = 0.001
        one.weight = 1.0
        return self._msg.Constraints(joint_constraints=[one])

    def _motion(self) -> Any:
        request = self._msg.MotionPlanRequest(
            group_name=self._one_of(ARM, ARM, ARM, HAND, _UNKNOWN),
            allowed_planning_time=self._one_of(0.2, 1.0, 2.0),
            num_planning_attempts=1,
            max_velocity_scaling_factor=self._one_of(0.3, 1.0, 1.0, 2.0),
            max_acceleration_scaling_factor=1.0,
            planner_id=self._one_of("", "", "LIN", "CIRC", _UNKNOWN),
        )
        request.start_state.is_diff = True
        if request.group_name == HAND and self._perhaps(0.9):
            request.goal_constraints = [self._hand_goal()]
        else:
            kinds = (self._joint_goal, self._joint_goal, self._pose_goal)
            request.goal_constraints = [self._one_of(*kinds)() for _ in range(self._one_of(0, 1, 1, 1, 2))]
        if self._perhaps(0.1):
            request.path_constraints = self._one_of(self._joint_goal, self._pose_goal)()
        return request

    def _object(self) -> Any:
        made = self._msg.CollisionObject(
            id=self._one_of("a", "b", "c", "d"),
            operation=self._one_of(b"\0", b"\0", b"\1", b"\2", b"\3"),
        )
        made.header.frame_id = self._one_of(BASE, _UNKNOWN)
        size = [self._random.uniform(0.01, 0.05) for _ in range(self._one_of(3, 3, 2, 1))]
        made.primitives = [self._solid(type=self._one_of(1, 1, 2, 3, 9), dimensions=size)]
        made.primitive_poses = [Pose()]
        made.pose = self._pose()
        made.pose.position.x += 0.6
        return made

    def _scene(self) -> Any:
        scene = self._msg.PlanningScene(is_diff=self._perhaps(0.9))
        scene.robot_state.is_diff = True
        scene.world.collision_objects = [self._object() for _ in range(self._one_of(0, 1, 2))]
        return scene

    def _trajectory(self) -> Any:
        made = self._msg.RobotTrajectory()
        made.joint_trajectory.joint_names = JOINTS
        for number in range(self._one_of(0, 2, 3)):
            point = JointTrajectoryPoint(positions=[self._random.uniform(-1.0, 1.0) for _ in JOINTS])
            point.velocities, point.accelerations = [0.0] * 7, [0.0] * 7
            point.time_from_start.sec = 3 * number
            made.joint_trajectory.points.append(point)
        return made

    def _options(self) -> Any:
        options = self._msg.PlanningOptions(
            plan_only=self._perhaps(0.3), look_around=self._perhaps(0.05), replan=self._perhaps(0.2)
        )
        options.replan_attempts = 2
        options.planning_scene_diff.is_diff = True
        options.planning_scene_diff.robot_state.is_diff = True
        return options

    def _sequence(self) -> Any:
        one = self._msg.MotionSequenceItem
        return self._msg.MotionSequenceRequest(
            items=[
                one(req=self._motion(), blend_radius=self._one_of(0.0, 0.0, 0.1))
                for _ in range(self._one_of(0, 1, 2, 3))
            ]
        )

    def _ik(self) -> Any:
        request = self._srv.GetPositionIK.Request()
        asked = request.ik_request
        asked.group_name, asked.robot_state = self._one_of(ARM, ARM, "", _UNKNOWN), self._state()
        asked.avoid_collisions = self._perhaps(0.5)
        asked.pose_stamped.header.frame_id = self._one_of(BASE, BASE, "", _UNKNOWN)
        asked.pose_stamped.pose = self._pose()
        asked.timeout.nanosec = self._one_of(0, 1, 200_000_000)
        return request

    def _fk(self) -> Any:
        links = [self._one_of(TIP, TIP, _UNKNOWN)]
        return self._srv.GetPositionFK.Request(fk_link_names=links, robot_state=self._state())

    def _validity(self) -> Any:
        group = self._one_of(ARM, ARM, _UNKNOWN)
        return self._srv.GetStateValidity.Request(robot_state=self._state(), group_name=group)

    def _cartesian(self) -> Any:
        request = self._srv.GetCartesianPath.Request(
            group_name=ARM,
            waypoints=[self._pose() for _ in range(self._one_of(0, 1, 2))],
            max_step=self._one_of(0.01, 0.0),
            avoid_collisions=True,
        )
        request.start_state.is_diff = True
        return request

    def _plan(self) -> Any:
        return self._srv.GetMotionPlan.Request(motion_plan_request=self._motion())

    def _plan_sequence(self) -> Any:
        return self._srv.GetMotionSequence.Request(request=self._sequence())

    def _params(self) -> Any:
        return self._srv.GetPlannerParams.Request(pipeline_id=self._one_of("kinopt", _UNKNOWN))

    def _apply(self) -> Any:
        return self._srv.ApplyPlanningScene.Request(scene=self._scene())

    def _move(self) -> Any:
        return self._action.MoveGroup.Goal(request=self._motion(), planning_options=self._options())

    def _execute(self) -> Any:
        controllers = [] if self._perhaps(0.8) else [_UNKNOWN]
        return self._action.ExecuteTrajectory.Goal(
            trajectory=self._trajectory(), controller_names=controllers
        )

    def _move_sequence(self) -> Any:
        return self._action.MoveGroupSequence.Goal(request=self._sequence(), planning_options=self._options())
