"""Scene files, and the arrays and meshes beside them."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fuzz.kinds import robots
from fuzz.kinds.meshes import CUBE
from fuzz.source import Source
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.files import load_scene, save_scene, scene_hash
from kinopt_ros.scene.tool_frames import tool_frames

ROBOT = robot_from_urdf(robots.ARM)
GOOD: dict[str, Any] = {
    "frame": "base",
    "default_padding": 0.01,
    "padding": {"table": 0.02, "hand": 0.0},
    "objects": {
        "table": {"pose": {"xyz": [0.5, 0.0, -0.1]}, "shapes": [{"type": "box", "size": [1.0, 1.0, 0.2]}]},
        "all": {
            "pose": {"xyz": [1.0, 0.0, 0.0], "xyzw": [0.0, 0.0, 0.0, 1.0]},
            "shapes": [
                {"type": "sphere", "radius": 0.1},
                {"type": "cylinder", "radius": 0.1, "length": 0.2, "pose": {"rpy": [0.0, 1.0, 0.0]}},
                {"type": "capsule", "radius": 0.1, "length": 0.2},
                {"type": "cone", "radius": 0.1, "length": 0.2},
                {"type": "point_cloud", "points": [[0.0, 0.0, 0.0], [0.1, 0.0, 0.0]], "radius": 0.02},
                {"type": "octomap", "centers": [[0.0, 0.0, 0.0]], "sizes": 0.1},
                {"type": "mesh", "file": "cube.stl", "scale": [0.1, 0.1, 0.1]},
                {"type": "point_cloud", "points": "points.npy", "radius": 0.02},
            ],
        },
        "ground": {"shapes": [{"type": "plane"}]},
        "hills": {"shapes": [{"type": "height_map", "heights": [[0.0, 0.1], [0.0, 0.2]], "resolution": 0.1}]},
    },
    "attached": {
        "mug": {
            "link": "hand",
            "pose": {"xyz": [0.0, 0.0, 0.1]},
            "touch_links": ["left", "right"],
            "shapes": [{"type": "cylinder", "radius": 0.04, "length": 0.1}],
        }
    },
    "allowed": [["table", "base"], ["mug", "*"]],
}
FRAMES = {"camera": {"link": "hand", "pose": {"xyz": [0.0, 0.05, 0.02], "rpy": [0.0, 0.0, 1.57]}}}


def array_bytes() -> bytes:
    """A good .npy file."""
    file = io.BytesIO()
    np.save(file, np.random.default_rng(0).random((20, 3)))
    return file.getvalue()


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    (folder / "cube.stl").write_bytes(CUBE)
    (folder / "points.npy").write_bytes(array_bytes())
    (folder / "good.yaml").write_text(yaml.safe_dump(GOOD))
    scene = load_scene(folder / "good.yaml", ROBOT)
    save_scene(scene, folder / "saved.yaml", ROBOT)


def yaml_text(source: Source, good: Any) -> str:
    """A YAML text like that of a good value."""
    value = source.changed(good, source.choice((0.005, 0.02, 0.1)))
    try:
        text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=source.often(0.5))
    except ValueError:  # a number of thousands of digits
        text = "a: 0x" + "f" * 10_000
    if source.often(0.01):
        count = source.choice((100, 10_000, 100_000))
        text = source.choice(
            ("[" * count, "- " * count, "a: " * count, "{" * count, "a: " + "1" * count, "a: &a [*a]", "? " * count,
             "a: 0x" + "f" * count, "a: " + "1:" * count, "x" * count, "- a\n" * count, "%YAML 9.9\n---\n",
             "--- \n--- ", "a: 2001-99-99", "? [a]\n: b", "<<: {a: 1}", "a: !!binary x",
             "\x85", "a: 0b" + "1" * count, "a: ='")
        )  # fmt: skip
    return source.torn(text) if source.often(0.2) else text


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    if source.often(0.2):
        tool_frames(yaml_text(source, FRAMES))
        return
    text = yaml_text(source, GOOD)
    path = folder / "scene.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    array = array_bytes()
    (folder / "points.npy").write_bytes(source.torn_bytes(array) if source.often(0.2) else array)
    scene_hash(load_scene(path, ROBOT))
