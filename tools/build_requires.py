"""Prints the build requirements of a pyproject.toml, or one of its dependency groups, one per line.

Usage: python tools/build_requires.py PYPROJECT [GROUP]
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path(sys.argv[1]).read_text())
groups = project["dependency-groups"] | {"": project["build-system"]["requires"]}
print(*groups[sys.argv[2] if len(sys.argv) > 2 else ""], sep="\n")
