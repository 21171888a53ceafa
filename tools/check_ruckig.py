"""Checks the module that colcon has built of the C++ library ruckig: it times motions, and pip's plans the same.

Usage: python tools/check_ruckig.py INSTALL_FOLDER, in a shell that has sourced install/setup.bash
"""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "test" / "unit" / "trajectory" / "test_ruckig_module.py"


def main() -> None:
    """Run the checks."""
    install = Path(sys.argv[1]).resolve()
    sys.modules["ruckig"] = None  # type: ignore[assignment]  # as where pip has installed none
    import numpy as np

    from kinopt_ros.trajectory.ruckig_module import ruckig_module
    from kinopt_ros.trajectory.timing import point_to_point

    file = Path(str(ruckig_module().__file__))
    assert file.is_relative_to(install), f"{file} is not below {install}"
    one = np.ones(1)
    motion = point_to_point(("joint",), 0.0 * one, one, one, one, 10.0 * one)
    print(f"motions are timed by {file.name}: 1 rad in {motion.time[-1]:.3f} s")
    if pip_has_one():
        run = [sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", str(TESTS)]
        output = subprocess.run(run, check=True, capture_output=True, text=True).stdout
        assert "skipped" not in output, output
        print(output.strip().splitlines()[-1])


def pip_has_one() -> bool:
    """Whether the module of pip is installed, too."""
    return (
        subprocess.run([sys.executable, "-c", "import ruckig"], capture_output=True, check=False).returncode
        == 0
    )


if __name__ == "__main__":
    main()
