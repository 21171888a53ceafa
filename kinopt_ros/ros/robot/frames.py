"""Poses of frames: links of the robot by its kinematics, objects by the scene, everything else by tf where tf2_ros is
installed."""

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
from rclpy.node import Node

from kinopt_ros.array import Float64
from kinopt_ros.errors import FrameError, quoted, shortened
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.se3 import inverse
from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.ros.messages.conversions import matrices_from_poses, pose_of_transform
from kinopt_ros.ros.messages.stamps import wrong_time
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene
from kinopt_ros.scene.tool_frames import object_frame


class NoTransformYetError(FrameError):
    """tf has no transform at the time that is asked for; it may come."""

    def after(self, seconds: float) -> FrameError:
        """Return the error of who has waited for it as long as allowed."""
        return FrameError(f"{self}; waited {seconds:g} s for it (parameter tf_timeout)")


def is_set(stamp: Any) -> bool:
    """Check whether a builtin_interfaces/Time is one, and not 0."""
    return stamp is not None and bool(stamp.sec or stamp.nanosec)


class Frames:
    """Resolves frame names. Works without tf2_ros; then only the robot's own frames and those of objects are known."""

    def __init__(
        self, node: Node, scene_of: Callable[[RobotModel], Scene] = lambda robot: EMPTY_SCENE
    ) -> None:
        """``scene_of``: returns the scene of a robot."""
        self._scene_of = scene_of
        self._buffer: Any = None
        self._listener: Any = None
        try:
            import tf2_ros
        except ImportError:
            node.get_logger().info(
                "tf2_ros is not installed: poses can be given in frames of the robot and of objects only"
            )
            return
        self._buffer = tf2_ros.Buffer()
        self._listener = tf2_ros.TransformListener(self._buffer, node)

    def T_link_frame(
        self, robot: RobotModel, link: str, frame: str, q: Annotated[Float64, "nq"], stamp: Any = None
    ) -> Annotated[Float64, "4 4"]:
        """Return the pose of a frame in a link of the robot, in configuration q. An empty name is the robot's root
        link.

        A frame of tf is where it was at ``stamp`` (builtin_interfaces/Time), or by the newest transform if that is 0
        or None. What the robot and the scene know follows from q.

        Raises:
            FrameError: neither the robot, the scene nor tf knows the frame, tf's transform is none, or the stamp is no
            time.
            NoTransformYetError: tf does not know it at the stamp.
        """
        if (frame or robot.root_link) == link:
            return np.eye(4)
        T_root_link = forward_kinematics(robot, q, links=(link,))[0]
        return np.asarray(inverse(T_root_link) @ self.T_root_frame(robot, frame, q, stamp))

    def T_root_frame(
        self, robot: RobotModel, frame: str, q: Annotated[Float64, "... nq"], stamp: Any = None
    ) -> Annotated[Float64, "... 4 4"]:
        """Return the pose of a frame in the robot's root link, in one configuration or many. Raises as T_link_frame
        does."""
        frame = frame or robot.root_link
        if frame in robot.link_index:
            return forward_kinematics(robot, q, links=(frame,))[..., 0, :, :]
        of_object = object_frame(robot, self._scene_of(robot), frame)
        if of_object is not None:
            T_root_link = forward_kinematics(robot, q, links=(of_object.link,))[..., 0, :, :]
            return np.asarray(T_root_link @ of_object.T_link_frame)
        return np.broadcast_to(self._outside(robot, frame, stamp), (*q.shape[:-1], 4, 4))

    @staticmethod
    def _remedy(robot: RobotModel, frame: str) -> str:
        virtual = robot.virtual_joint
        if virtual is None or virtual.parent_frame != frame:
            return ""
        return (
            f". SRDF's virtual joint {virtual.name!r} says that the robot moves in it; where {robot.root_link!r} is "
            "that frame for good, make its type fixed"
        )

    def _outside(self, robot: RobotModel, frame: str, stamp: Any) -> Float64:
        """Return T_root_frame of a frame that is no link."""
        virtual = robot.virtual_joint
        if virtual is not None and virtual.type is JointType.FIXED and virtual.parent_frame == frame:
            return np.eye(4)
        if self._buffer is None:
            raise FrameError(
                f"frame {quoted(frame)} is no link of robot {robot.name!r} and no object of the scene, and tf2_ros is "
                f"not installed to look it up; links: {shortened(robot.link_names, 20)}{self._remedy(robot, frame)}"
            )
        wrong = wrong_time(stamp) if is_set(stamp) else ""
        if wrong:
            raise FrameError(f"the stamp of the request is {wrong}; 0 asks for the newest transform")
        import tf2_ros
        from rclpy.time import Time

        try:
            stamped = self._buffer.lookup_transform(
                robot.root_link, frame, Time.from_msg(stamp) if is_set(stamp) else Time()
            )
        except tf2_ros.TransformException as error:
            what = f"frame {quoted(frame)} is no link of robot {robot.name!r} and no object of the scene, and tf says"
            if not is_set(stamp):
                raise FrameError(f"{what}: {error}") from error
            raise NoTransformYetError(
                f"{what}, for the stamp {stamp.sec}.{stamp.nanosec:09} of the request (0 asks for the newest): {error}"
            ) from error
        # tf2 drops a transform that is none, other buffers may not.
        what = f"tf's transforms from {quoted(frame)} to {robot.root_link!r}"
        return np.asarray(matrices_from_poses([pose_of_transform(stamped.transform)], what, FrameError)[0])
