"""The Python module of ruckig: pip's, or that of the package kinopt_ruckig, made of the C++ library that ROS has."""

import importlib
from functools import cache
from typing import Any

from kinopt_ros.errors import SolverUnavailableError

MODULES = ("ruckig", "kinopt_ruckig")
"""Names of modules, the preferred one first."""
NAMES = ("InputParameter", "Result", "Ruckig", "RuckigError", "Trajectory")
"""What kinopt_ros uses of them."""


@cache
def ruckig_module() -> Any:
    """Return the first of ``MODULES`` that has ``NAMES``.

    Raises SolverUnavailableError if there is none.
    """
    problems = []
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            problems.append(f"{type(error).__name__}: {error}")
            continue
        # The folder kinopt_ruckig/, seen from the repository root, is imported, too, and has none.
        lacking = [wanted for wanted in NAMES if not hasattr(module, wanted)]
        if not lacking:
            return module
        problems.append(
            f"{name} of {module.__path__ if module.__file__ is None else module.__file__} has no {', '.join(lacking)}"
        )
    raise SolverUnavailableError(
        "timing a motion needs ruckig. Where ROS is installed: have `rosdep install` and `colcon build` look at "
        "src/kinopt_ros/kinopt_ruckig, too (docs/install.md), and source install/setup.bash. "
        f"Elsewhere: pip install ruckig. ({'; '.join(problems)})"
    )
