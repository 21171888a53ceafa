"""Search of the files that mesh URIs mean."""

from pathlib import Path

from kinopt_ros.files import is_file, is_folder
from kinopt_ros.geometry.mesh_files import package_folders


def mesh_file(uri: str, urdf: Path) -> Path | None:
    """Return the file that a mesh URI means, which need not exist; None if its package cannot be found.

    ``package://name/...`` is looked for in the prefixes of AMENT_PREFIX_PATH and ROS_PACKAGE_PATH and in the folders
    above the URDF, since a clone usually holds its own meshes.

    Args:
        uri: as the URDF has it.
        urdf: the URDF's file, which relative paths start from.
    """
    if uri.startswith("package://"):
        name, _, rest = uri.removeprefix("package://").partition("/")
        if not name or ".." in Path(rest).parts:
            return None
        first = None
        for place in package_folders(name, urdf):  # one at a time: some are searched for
            if is_file(place / rest):
                return place / rest
            if first is None and is_folder(place):
                first = place / rest
        return first
    if uri.startswith("file://"):
        return Path(uri.removeprefix("file://"))
    if "://" in uri:
        return None
    return urdf.parent / uri
