"""Loading of robots by file or by name: bundled ones, and those of installed robot packages."""

import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from kinopt_ros.errors import RobotDescriptionError, quoted, shortened
from kinopt_ros.files import is_file, path_of, read_text
from kinopt_ros.robot.limits import apply_joint_limits
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.robot.xml_text import MAX_TEXT_LENGTH

ASSETS = Path(__file__).resolve().parent.parent / "assets"
"""Folder of the bundled robots: ``<name>/<name>.urdf`` and ``<name>/<name>.srdf``."""

ALIASES = {
    "allegro": "allegro_right_hand",
    "g1": "g1_29dof_rev_1_0",
    "g1_hands": "g1_29dof_with_hand_rev_1_0",
    "gen3": "GEN3_URDF_V12",
    "iiwa": "lbr_iiwa_14_r820",
    "puma560": "puma560_robot",
    "talos": "talos_full_v2",
    "ur10": "ur10_robot",
    "ur3": "ur3_robot",
    "ur5": "ur5_robot",
}
"""Short names for files of the robot packages."""

_EXAMPLE_ROBOTS = Path("cmeel.prefix", "share", "example-robot-data", "robots")


def load_robot(
    source: str | Path,
    srdf: str | Path | None = None,
    default_state: str | None = None,
    packages: Mapping[str, Path] | None = None,
    virtual_joint: bool = False,
) -> RobotModel:
    """Load a robot from a URDF file, or by name.

    Args:
        source: path of a URDF file; or the name of a bundled robot (which brings its SRDF and limits), or of one in an
            installed robot package (example-robot-data, rtb-data): the file's name without ``.urdf``, or an
            alias.
        srdf: path of an SRDF file. One that happens to lie beside the URDF is not picked up.
        default_state: as in ``robot_from_urdf``.
        packages: as in ``robot_from_urdf``; the folders above the URDF's file are searched, too.
        virtual_joint: as in ``robot_from_urdf``.

    Raises:
        RobotDescriptionError: there is no such file or name (the message lists the names), or the file
            describes no usable robot.
    """
    urdf_path, own_srdf = find_robot(source)
    srdf_path = own_srdf if srdf is None else path_of(srdf, "an SRDF", RobotDescriptionError)
    srdf_text = None if srdf_path is None else read_description(srdf_path, "SRDF")
    robot = robot_from_urdf(
        read_description(urdf_path, "URDF"), srdf_text, default_state, urdf_path, packages, virtual_joint
    )
    limits = bundled_joint_limits(str(source))
    return apply_joint_limits(robot, limits) if limits else robot


def read_description(path: Path, what: str) -> str:
    """Read the text of a description's file; ``what`` is "URDF" or "SRDF".

    Raises:
        RobotDescriptionError: there is no such file, or it is too large, no ordinary file, or no text.
    """
    return read_text(
        path, 4 * MAX_TEXT_LENGTH, f"the {what} file {quoted(str(path), 300)}", RobotDescriptionError
    )


def bundled_joint_limits(name: str) -> dict[str, dict[str, Any]]:
    """Return MoveIt's ``joint_limits`` of a bundled robot; empty for any other one."""
    path = ASSETS / name / "joint_limits.yaml"
    if name not in _bundled_names() or not path.is_file():
        return {}
    limits: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["joint_limits"]
    return limits


def find_robot(source: str | Path) -> tuple[Path, Path | None]:
    """Find the files of a robot: its URDF, and its SRDF if it is a bundled one.

    Raises:
        RobotDescriptionError: there is no such file or name.
    """
    if isinstance(source, str) and source.lstrip().startswith("<"):
        raise RobotDescriptionError("this is URDF text, not a file or a name: use robot_from_urdf")
    if source != "":
        path_of(source, "a robot", RobotDescriptionError)
    if isinstance(source, Path) or source.endswith((".urdf", ".xml", ".xacro")) or is_file(source):
        return Path(source), None
    bundled = ASSETS / source / f"{source}.urdf"
    if source in _bundled_names():
        srdf = bundled.with_suffix(".srdf")
        return bundled, srdf if srdf.is_file() else None
    installed = installed_robots()
    name = ALIASES.get(source, source)
    if name in installed:
        return installed[name], None
    alike = sorted(known for known in installed if known.endswith(f"/{name}"))
    if alike:
        raise RobotDescriptionError(f"there are several robots {quoted(source)}: {shortened(alike)}")
    raise RobotDescriptionError(
        f"there is no robot {quoted(source)}, neither a file nor a name; known names: {', '.join(robot_names())}"
        + ("" if installed else "; more come with `pip install example-robot-data` or `pip install rtb-data`")
    )


def robot_names() -> list[str]:
    """Return all names that ``load_robot`` knows on this machine: bundled ones first, then aliases and files."""
    bundled, installed = _bundled_names(), installed_robots()
    names = {*installed, *(alias for alias, name in ALIASES.items() if name in installed)}
    return [*bundled, *sorted(names - set(bundled), key=str.lower)]


def installed_robots() -> dict[str, Path]:
    """Return URDF files of installed robot packages by the file's name; those of equal name as ``folder/name``."""
    by_stem: dict[str, list[tuple[str, Path]]] = {}
    for root in _package_folders():
        for path in sorted(root.rglob("*.urdf")):
            by_stem.setdefault(path.stem, []).append((path.relative_to(root).parts[0], path))
    robots: dict[str, Path] = {}
    for stem, found in by_stem.items():
        for folder, path in found:
            robots.setdefault(stem if len(found) == 1 else f"{folder}/{stem}", path)
    return robots


def _package_folders() -> Iterator[Path]:
    for entry in dict.fromkeys(sys.path):
        folder = Path(entry) / _EXAMPLE_ROBOTS
        if folder.is_dir():
            yield folder
            break
    spec = find_spec("rtbdata")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(location) / "xacro"
        if folder.is_dir():
            yield folder


def _bundled_names() -> list[str]:
    return sorted(path.stem for path in ASSETS.glob("*/*.urdf") if path.stem == path.parent.name)
