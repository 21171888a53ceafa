"""Builds the packages of interfaces/ that are not installed, once per machine, and makes processes find them.

``python tools/interface_packages.py`` (or ``make interfaces``) builds them and says what to source.
"""

import ctypes
import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from importlib import invalidate_caches
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

from kinopt_ros.private_files import cache_folder, private_folder

FOLDER = Path(__file__).parents[1] / "interfaces"
PACKAGES = tuple(sorted(manifest.parent.name for manifest in FOLDER.glob("*/package.xml")))
SECONDS = 900
"""A build that takes longer is given up."""
MOST_KEPT = 8
"""Builds that are kept: of other interfaces, ROS distributions and versions of Python."""
_HOOK = FOLDER.parent / "kinopt_msgs" / "cmake" / "pip_build.cmake"
_TOOLS = ("cmake", "ninja")
_SETUP = """export PYTHONPATH="{site}${{PYTHONPATH:+:$PYTHONPATH}}"
export LD_LIBRARY_PATH="{prefix}/lib${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
"""


class BuildError(Exception):
    """The packages cannot be built here; the sentence says why."""


def provide() -> None:
    """Make this process, and those that it starts, find all packages of interfaces/.

    Raises:
        BuildError: those that are not installed cannot be built.
    """
    prefix = _built()
    if prefix is not None:
        use(prefix)


@cache
def _built() -> Path | None:
    """Return what ``build`` does, before this process finds it."""
    return build()


def build() -> Path | None:
    """Build the packages that are not installed, unless that was done before.

    Returns:
        The prefix that they are installed in; None if all are there without it.

    Raises:
        BuildError: they cannot be built.
    """
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return None
    try:
        folder = private_folder(cache_folder("interfaces"))
    except (OSError, RuntimeError) as error:
        raise BuildError(f"there is no private folder to keep them in: {error}") from error
    prefix = folder / _digest(missing)
    with (folder / "lock").open("w") as lock:  # processes of one run of the tests build them once
        fcntl.flock(lock, fcntl.LOCK_EX)
        setup = prefix / "setup.sh"
        if setup.exists():
            setup.touch()
            return prefix
        shutil.rmtree(prefix, ignore_errors=True)
        _build_all(missing, prefix)
        setup.write_text(_SETUP.format(prefix=prefix, site=_site_packages(prefix)))
        kept = sorted(folder.glob("*/setup.sh"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-MOST_KEPT]:
            shutil.rmtree(old.parent, ignore_errors=True)
    return prefix


def use(prefix: Path) -> None:
    """Make this process, and those that it starts, find the packages of a prefix, as sourcing its setup.sh would."""
    site = str(_site_packages(prefix))
    for name, value in (("PYTHONPATH", site), ("LD_LIBRARY_PATH", str(prefix / "lib"))):
        there = [path for path in os.environ.get(name, "").split(os.pathsep) if path and path != value]
        os.environ[name] = os.pathsep.join([value, *there])
    if site in sys.path:
        return
    sys.path.append(site)
    invalidate_caches()
    # A running process does not look at LD_LIBRARY_PATH any more, but finds what is loaded already. The order follows
    # from what needs what, so those that cannot be loaded yet are tried again.
    left = sorted(prefix.glob("lib/lib*.so"))
    while left:
        later = [library for library in left if not _loaded(library)]
        if len(later) == len(left):
            ctypes.CDLL(str(later[0]), mode=ctypes.RTLD_GLOBAL)  # says why not
        left = later


def _site_packages(prefix: Path) -> Path:
    return prefix / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"


def _loaded(library: Path) -> bool:
    try:
        ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    return True


def _digest(missing: list[str]) -> str:
    """Return a name for what is built: by what, of what, and for which ROS and Python."""
    files = sorted(path for name in missing for path in (FOLDER / name).rglob("*") if path.is_file())
    files += [Path(__file__), FOLDER / "interface_package.cmake", _HOOK]
    found = (distribution.metadata["Name"] + distribution.version for distribution in distributions())
    parts = [
        sys.version,
        sysconfig.get_platform(),
        *sorted(name for name in found if name.startswith("ros-")),
    ]
    parts += [f"{path.relative_to(FOLDER.parent)}\n{path.read_text()}" for path in files]
    return sha256("\0".join(parts).encode()).hexdigest()[:16]


def _build_all(names: list[str], prefix: Path) -> None:
    """Build packages, those beside each other that do not need one another."""
    needed = {name: _needs(name) & set(names) for name in names}
    done: set[str] = set()
    while needed:
        ready = [name for name, others in needed.items() if others <= done]
        with ThreadPoolExecutor(max_workers=2) as pool:
            list(pool.map(lambda name: _build(name, prefix), ready))
        done.update(ready)
        for name in ready:
            del needed[name]
    shutil.rmtree(prefix / "build")


def _needs(name: str) -> set[str]:
    manifest = ElementTree.parse(FOLDER / name / "package.xml")
    return {str(element.text) for element in manifest.iter("depend")}


def _build(name: str, prefix: Path) -> None:
    scripts = Path(sys.executable).parent
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    tools = {tool: shutil.which(tool, path=path) for tool in _TOOLS}
    if None in tools.values():
        raise BuildError(f"{' and '.join(tool for tool, found in tools.items() if not found)} not found")
    build = prefix / "build" / name
    configure = [
        *(
            tools["cmake"],
            "-S",
            FOLDER / name,
            "-B",
            build,
            "-G",
            "Ninja",
            f"-DCMAKE_MAKE_PROGRAM={tools['ninja']}",
        ),
        *(f"-DCMAKE_INSTALL_PREFIX={prefix}", f"-DCMAKE_PREFIX_PATH={prefix}", "-DBUILD_TESTING=OFF"),
        *("-DCMAKE_C_FLAGS=-O0 -g0", "-DCMAKE_CXX_FLAGS=-O0 -g0", f"-DPython3_EXECUTABLE={sys.executable}"),
        *(f"-DCMAKE_PROJECT_INCLUDE={_HOOK}", "-Wno-dev"),
        *("-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0"),
    ]
    for command in (configure, [tools["cmake"], "--build", build, "--target", "install"]):
        try:
            done = subprocess.run(
                [str(part) for part in command],
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise BuildError(f"building {name} takes longer than {SECONDS} s") from None
        if done.returncode != 0:
            raise BuildError(f"building {name} failed: ...{(done.stdout + done.stderr)[-1500:]}")


def main() -> int:
    """Build what is missing and say how to use it."""
    try:
        prefix = build()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("All interface packages are installed." if prefix is None else f"source {prefix}/setup.sh")
    return 0


if __name__ == "__main__":
    sys.exit(main())
