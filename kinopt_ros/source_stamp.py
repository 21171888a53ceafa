"""Stamp of compiled code: a digest of the function's file and of all that it imports.

numba looks at the file of a function only, not at those of functions and numbers that are compiled into it. Times
say nothing: copies keep them, and a source may be older than the one that it replaces.
"""

import re
from functools import cache
from hashlib import sha256
from pathlib import Path

_PACKAGE = Path(__file__).parent
_NOT_FOLLOWED = _PACKAGE / "numba_cache.py"
"""Every compiled file imports it, and nothing that it imports is compiled."""
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))", re.MULTILINE
)
_NAME = re.compile(r"[\w.]+")


@cache
def source_stamp(file: Path) -> bytes:
    """Return a hash of a file and of all that it imports, directly or not, of kinopt_ros or of its own package.

    For a file in no package, the files beside it count as its package.

    Files are read once in a process: what is in memory was compiled from what they were.
    """
    found = {file}
    waiting = [file]
    while waiting:
        for imported in _read(waiting.pop())[1] - found:
            found.add(imported)
            waiting.append(imported)
    stamp = sha256()
    for source in sorted(found):
        stamp.update(source.name.encode() + _read(source)[0])
    return stamp.digest()


def forget() -> None:
    """Forget the files read, so that they are read anew, as another process does."""
    source_stamp.cache_clear()
    _read.cache_clear()


@cache
def _read(file: Path) -> tuple[bytes, frozenset[Path]]:
    """Return the digest of a file, and the files that it imports."""
    content = file.read_bytes()
    found: set[Path] = set()
    if file != _NOT_FOLLOWED:
        roots = {(_root(file), _top(file)), (_PACKAGE.parent, _PACKAGE)}
        for module in _imported(content.decode(errors="replace")):
            for root, top in roots:
                path = root.joinpath(*module.split("."))
                for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
                    if _top(candidate) == top and candidate.is_file():
                        found.add(candidate)
    return sha256(content).digest(), frozenset(found)


def _imported(text: str) -> set[str]:
    """Return names of modules, and of what may be modules."""
    found: set[str] = set()
    for module, names, modules in _IMPORT.findall(text):
        if module:
            found |= {module} | {f"{module}.{name}" for name in _NAME.findall(names)}
        else:
            found |= set(_NAME.findall(modules))
    return found


@cache
def _top(file: Path) -> Path:
    """Return the outermost package that a file is in, or its folder if it is in none."""
    folder = file.parent
    while (folder / "__init__.py").exists() and (folder.parent / "__init__.py").exists():
        folder = folder.parent
    return folder


def _root(file: Path) -> Path:
    """Return the folder that a file's own package is imported from."""
    top = _top(file)
    return top.parent if (top / "__init__.py").exists() else top
