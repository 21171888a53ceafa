"""Imports go downwards only, and heavy packages stay where they belong (ARCHITECTURE.md)."""

import subprocess
import sys
from pathlib import Path

from support.layers import PACKAGE, imported, layer_of, modules, part_of
from support.layers_picture import layers_picture
from support.pages import ROOT

ROS = ("ros", "bench/node")
ONLY_IN = {
    "rclpy": ROS,
    "geometry_msgs": ROS,
    "sensor_msgs": ROS,
    "trajectory_msgs": ROS,
    "kinopt_msgs": ROS,
    "std_msgs": ROS,
    "visualization_msgs": ROS,
    "std_srvs": ROS,
    "builtin_interfaces": ROS,
    "rcl_interfaces": ROS,
    "tf2_ros": ROS,
    "tf_transformations": ROS,
    "numba": (
        "numba_notice.py",
        "freed_memory.py",
        "numba_cache.py",
        "solvers/analytic/kernels",
        "solvers/cpu",
        "solvers/kernels",
        "collision",
        "objectives/kernels",
        "trajectory/kernels",
        "verification/kernels",
    ),
    "coal": ("collision", "bench/collision"),
    "ompl": ("planning/sampling.py",),
    "eaik": ("solvers/analytic", "bench"),
    "roboplan": ("bench/mbm/peers", "bench/peers"),
    "trimesh": ("geometry", "robot"),
    "jax": ("differentiable", "solvers/jax_lm", "bench/pyroki"),
    "jaxlie": ("differentiable", "solvers/jax_lm", "bench/pyroki"),
    "jaxls": ("solvers/jax_lm/objectives", "bench/pyroki"),
    "loguru": ("solvers/jax_lm/objectives",),
    "torch": ("differentiable",),
    "warp": ("solvers/hjcd",),
    "viser": ("viewer",),
    "urdf_parser_py": ("robot",),
    "pytest": ("conformance",),
}


# Seven hundred files: a test for each of them would take longer to collect and to report than to run. Each is read in
# the tests: whoever collects them need not.


def test_imports_go_downwards() -> None:
    assert len(modules()) > 500
    upwards = []
    for path in modules():
        names = imported(path)
        own = part_of(path)
        for name in names:
            parts = name.split(".")
            if parts[0] == "kinopt_ros" and len(parts) > 1 and layer_of(parts[1]) > layer_of(own):
                upwards.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert not upwards


def test_heavy_packages_stay_in_their_place() -> None:
    elsewhere = []
    for path in modules():
        names = imported(path)
        inside = path.relative_to(PACKAGE).as_posix()
        for name in names:
            allowed = ONLY_IN.get(name.split(".")[0])
            places = tuple(place if place.endswith(".py") else f"{place}/" for place in allowed or ())
            if allowed is not None and not inside.startswith(places):
                elsewhere.append(f"{inside}: {name}")
    assert not elsewhere


def test_the_picture_is_up_to_date() -> None:
    """``make layers`` draws it."""
    assert (ROOT / "docs" / "layers.svg").read_text(encoding="utf-8") == layers_picture()


def test_plugins_do_not_import_one_another() -> None:
    for path in (PACKAGE / "solvers").rglob("*/*.py"):
        own = path.relative_to(PACKAGE / "solvers").parts[0]
        for name in imported(path):
            parts = name.split(".")
            if (
                parts[:2] == ["kinopt_ros", "solvers"]
                and (PACKAGE / "solvers" / parts[2] / "plugin.py").exists()
            ):
                assert parts[2] == own, f"{path} imports {name}"


def test_the_library_imports_nothing_heavy() -> None:
    program = (
        "import sys, kinopt_ros as ko, kinopt_ros.solvers.registry as r; r.list_solvers(); ko.load_robot;"
        "print([m for m in ('numba', 'jax', 'warp', 'rclpy', 'ruckig', 'matplotlib', 'scipy') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_rules_see_every_form_of_import(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import numba.core\nfrom kinopt_ros import ros\nfrom kinopt_ros.solvers.cpu import plugin\n"
    )
    assert imported(module) == {"numba.core", "kinopt_ros.ros", "kinopt_ros.solvers.cpu.plugin"}
