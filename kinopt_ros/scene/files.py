"""Scenes as YAML files.

::

    frame: base_link                # optional: the robot's root link, in whose frame objects stand
    default_padding: 0.01           # m, of links
    padding: {table: 0.02}          # m, of links and objects
    objects:
      table: {pose: {xyz: [0.5, 0, -0.1]}, shapes: [{type: box, size: [1, 1, 0.2]}]}
    attached:
      mug:
        link: hand
        pose: {xyz: [0, 0, 0.1], rpy: [0, 1.57, 0]}     # in the link
        touch_links: [finger_left, finger_right]        # optional; else the link, and what hangs on it by fixed joints
        shapes: [{type: mesh, file: mug.stl}]           # file names are relative to the folder of the scene's file
        subframes: {handle: {xyz: [0.05, 0, 0.05]}}     # optional, of objects, too: frames on it, as poses in its own
    allowed:                        # pairs that may touch; "*" is everything
      - [table, base_link]

``shape_text.py`` lists the shapes.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidShapeError, KinoptError, quoted, shown
from kinopt_ros.files import path_of, read_text, written
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text as read
from kinopt_ros.scene.changes import add, allow, attach_new, set_padding
from kinopt_ros.scene.parts import ANY
from kinopt_ros.scene.scene import EMPTY_SCENE, AttachedObject, Scene, SceneObject
from kinopt_ros.scene.shape_text import ArrayFiles, pose_of, pose_text, shape_of, shape_text

LARGEST_TEXT = read.LARGEST_TEXT
"""Largest text of a scene's file, bytes; large arrays belong into files of their own."""
_KEYS = ("frame", "default_padding", "padding", "objects", "attached", "allowed")


def load_scene(path: str | Path, robot: RobotModel) -> Scene:
    """Load the scene of a file, as version 1.

    Raises:
        InvalidShapeError: the file cannot be read or describes no scene of this robot; the message says where.
    """
    path = path_of(path, "a scene", InvalidShapeError)
    with _at(f"scene {quoted(str(path), 300)}"):
        text = read_text(path, LARGEST_TEXT, "it", InvalidShapeError)
        given = read.mapping(read.parsed(text), "the file", _KEYS)
        frame = given.get("frame", robot.root_link)
        if frame != robot.root_link:
            raise InvalidShapeError(
                f"frame is {shown(frame)}; allowed is the robot's root link, {robot.root_link!r}"
            )
        scene = EMPTY_SCENE
        for id, said in read.mapping(given.get("objects"), "objects").items():
            with _at(f"object {quoted(id)}"):
                said = read.mapping(said, "it", ("pose", "shapes", "subframes"), ("shapes",))
                shapes = _shapes(said["shapes"], path.parent)
                T_root_object = pose_of(said.get("pose"), "the pose")
                scene = add(scene, robot, SceneObject(id, shapes, T_root_object, _subframes(said)))
        for id, said in read.mapping(given.get("attached"), "attached").items():
            with _at(f"attached object {quoted(id)}"):
                scene = _attached(scene, robot, id, said, path.parent)
        for index, pair in enumerate(read.sequence(given.get("allowed"), "allowed")):
            with _at(f"allowed[{index}]"):
                if len(read.sequence(pair, "it")) != 2:
                    raise InvalidShapeError(f"it is {shown(pair)}; allowed are two names")
                scene = allow(scene, robot, *(read.text(name, "a name") for name in pair))
        scene = set_padding(scene, robot, read.number(given.get("default_padding", 0.0), "default_padding"))
        for name, value in read.mapping(given.get("padding"), "padding").items():
            scene = set_padding(scene, robot, read.number(value, f"the padding of {quoted(name)}"), name)
        return replace(scene, version=1)


def save_scene(scene: Scene, path: str | Path, robot: RobotModel) -> None:
    """Write a scene to a file, and its large arrays beside it as ``<stem>.<hash>.npy``. It is read again bit for bit.

    Raises:
        OSError: a file cannot be written.
        InvalidShapeError: the text is larger than ``load_scene`` takes.
    """
    path = Path(path)
    arrays = ArrayFiles(f"{path.stem}.")
    _write(_scene_text(scene, arrays, robot.root_link), arrays, path)


def keep_scene(scene: Scene, folder: Path) -> None:
    """Write a scene to ``<scene_hash>.yaml`` in a folder of scenes, unless it is there. Raises as ``save_scene``."""
    arrays = ArrayFiles()
    text = _scene_text(scene, arrays)
    path = folder / f"{_hash(text)}.yaml"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        _write(text, arrays, path)


def scene_hash(scene: Scene) -> str:
    """Return a hash of a scene's content, in which its version does not count."""
    return _hash(_scene_text(scene, ArrayFiles()))


def _scene_text(scene: Scene, arrays: ArrayFiles, frame: str = "") -> str:
    said: dict[str, Any] = {"frame": frame} if frame else {}
    if scene.default_padding:
        said["default_padding"] = scene.default_padding
    if scene.padding:
        said["padding"] = dict(scene.padding)
    if scene.objects:
        said["objects"] = {
            body.id: _body_text(body, pose_text(body.T_root_object), arrays)
            for body in scene.objects.values()
        }
    if scene.attached:
        said["attached"] = {
            body.id: {
                "link": body.link,
                "touch_links": sorted(body.touch_links),
                **_body_text(body, pose_text(body.T_link_object), arrays),
            }
            for body in scene.attached.values()
        }
    if scene.allowed:
        # "*" goes last, as a reader expects it.
        said["allowed"] = sorted(sorted(pair, key=lambda name: (name == ANY, name)) for pair in scene.allowed)
    return yaml.safe_dump(said, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)


def _write(text: str, arrays: ArrayFiles, path: Path) -> None:
    if len(text.encode()) > LARGEST_TEXT:
        raise InvalidShapeError(
            f"the text of the scene is larger than {LARGEST_TEXT} bytes: too many shapes; a point cloud or an octomap "
            "holds many in one"
        )
    arrays.write(path.parent)
    with written(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _attached(scene: Scene, robot: RobotModel, id: str, said: Any, folder: Path) -> Scene:
    allowed = ("link", "pose", "touch_links", "shapes", "subframes")
    said = read.mapping(said, "it", allowed, ("link", "shapes"))
    touch_links = said.get("touch_links")
    if touch_links is not None:
        touch_links = [read.text(name, "a touch link") for name in read.sequence(touch_links, "touch_links")]
    T_link_object = pose_of(said.get("pose"), "the pose")
    shapes = _shapes(said["shapes"], folder)
    link, subframes = read.text(said["link"], "link"), _subframes(said)
    return attach_new(scene, robot, id, shapes, link, T_link_object, touch_links, subframes)


def _subframes(said: Any) -> dict[str, Float64]:
    return {
        name: pose_of(where, f"subframe {quoted(name)}")
        for name, where in read.mapping(said.get("subframes"), "subframes").items()
    }


def _shapes(given: Any, folder: Path) -> tuple[PlacedShape, ...]:
    shapes = []
    for index, said in enumerate(read.sequence(given, "shapes")):
        with _at(f"shapes[{index}]"):
            shapes.append(shape_of(said, folder))
    return tuple(shapes)


def _body_text(
    body: SceneObject | AttachedObject, where: dict[str, list[float]], files: ArrayFiles
) -> dict[str, Any]:
    said: dict[str, Any] = {"pose": where} if where else {}
    said["shapes"] = [shape_text(shape, files) for shape in body.shapes]
    if body.subframes:
        said["subframes"] = {name: pose_text(T) for name, T in body.subframes.items()}
    return said


@contextmanager
def _at(where: str) -> Iterator[None]:
    """Put the place in the file before the message of an error."""
    try:
        yield
    except KinoptError as error:
        raise InvalidShapeError(f"{where}: {error}") from error
