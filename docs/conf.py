"""Sphinx builds the book from the Markdown pages beside this file: `make docs`."""

import sys
from importlib import import_module
from pathlib import Path
from typing import NewType

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import numpy as np

from kinopt_ros import __version__

# (An attribute of kinopt_ros would import all of it first.)
array = import_module("kinopt_ros.array")
# Arrays are shown as the sources have them, Annotated[Float64, "B n"], and not as what these names stand for.
# Before other modules take them.
array.Float64 = NewType("Float64", np.ndarray)
array.Int64 = NewType("Int64", np.ndarray)
array.Bool = NewType("Bool", np.ndarray)

project = "kinopt_ros"
author = "kinopt_ros maintainers"
copyright = "kinopt_ros maintainers, Apache-2.0"
version = release = __version__

exclude_patterns = ["README.md", "_static", "security"]
extensions = ["book.extension", "myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_heading_anchors = 4
# A page of the book may begin with what stands on a page of the repository.
suppress_warnings = ["myst.header"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
maximum_signature_line_length = 88
add_module_names = False

# Options that a cell or a sentence names, as --demo, keep their hyphens.
smartquotes = False

html_theme = "furo"
html_title = f"kinopt_ros {version}"
html_static_path = ["_static"]
html_css_files = ["book.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "native"
