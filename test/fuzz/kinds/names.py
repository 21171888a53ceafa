"""Names of files, robots, links, joints, groups and states, of any type."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuzz.kinds import robots
from fuzz.source import Source
from kinopt_ros.collision.spheres import read_spheres
from kinopt_ros.geometry.mesh_files import find_mesh_file
from kinopt_ros.geometry.meshes import convex_hull, load_mesh
from kinopt_ros.planning.problem_files import load_problem
from kinopt_ros.problems.chains import resolve_chain
from kinopt_ros.problems.record import load_record
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.states import joints_of_state, named_configuration
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.files import load_scene
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.scene.tool_frames import find_tip, tool_frames

ROBOT = robot_from_urdf(robots.ARM, robots.ARM_SRDF)
_ODD_PATHS = (
    "/dev/zero", "/dev/null", "/dev/random", "/dev/full", "/dev/tty", "/proc/kmsg", "/proc/self/mem", "/proc/self/maps",
    "/proc/kcore", "/proc/self/environ", "/proc/sys/kernel/core_pattern", "/sys/kernel/mm/transparent_hugepage/enabled",
    "/", "/tmp", "", ".", "..", "x" * 300, "x/" * 3000, "a\0b", "a\ud800b", "a\udc80b", "~root", "~nosuchuser/x",
)  # fmt: skip
_READERS: tuple[Callable[[Any], Any], ...] = (
    load_robot,
    lambda name: load_robot("panda", srdf=name),
    lambda name: load_robot("panda", default_state=name),
    lambda name: load_scene(name, ROBOT),
    load_mesh,
    convex_hull,
    load_problem,
    load_record,
    read_spheres,
    find_mesh_file,
    robot_from_urdf,
    lambda name: robot_from_urdf(robots.ARM, name),
    tool_frames,
    lambda name: named_configuration(ROBOT, name),
    lambda name: joints_of_state(ROBOT, name),
    lambda name: ROBOT.link(name),
    lambda name: ROBOT.joint(name),
    lambda name: ROBOT.group(name),
    lambda name: find_tip(ROBOT, {}, EMPTY_SCENE, name),
    lambda name: resolve_chain(ROBOT, name, None, None),
    lambda name: resolve_chain(ROBOT, None, name, name),
)


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    for suffix in ("urdf", "yaml", "stl", "npy"):
        os.mkfifo(folder / f"pipe.{suffix}")
        (folder / f"link.{suffix}").symlink_to("/dev/zero")
        (folder / f"loop.{suffix}").symlink_to(folder / f"loop.{suffix}")
        (folder / f"folder.{suffix}").mkdir()
        (folder / f"empty.{suffix}").touch()
        with (folder / f"sparse.{suffix}").open("wb") as file:
            file.truncate(2 * 2**30)
        with (folder / f"holes.{suffix}").open("wb") as file:
            file.truncate(30 * 2**20)
    load_robot("panda")
    resolve_chain(ROBOT, "arm", None, None)


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    reader = source.choice(_READERS)
    what = source.randrange(4)
    name: Any
    if what == 0:
        name = source.choice(sorted(folder.iterdir()))
        name = name if source.often(0.5) else str(name)
    elif what == 1:
        name = source.choice(_ODD_PATHS) + source.choice(("", "", ".urdf", ".yaml", ".stl", ".glb"))
        if source.often(0.3):
            name = Path(name)
        elif source.often(0.3):
            name = source.choice(("file://", "package://", "package://x/", "http://", "file:///%00")) + name
    elif what == 2:
        name = source.name([*ROBOT.link_names, *ROBOT.groups, "home"])
    else:
        name = source.choice((source.value(), b"bytes", object, {1, 2}, (), 1j, ["a"], range(3)))
    reader(name)
