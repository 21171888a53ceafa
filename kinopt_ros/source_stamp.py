"""What compiled code was compiled from: a digest of the function's file and of all that it imports.

numba looks at the file of a function only, not at those of functions and numbers that are compiled into it. Times
say nothing: copies keep them, and a source may be older than the one that it replaces.
"""

import os
import re
import sys
import time
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = Path(__file__).parent
_NOT_FOLLOWED = _PACKAGE / "numba_cache.py"
"""Every compiled file imports it, and nothing that it imports is compiled."""
_KNOWN = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite"}
"""Top names of modules that are not followed: their numbers are the same whenever kinopt_ros is."""
_JOINED = re.compile(r"\\\r?\n")
_FROM = re.compile(
    r"\bfrom[ \t]*(\.[.\w \t]*|[ \t][\w.]+)[ \t]*\bimport\b[ \t]*(\((?:#[^\r\n]*|[^)#])*\)|[^\r\n;]*)"
)
_IMPORT = re.compile(r"(?:^|[:;])[ \t\f]*import[ \t]+([^\r\n;]*)", re.MULTILINE)
"""Both find more than there is, as in comments: such names are seldom those of modules."""
_BY_NAME = re.compile(r"(?:import_module|__import__)\s*\(\s*[frbuFRBU]?[\"']([\w.]+)[\"']")
_COMMENT = re.compile(r"#[^\r\n]*")
_NAME = re.compile(r"[\w.]+")


@cache
def source_stamp(file: Path) -> bytes:
    """Return a hash of a file and of what it imports, directly or not, by ``import`` or by names written out.

    Files of kinopt_ros, of its own package and of others count, but for numpy, numba and what comes with Python.

    Files are read once in a process: what is in memory was compiled from what they were.
    """
    return _stamp(_sources(file))


@cache
def own_source_stamp(file: Path) -> bytes:
    """Return ``source_stamp`` without the files of other packages: whoever asks knows their versions."""
    return _stamp(_sources(file, others=False))


def _stamp(files: Iterable[Path]) -> bytes:
    stamp = sha256()
    for source in sorted(files):
        stamp.update(source.name.encode() + _read(source)[0])
    return stamp.digest()


def changed_since_start(file: Path) -> bool:
    """Whether a file that ``source_stamp`` counts was changed after this process began: what was compiled may be of
    one source, and the digest of another.

    Ages are compared, as clocks are set when a machine finds its network; what seems to come from the future is older.
    """
    return _changed(_sources(file))


@cache
def package_stamp(*packages: str) -> bytes | None:
    """Return a hash of all Python files of packages, none of which is imported for that.

    None if one was changed after this process began: what is in memory may be of another source.
    """
    files = [
        file for package in packages for place in _places(package) for file in sorted(place.rglob("*.py"))
    ]
    if _changed(files):
        return None
    stamp = sha256()
    for file in files:
        stamp.update(file.name.encode() + sha256(file.read_bytes()).digest())
    return stamp.digest()


def _changed(files: Iterable[Path]) -> bool:
    age = _uptime() - _began
    ages = (time.time() - file.stat().st_ctime for file in files)
    return any(-1.0 <= since_change < age for since_change in ages)


def forget() -> None:
    """Read files anew from now on, as another process does."""
    global _began
    _began = _uptime()
    for known in (source_stamp, own_source_stamp, package_stamp, _sources, _read, _places):
        known.cache_clear()


def _uptime() -> float:
    """s, by a clock that nobody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _start_of_process() -> float:
    """As ``_uptime``."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return _uptime()  # not Linux
    return min(ticks / os.sysconf("SC_CLK_TCK") + _STARTING, _uptime())


_STARTING = 0.02
"""s: ticks are 0.01, and sooner no process imports anything."""
_began = _start_of_process()


@cache
def _sources(file: Path, others: bool = True) -> frozenset[Path]:
    """A file and what it imports."""
    found = {file}
    waiting = [(file, True)]
    while waiting:
        source, is_own = waiting.pop()
        _, near, packages = _read(source)
        more = {(imported, is_own) for imported in near}
        if is_own and others:
            more |= {(imported, False) for name in packages for imported in _of_other_package(name)}
        for imported, own in more:
            if imported not in found:
                found.add(imported)
                waiting.append((imported, own))
    return frozenset(found)


@cache
def _read(file: Path) -> tuple[bytes, frozenset[Path], frozenset[str]]:
    """Digest of a file, the files of its own package and of kinopt_ros that it imports, and what else it imports."""
    content = file.read_bytes()
    found: set[Path] = set()
    others: set[str] = set()
    if file != _NOT_FOLLOWED:
        for module in _imported(content.decode(errors="replace")):
            near = _files_of(module, file)
            found |= near
            if not near and not module.startswith((".", f"{_PACKAGE.name}.")):
                others.add(module)
    return sha256(content).digest(), frozenset(found), frozenset(others)


def _imported(text: str) -> set[str]:
    """Names of modules, and of what may be modules; with leading dots as they are written."""
    text = _JOINED.sub(" ", text)
    found = set(_BY_NAME.findall(text))
    for module, names in _FROM.findall(text):
        module = "".join(module.split())
        between = "" if module.endswith(".") else "."
        found |= {module} | {f"{module}{between}{name}" for name in _NAME.findall(_COMMENT.sub("", names))}
    for modules in _IMPORT.findall(text):
        for name in _NAME.findall(_COMMENT.sub("", modules)):
            parts = name.split(".")  # `import a.b` makes what a says known, too
            found |= {".".join(parts[:end]) for end in range(len(parts), 1, -1)} | {parts[0]}
    return found


def _files_of(module: str, file: Path) -> set[Path]:
    """Files that a name in a file may mean."""
    name = module.lstrip(".")
    parts = [part for part in name.split(".") if part]
    if len(name) < len(module):
        above = file.parents[: len(module) - len(name)]
        return _at(above[-1].joinpath(*parts)) if len(above) == len(module) - len(name) else set()
    if not parts:
        return set()
    top = parts[0]
    # Folders need no __init__.py to be packages.
    roots = {folder.parent for folder in file.parents if folder.name == top}
    if top == _PACKAGE.name:
        roots.add(_PACKAGE.parent)
    if not (file.parent / "__init__.py").exists():
        roots.add(file.parent)
    return {candidate for root in roots for candidate in _at(root.joinpath(*parts))}


def _of_other_package(module: str) -> set[Path]:
    """Files that a name means that is not of the package of who imports it."""
    top, *parts = module.split(".")
    if top in _KNOWN:
        return set()
    return {candidate for place in _places(top) for candidate in _at(place.joinpath(*parts))}


def _at(path: Path) -> set[Path]:
    """Files of a module at a path without suffix."""
    if not path.name:
        return set()
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return {candidate for candidate in candidates if candidate.is_file()}


@cache
def _places(top: str) -> tuple[Path, ...]:
    """Where a module lies, its path without suffix, or a package, its folders."""
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return ()
    if spec is None:
        return ()
    if spec.submodule_search_locations is not None:
        return tuple(Path(location) for location in spec.submodule_search_locations)
    return (Path(spec.origin).with_suffix(""),) if spec.origin else ()
