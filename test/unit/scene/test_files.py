"""Scene files: what is written is read again; what is wrong is refused by place and sentence."""

from pathlib import Path

import numpy as np
import pytest

from kinopt_ros.errors import InvalidShapeError
from kinopt_ros.geometry.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    HeightMap,
    Mesh,
    Octomap,
    PlacedShape,
    Plane,
    PointCloud,
    Shape,
    Sphere,
)
from kinopt_ros.kinematics.se3 import pose, rpy_to_matrix
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.scene.changes import add, allow, attach_new, clear, set_padding
from kinopt_ros.scene.files import keep_scene, load_scene, save_scene, scene_hash
from kinopt_ros.scene.scene import EMPTY_SCENE, Scene, SceneObject

PANDA = load_robot("panda")
TETRAHEDRON = (
    np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]),
)
SHAPES: tuple[Shape, ...] = (
    Box(0.1, 1.0 / 3.0, 2.0),
    Sphere(0.25),
    Cylinder(0.1, 0.7),
    Cone(0.2, 0.3),
    Capsule(0.05, 1e-3),
    Plane(),
    Mesh(*TETRAHEDRON),
    HeightMap(np.random.default_rng(0).normal(size=(40, 30)), 0.05),
    PointCloud(np.random.default_rng(1).normal(size=(500, 3)), 0.01),
    Octomap(np.array([[0.1, 0.2, 0.3], [0.5, 0.6, 0.7]]), np.array([0.05, 0.1])),
)
TILTED = pose(rpy_to_matrix(np.array([0.3, -0.7, 2.1])), np.array([0.4, -0.2, 1.0 / 3.0]))


def full_scene() -> Scene:
    shapes = tuple(PlacedShape(shape, TILTED if i % 2 else np.eye(4)) for i, shape in enumerate(SHAPES))
    frames = {"top": TILTED, "middle": np.eye(4)}
    scene = add(EMPTY_SCENE, PANDA, SceneObject("everything: all", shapes, TILTED, frames))
    scene = attach_new(scene, PANDA, "mug", shapes[:3], "panda_hand", TILTED, ("panda_leftfinger",), frames)
    scene = allow(allow(scene, PANDA, "mug"), PANDA, "panda_link7", "everything: all")
    return set_padding(set_padding(scene, PANDA, 0.01), PANDA, 0.02, "mug")


def numbers(shape: Shape) -> list[np.ndarray]:
    return [np.asarray(value) for value in vars(shape).values()]


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    scene = full_scene()
    save_scene(scene, tmp_path / "scene.yaml", PANDA)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert [name.split(".")[::2] for name in files] == [["scene", "npy"], ["scene", "npy"], ["scene"]]
    loaded = load_scene(tmp_path / "scene.yaml", PANDA)
    assert loaded.version == 1
    assert (loaded.allowed, loaded.padding, loaded.default_padding) == (
        scene.allowed,
        scene.padding,
        scene.default_padding,
    )
    assert list(loaded.objects) == ["everything: all"]
    assert loaded.attached["mug"].touch_links == {"panda_hand", "panda_leftfinger"}
    bodies = (
        (scene.objects["everything: all"], loaded.objects["everything: all"]),
        (scene.attached["mug"], loaded.attached["mug"]),
    )
    for before, after in bodies:
        assert len(after.shapes) == len(before.shapes)
        for a, b in zip(before.shapes, after.shapes, strict=True):
            assert type(a.shape) is type(b.shape)
            np.testing.assert_array_equal(b.T_frame_shape, a.T_frame_shape)
            for x, y in zip(numbers(a.shape), numbers(b.shape), strict=True):
                np.testing.assert_array_equal(x, y)
        assert [*after.subframes] == ["top", "middle"]
        np.testing.assert_array_equal(after.subframes["top"], TILTED)
    np.testing.assert_array_equal(loaded.objects["everything: all"].T_root_object, TILTED)
    np.testing.assert_array_equal(loaded.attached["mug"].T_link_object, TILTED)


def test_scenes_of_equal_content_are_kept_once(tmp_path: Path) -> None:
    scene = full_scene()
    keep_scene(scene, tmp_path / "kept")
    files = sorted((tmp_path / "kept").iterdir())
    assert f"{scene_hash(scene)}.yaml" in [file.name for file in files]
    loaded = load_scene(tmp_path / "kept" / f"{scene_hash(scene)}.yaml", PANDA)
    assert scene_hash(loaded) == scene_hash(scene)
    keep_scene(loaded, tmp_path / "kept")
    assert sorted((tmp_path / "kept").iterdir()) == files
    assert scene_hash(clear(scene)) != scene_hash(scene)


def test_an_empty_file_is_an_empty_scene(tmp_path: Path) -> None:
    (tmp_path / "scene.yaml").write_text("")
    loaded = load_scene(tmp_path / "scene.yaml", PANDA)
    assert not loaded.objects
    assert not loaded.attached
    save_scene(loaded, tmp_path / "again.yaml", PANDA)
    assert (tmp_path / "again.yaml").read_text() == "{frame: panda_link0}\n"


def test_meshes_by_name_of_a_file_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "meshes").mkdir()
    lines = [f"v {x} {y} {z}" for x, y, z in TETRAHEDRON[0]]
    lines += [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in TETRAHEDRON[1]]
    (tmp_path / "meshes" / "part.obj").write_text("\n".join(lines))
    (tmp_path / "scene.yaml").write_text(
        "objects: {part: {shapes: [{type: mesh, file: meshes/part.obj, scale: [0.1, 0.1, 0.2]}]}}"
    )
    shape = load_scene(tmp_path / "scene.yaml", PANDA).objects["part"].shapes[0].shape
    assert isinstance(shape, Mesh)
    np.testing.assert_allclose(shape.vertices.max(axis=0), [0.1, 0.1, 0.2])


def box(size: str = "[1, 1, 1]", **more: str) -> str:
    return "{" + ", ".join([f"type: box, size: {size}", *(f"{k}: {v}" for k, v in more.items())]) + "}"


def obj(shape: str, **more: str) -> str:
    rest = "".join(f", {k}: {v}" for k, v in more.items())
    return f"objects: {{a: {{shapes: [{shape}]{rest}}}}}"


REFUSED = {
    "no mapping": ("[1, 2]", "the file is [1, 2]; allowed is a mapping"),
    "no YAML": ("objects: {a: [", "cannot be read as YAML"),
    "control characters": ("a: \x01", "cannot be read as YAML"),
    "unknown key": ("object: {}", "the file has 'object'; allowed are frame, default_padding"),
    "another frame": ("frame: map", "frame is 'map'; allowed is the robot's root link, 'panda_link0'"),
    "an object twice": (
        f"objects:\n  a: {{shapes: [{box()}]}}\n  a: {{shapes: [{box()}]}}",
        "'a' is given twice",
    ),
    "aliases": ("objects: {a: &x {shapes: []}, b: *x}", "aliases"),
    "a tag": (obj("{type: sphere, radius: !!int ''}"), "tags (tag:yaml.org,2002:int) are not allowed"),
    "a tag of a list": ("objects: !!map [a]", "tags (tag:yaml.org,2002:map) are not allowed"),
    "a tag of python": ("objects: !!python/none x", "are not allowed"),
    "merging": (f"objects: {{<<: {{a: {{shapes: [{box()}]}}}}}}", "merging (<<) is not allowed"),
    "an endless number": (
        obj(f"{{type: sphere, radius: 1{'0' * 400}}}"),
        "a number of 401 characters is not allowed",
    ),
    "no shapes": ("objects: {a: {pose: {}}}", "object 'a': it has no shapes"),
    "zero size": (obj(box("[1, 0, 1]")), "object 'a': shapes[0]: y of a box is 0; allowed is at least"),
    "NaN size": (obj(box("[1, .nan, 1]")), "shapes[0]: y of a box is nan"),
    "size as text": (obj(box("[1, 1e-3, 1]")), "'1e-3'; allowed is a number (YAML wants 1.0e-3, not 1e-3)"),
    "two sizes": (obj(box("[1, 1]")), "size is [1, 1]; allowed are 3 numbers"),
    "unknown type": (obj("{type: cube}"), "type is 'cube'; allowed are box, sphere"),
    "keys of another type": (
        obj("{type: sphere, size: 1}"),
        "a sphere has the keys size; allowed are radius",
    ),
    "two poses": (obj(box(pose="{rpy: [0, 0, 0], xyzw: [0, 0, 0, 1]}")), "rpy and xyzw"),
    "scaled matrix": (obj(box(pose="{matrix: [2, 0, 0, 0, 2, 0, 0, 0, 2]}")), "orthonormal"),
    "NaN angle": (obj(box(pose="{rpy: [0, 0, .nan]}")), "rpy of the pose is [0.0, 0.0, nan]"),
    "long quaternion": (obj(box(pose="{xyzw: [0, 0, 1, 1]}")), "length 1.41421; allowed is 1"),
    "NaN pose": (obj(box(), pose="{xyz: [.nan, 0, 0]}"), "pose of object 'a' is no rigid transform"),
    "name of a link": (f"objects: {{panda_hand: {{shapes: [{box()}]}}}}", "name of a link"),
    "unknown link": (
        f"attached: {{a: {{link: hand, shapes: [{box()}]}}}}",
        "attached object 'a': unknown link 'hand'; known: panda_link0",
    ),
    "unknown pair": ("allowed: [[a, panda_link0]]", "allowed[0]: unknown object 'a'"),
    "pair of three": ("allowed: [[a, b, c]]", "allowed[0]: it is ['a', 'b', 'c']; allowed are two names"),
    "negative padding": ("default_padding: -0.1", "the default padding is -0.1; allowed is 0 to 1 m"),
    "padding of nothing": ("padding: {a: 0.1}", "unknown object 'a'"),
    "ragged points": (
        obj("{type: point_cloud, radius: 0.1, points: [[0, 0, 0], [1, 1]]}"),
        "points cannot be read",
    ),
    "points that are text": (
        obj("{type: point_cloud, radius: 0.1, points: [[a, b, c]]}"),
        "points are <U1 (1, 3); allowed is rows of numbers",
    ),
    "open mesh": (
        obj(
            "{type: mesh, vertices: [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], "
            "triangles: [[0, 2, 1], [0, 1, 3], [0, 3, 2]]}"
        ),
        "object 'a': shapes[0]: the mesh",
    ),
    "absolute file": (obj("{type: mesh, file: /etc/passwd}"), "'/etc/passwd' is not named relative"),
    "escape by dots": (obj("{type: mesh, file: ../a.stl}"), "'../a.stl' is not named relative"),
    "escape by a link": (obj("{type: mesh, file: link.stl}"), "'link.stl' is a link that leaves"),
    "no file": (obj("{type: mesh, file: none.stl}"), "no file 'none.stl' beside the scene's file"),
    "no array": (
        obj("{type: point_cloud, radius: 0.1, points: text.npy}"),
        "points cannot be read",
    ),
    "an array that promises more than it holds": (
        obj("{type: point_cloud, radius: 0.1, points: short.npy}"),
        "points cannot be read",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_where(name: str, tmp_path: Path) -> None:
    text, sentence = REFUSED[name]
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "outside.stl").write_text("solid")
    (folder / "link.stl").symlink_to(tmp_path / "outside.stl")
    (folder / "text.npy").write_text("no array")
    np.save(folder / "short.npy", np.zeros((1000, 3)))
    whole = (folder / "short.npy").read_bytes()
    (folder / "short.npy").write_bytes(whole[:200])
    (folder / "scene.yaml").write_text(text)
    with pytest.raises(InvalidShapeError) as caught:
        load_scene(folder / "scene.yaml", PANDA)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("scene '")


def test_files_that_are_missing_large_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InvalidShapeError, match="No such file"):
        load_scene(tmp_path / "none.yaml", PANDA)
    (tmp_path / "latin.yaml").write_bytes(b"frame: \xff")
    with pytest.raises(InvalidShapeError, match="UTF-8"):
        load_scene(tmp_path / "latin.yaml", PANDA)
    (tmp_path / "large.yaml").write_text("#" * (4 * 2**20 + 1))
    with pytest.raises(InvalidShapeError, match="at most 4194304 are read"):
        load_scene(tmp_path / "large.yaml", PANDA)
