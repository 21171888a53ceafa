"""Builds moveit_msgs for tests, where it is not installed: the types of the services that the node offers, with the
names, fields and constants of moveit_msgs 2.6.0.

The wheels of ROS have no moveit_msgs, and what MoveIt clients send must be tried there, too. Only what rclpy needs is
generated, without optimization.
"""

import ctypes
import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

INTERFACES = Path(__file__).with_name("moveit_interfaces.txt")
HOOK = Path(__file__).parents[2] / "kinopt_msgs" / "cmake" / "pip_build.cmake"
TOOLS = ("cmake", "ninja")
SECONDS = 900
"""A build that takes longer is given up, and the tests are skipped."""

_CMAKE = """cmake_minimum_required(VERSION 3.20)
project({name} C CXX)
find_package(ament_cmake REQUIRED)
find_package(rosidl_cmake REQUIRED)
find_package(rosidl_generator_c REQUIRED)
find_package(rosidl_typesupport_c REQUIRED)
find_package(rosidl_typesupport_fastrtps_c REQUIRED)
find_package(rosidl_generator_py REQUIRED)
set(needed {needed})
foreach(package IN LISTS needed)
  find_package(${{package}} REQUIRED)
endforeach()
# Nobody here needs introspection, or C++.
list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "introspection|_cpp:|generator_rs")
macro(rosidl_generator_py_get_typesupports implementations)
  set(${{implementations}} rosidl_typesupport_c)
endmacro()
rosidl_generate_interfaces(${{PROJECT_NAME}} {files} DEPENDENCIES ${{needed}})
# Its files define the same static names.
set_target_properties(${{PROJECT_NAME}}__rosidl_generator_c PROPERTIES UNITY_BUILD OFF)
ament_package()
"""
_MANIFEST = """<package format="3"><name>{name}</name><version>0.0.0</version><description>For tests.</description>
<maintainer email="none@example.org">none</maintainer><license>BSD</license>
<member_of_group>rosidl_interface_packages</member_of_group></package>
"""
_NEEDED = {
    "shape_msgs": ("geometry_msgs",),
    "object_recognition_msgs": (),
    "moveit_msgs": (
        *("builtin_interfaces", "std_msgs", "geometry_msgs", "sensor_msgs", "shape_msgs", "trajectory_msgs"),
        "object_recognition_msgs",
    ),
}


class BuildError(Exception):
    """The package cannot be built here; the sentence says why."""


def build(
    folder: Path, interfaces: Path = INTERFACES, packages: Mapping[str, tuple[str, ...]] = _NEEDED
) -> Path:
    """Build below a folder that may be kept, unless that was done before; the prefix that it is installed in.

    Args:
        folder: where.
        interfaces: file with the interfaces.
        packages: what each of its packages needs.

    Raises:
        BuildError: it cannot be built.
    """
    text = interfaces.read_text()
    digest = sha256((text + _CMAKE + sys.version + sysconfig.get_platform()).encode()).hexdigest()[:16]
    prefix = folder / digest
    with (folder / "lock").open("w") as lock:  # processes of one run of the tests build it once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (prefix / "done").exists():
            shutil.rmtree(prefix, ignore_errors=True)
            files = defaultdict(dict)
            for part in text.split("=== ")[1:]:
                path, _, content = part.partition("\n")
                package, _, inside = path.partition("/")
                files[package][inside] = content
            for package, needed in packages.items():
                if find_spec(package) is None:
                    _build(package, files[package], needed, prefix)
            (prefix / "done").touch()
    return prefix


def use(prefix: Path) -> None:
    """Make this process, and those that it starts, find the packages of a prefix."""
    folders = [str(path) for path in sorted(prefix.glob("lib/python*/site-packages"))]
    sys.path += folders
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*folders, os.environ.get("PYTHONPATH")]))
    libraries = str(prefix / "lib")
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(
        filter(None, [libraries, os.environ.get("LD_LIBRARY_PATH")])
    )
    invalidate_caches()
    # A running process does not look at LD_LIBRARY_PATH any more, but finds what is loaded already. The order follows
    # from what needs what, so those that cannot be loaded yet are tried again.
    left = sorted(prefix.glob("lib/lib*.so"))
    while left:
        later = [library for library in left if not _loaded(library)]
        if len(later) == len(left):
            ctypes.CDLL(str(later[0]), mode=ctypes.RTLD_GLOBAL)  # says why not
        left = later


def _loaded(library: Path) -> bool:
    try:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True


def _build(name: str, files: dict[str, str], needed: tuple[str, ...], prefix: Path) -> None:
    source, build = prefix / "source" / name, prefix / "build" / name
    for inside, content in files.items():
        path = source / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    listed = " ".join(sorted(files))
    (source / "CMakeLists.txt").write_text(_CMAKE.format(name=name, needed=" ".join(needed), files=listed))
    (source / "package.xml").write_text(_MANIFEST.format(name=name))
    scripts = Path(sys.executable).parent
    tools = {tool: shutil.which(tool, path=f"{scripts}{os.pathsep}{os.environ['PATH']}") for tool in TOOLS}
    if None in tools.values():
        raise BuildError(f"{' and '.join(tool for tool, found in tools.items() if not found)} not found")
    configure = [
        *(tools["cmake"], "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tools['ninja']}"),
        *(f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_PREFIX_PATH={prefix}", "-DBUILD_TESTING=OFF"),
        *("-DCMAKE_C_FLAGS=-O0 -g0", "-DCMAKE_CXX_FLAGS=-O0 -g0", f"-DPython3_EXECUTABLE={sys.executable}"),
        *(f"-DCMAKE_PROJECT_INCLUDE={HOOK}", "-Wno-dev"),
        *("-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0"),
        "-DSTATIC_ROSIDL_TYPESUPPORT_C=rosidl_typesupport_fastrtps_c",
    ]
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    for command in (configure, [tools["cmake"], "--build", build, "--target", "install"]):
        try:
            done = subprocess.run(
                [str(part) for part in command],
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BuildError(f"building {name} takes longer than {SECONDS} s") from None
        if done.returncode != 0:
            raise BuildError(f"building {name} failed: ...{(done.stdout + done.stderr)[-1500:]}")
