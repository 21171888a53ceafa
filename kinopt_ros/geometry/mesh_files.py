"""Search of the file that a mesh URI means.

A package may not be left: neither by ``..`` nor by a link that leads elsewhere. What ``colcon build --symlink-install``
does is no escape: its links lead to the source folder of the same package.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from kinopt_ros.errors import InvalidShapeError, quoted
from kinopt_ros.files import is_file, is_folder, path_of, read_text

_LONGEST = 4096
"""Longest URI, characters: no path is longer."""
_DEEPEST, _MOST_FOLDERS = 3, 2_000
"""How far below a folder of ROS_PACKAGE_PATH packages are looked for, and in how many folders at most."""
_NO_PACKAGES: Mapping[str, Path] = {}


def find_mesh_file(uri: str, near: Path | None = None, packages: Mapping[str, Path] = _NO_PACKAGES) -> Path:
    """Find an existing file.

    Args:
        uri: ``package://NAME/path``, ``file:///path``, an absolute path, or one that is relative to ``near``'s folder.
        near: file of the description that names the mesh; None if there is only its text.
        packages: folders of packages by name; they go before what AMENT_PREFIX_PATH, ROS_PACKAGE_PATH and the folders
            above ``near`` offer.

    Raises:
        InvalidShapeError: there is no such file, or the URI leaves its package.
    """
    if not isinstance(uri, str) or not uri.strip() or len(uri) > _LONGEST:
        raise InvalidShapeError(
            f"a mesh has the file name {quoted(uri)}; allowed is package://, file:// or a path, of at most {_LONGEST} "
            "characters"
        )
    path_of(unquote(uri), "a mesh", InvalidShapeError)
    if uri.startswith("package://"):
        return _in_package(uri, near, packages)
    if uri.startswith("file://"):
        path = Path(unquote(uri.removeprefix("file://").removeprefix("localhost")))
        if not path.is_absolute():
            raise InvalidShapeError(
                f"the mesh {quoted(uri)} is no absolute path; allowed is file:///folder/file"
            )
    elif re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", uri):
        raise InvalidShapeError(
            f"the mesh {quoted(uri)} is not looked for; allowed are package://, file:// and paths"
        )
    else:
        path = Path(uri)
        if not path.is_absolute():
            if near is None:
                raise InvalidShapeError(
                    f"the mesh {quoted(uri)} is relative to the URDF's file, but only its text is known; "
                    "write package://NAME/... or file:///..."
                )
            path = near.parent / path
    if not is_file(path):
        raise InvalidShapeError(
            f"the mesh {quoted(uri)} does not exist: there is no file {quoted(str(path), 300)}"
        )
    return path


def package_folders(
    name: str, near: Path | None = None, packages: Mapping[str, Path] = _NO_PACKAGES
) -> Iterator[Path]:
    """Yield folders where the files of a package may be, best first; the folders need not exist."""
    if name in packages:
        yield Path(packages[name])
        return
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            yield Path(prefix) / "share" / name
    for folder in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep):
        if folder:
            yield from _below(Path(folder), name)
    if near is not None:  # a clone usually holds its own meshes, in a folder of any name
        for above in near.resolve().parents:
            yield above if above.name == name or _is_package(above, name) else above / name


def _in_package(uri: str, near: Path | None, packages: Mapping[str, Path]) -> Path:
    name, _, rest = uri.removeprefix("package://").partition("/")
    if not name:
        raise InvalidShapeError(f"the mesh {quoted(uri)} names no package; allowed is package://NAME/path")
    if ".." in (name, *Path(rest).parts) or Path(rest).is_absolute():
        raise InvalidShapeError(
            f"the mesh {quoted(uri)} leaves its package by '..'; allowed are paths inside it"
        )
    first = None
    # One after the other: to look below ROS_PACKAGE_PATH takes longer than to find most.
    for folder in package_folders(name, near, packages):
        if not is_folder(folder):
            continue
        first = folder if first is None else first
        path = folder / rest
        if is_file(path):
            _refuse_escape(uri, path, folder, name)
            return path
    if first is not None:
        raise InvalidShapeError(
            f"the mesh {quoted(uri)} does not exist: there is no file {quoted(str(first / rest), 300)}"
        )
    where = "AMENT_PREFIX_PATH, ROS_PACKAGE_PATH" + (
        " and above the URDF's file" if near is not None else " (the URDF's file is not known, only its text)"
    )
    # Not which mesh: the sentence is the same for all of the package, so that links can be named together.
    raise InvalidShapeError(f"the package {quoted(name)} of its mesh is not found; looked for in {where}")


def _refuse_escape(uri: str, path: Path, folder: Path, name: str) -> None:
    real = path.resolve()
    if real.is_relative_to(folder.resolve()) or any(_is_package(above, name) for above in real.parents):
        return
    raise InvalidShapeError(
        f"the mesh {quoted(uri)} leaves its package by a link to {quoted(str(real), 300)}; allowed are files of the "
        "package"
    )


def _below(folder: Path, name: str) -> Iterator[Path]:
    """Yield the folder of a package in a folder of ROS_PACKAGE_PATH: the one of its name, or else the one whose
    package.xml names it, as a clone of several packages has it."""
    if is_folder(folder / name):
        yield folder / name
        return
    looked_at, level = 0, [folder]
    for _ in range(_DEEPEST + 1):
        deeper: list[Path] = []
        for place in level:
            looked_at += 1
            if looked_at > _MOST_FOLDERS:
                return
            if _is_package(place, name):
                yield place
                return
            if not is_file(place / "package.xml"):
                deeper += _folders_in(place)
        level = deeper


def _folders_in(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            found = [Path(one.path) for one in entries if one.is_dir() and not one.name.startswith(".")]
    except OSError:  # what may not be read holds nothing for us
        return []
    return sorted(found)


def _is_package(folder: Path, name: str) -> bool:
    """Check whether a folder holds the package.xml of this package."""
    try:
        text = read_text(folder / "package.xml", 2**20, "package.xml", InvalidShapeError)
    except InvalidShapeError:
        return False
    return re.search(rf"<name>\s*{re.escape(name)}\s*</name>", text) is not None
