"""Reader of the operations of kinopt_msgs/ApplyScene and SceneUpdate as changes of the scene."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from kinopt_msgs.msg import SceneOperation
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, InvalidShapeError, KinoptError, quoted
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.planning.scene_holder import Change
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import configuration_from_joint_state
from kinopt_ros.ros.messages.scenes import shapes_from_messages, subframes_from_message, transform_from_pose
from kinopt_ros.ros.messages.sizes import check_lengths
from kinopt_ros.scene import changes
from kinopt_ros.scene.parts import ANY
from kinopt_ros.scene.scene import Scene, SceneObject
from kinopt_ros.solvers.readiness import prepare_shapes

MOST_OPERATIONS = 10_000
"""Most operations in one request."""
_FIELDS = {
    SceneOperation.ADD: ("object", "replace"),
    SceneOperation.MOVE: ("object",),
    SceneOperation.REMOVE: ("object",),
    SceneOperation.ATTACH: ("object", "link", "touch_links"),
    SceneOperation.DETACH: ("object",),
    SceneOperation.ALLOW: ("names",),
    SceneOperation.DISALLOW: ("names",),
    SceneOperation.PAD: ("names", "padding"),
    SceneOperation.CLEAR: (),
}
"""Fields that each operation uses; others must be empty."""


def apply(context: Context, request: Any) -> tuple[Scene, str]:
    """Change the scene in service as a request says, completely or not at all.

    Returns:
        The scene that the changes make, and a sentence about joints that matter and that nobody published, or nothing.

    Raises:
        KinoptError: something is not usable; the scene is as it was.
    """
    robot = context.loaded.model
    check_count(request)
    check_lengths(request, 1)
    reader = _Reader(context, robot, request.state)
    read: list[tuple[str, Change]] = []
    for index, operation in enumerate(request.operations):
        name = f"operations[{index}] ({quoted(operation.operation, 20)})"
        try:
            read.append((name, reader.change(operation)))
        except KinoptError as error:
            error.args = (f"{name}: {error}",)
            raise
    prepare_shapes(robot, reader.shapes)  # others need not wait for that
    scene = context.scene.change(robot, read, request.expected_version or None)
    return scene, reader.assumed()


def check_count(request: Any) -> None:
    """Raise InvalidRequestError for no operation or too many of them."""
    if not 1 <= len(request.operations) <= MOST_OPERATIONS:
        raise InvalidRequestError(
            f"{len(request.operations)} operations were given; allowed are 1 to {MOST_OPERATIONS}"
        )


class _Reader:
    """Reads the operations of one request.

    What does not depend on the scene is read at once, the rest when the change is made.
    """

    def __init__(self, context: Context, robot: RobotModel, state: Any) -> None:
        self._context = context
        self._robot = robot
        self._given = state
        self._newest = context.joint_states.of(robot)
        self.shapes: list[PlacedShape] = []
        """Those of all objects that were read."""
        self._ways: list[tuple[str, str]] = []
        """Pairs of frames whose pose in each other was asked for."""
        configuration_from_joint_state(state, robot, self._newest.q)  # refused even if no operation needs it

    def change(self, operation: Any) -> Change:
        """Return the change that an operation asks for."""
        readers: dict[str, Callable[[Any], Change]] = {
            SceneOperation.ADD: self._add,
            SceneOperation.MOVE: self._move,
            SceneOperation.REMOVE: lambda o: lambda scene: changes.remove(scene, o.object.id),
            SceneOperation.ATTACH: self._attach,
            SceneOperation.DETACH: self._detach,
            SceneOperation.ALLOW: self._allow,
            SceneOperation.DISALLOW: self._disallow,
            SceneOperation.PAD: self._pad,
            SceneOperation.CLEAR: lambda _: changes.clear,
        }
        if operation.operation not in readers:
            raise InvalidRequestError(f"there is no such operation; allowed are {', '.join(readers)}")
        _check_fields(operation)
        return readers[operation.operation](operation)

    def assumed(self) -> str:
        """Return a sentence about joints that mattered and that nobody published; else nothing."""
        return self._context.assumed(self._robot, self._ways, frozenset(self._given.name), self._newest)

    def _shapes(self, given: Any) -> tuple[PlacedShape, ...]:
        shapes = shapes_from_messages(given.shapes)
        self.shapes += shapes
        return shapes

    def _add(self, operation: Any) -> Change:
        given = operation.object
        shapes, subframes = self._shapes(given), subframes_from_message(given)
        new = SceneObject(given.id, shapes, self._T_root_object(given), subframes)
        return lambda scene: changes.add(scene, self._robot, new, operation.replace)

    def _move(self, operation: Any) -> Change:
        given = operation.object
        _refuse_shapes(given)
        T_root_object = self._T_root_object(given)
        return lambda scene: changes.move(scene, given.id, T_root_object)

    def _attach(self, operation: Any) -> Change:
        given, link, robot = operation.object, operation.link, self._robot
        robot.link(link)
        touch_links = tuple(operation.touch_links) or None
        subframes = subframes_from_message(given)
        if not given.shapes:
            if subframes:
                raise InvalidRequestError(
                    "subframes without shapes are given; an object of the scene keeps its own"
                )
            if given.header.frame_id or not np.array_equal(_pose(given), np.eye(4)):
                raise InvalidRequestError(
                    "a pose without shapes is given; an object of the scene is attached where it is (move it before), "
                    "a new one needs shapes"
                )
            return lambda scene: changes.attach(scene, robot, given.id, link, self._q(link), touch_links)
        shapes = self._shapes(given)
        T_link_object = _pose(given)
        if given.header.frame_id:
            q = self._q(link, given.header.frame_id)
            T_link_frame = self._context.frames.T_link_frame(robot, link, given.header.frame_id, q)
            T_link_object = T_link_frame @ T_link_object
        return lambda scene: changes.attach_new(
            scene, robot, given.id, shapes, link, T_link_object, touch_links, subframes
        )

    def _detach(self, operation: Any) -> Change:
        id = operation.object.id
        _refuse_shapes(operation.object)

        def change(scene: Scene) -> Scene:
            link = scene.attached[id].link if id in scene.attached else self._robot.root_link
            return changes.detach(scene, self._robot, id, self._q(link))

        return change

    def _allow(self, operation: Any) -> Change:
        pair = _pair(operation)
        return lambda scene: changes.allow(scene, self._robot, *pair)

    def _disallow(self, operation: Any) -> Change:
        pair = _pair(operation)
        return lambda scene: changes.disallow(scene, self._robot, *pair)

    def _pad(self, operation: Any) -> Change:
        def change(scene: Scene) -> Scene:
            for name in operation.names or (None,):
                scene = changes.set_padding(scene, self._robot, operation.padding, name)
            return scene

        return change

    def _T_root_object(self, given: Any) -> Annotated[Float64, "4 4"]:
        frame = given.header.frame_id
        T_root_frame = self._context.frames.T_root_frame(
            self._robot, frame, self._q(self._robot.root_link, frame)
        )
        return np.asarray(T_root_frame @ _pose(given))

    def _q(self, frame: str, other: str = "") -> Annotated[Float64, "nq"]:
        """Return the configuration, to be used for the pose of a frame in another one or in the root link."""
        ways = [(frame, other or self._robot.root_link)]
        self._ways += ways
        q = self._context.configuration(self._robot, ways, frozenset(self._given.name), self._newest)
        return configuration_from_joint_state(self._given, self._robot, q)


def _pose(given: Any) -> Annotated[Float64, "4 4"]:
    return transform_from_pose(given.pose, f"pose of object {quoted(given.id)}")


def _refuse_shapes(given: Any) -> None:
    if given.shapes:
        raise InvalidShapeError(
            f"object {quoted(given.id)} has shapes; this operation takes none (add with replace changes them)"
        )
    if given.subframe_names or given.subframe_poses:
        raise InvalidShapeError(
            f"object {quoted(given.id)} has subframes; this operation takes none (add with replace changes them)"
        )


def _pair(operation: Any) -> tuple[str, str]:
    names: Sequence[str] = operation.names
    if len(names) not in (1, 2):
        raise InvalidRequestError(
            f"names has {len(names)} entries; allowed are two, or one that may touch everything"
        )
    return names[0], names[1] if len(names) == 2 else ANY


def _check_fields(operation: Any) -> None:
    """Refuse fields that an operation does not use: whoever set them expects something else."""
    given = {
        "object": operation.object.id or operation.object.shapes,
        "replace": operation.replace,
        "link": operation.link,
        "touch_links": operation.touch_links,
        "names": operation.names,
        "padding": operation.padding != 0.0,
    }
    used = _FIELDS[operation.operation]
    unused = [name for name, value in given.items() if value and name not in used]
    if unused:
        raise InvalidRequestError(
            f"{unused[0]} is given, which this operation does not use; it uses {', '.join(used) or 'none'}"
        )
