"""Prints the build requirements of a pyproject.toml, one per line."""

import sys
import tomllib
from pathlib import Path

print(*tomllib.loads(Path(sys.argv[1]).read_text())["build-system"]["requires"], sep="\n")
