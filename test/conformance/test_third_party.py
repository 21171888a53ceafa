"""A plugin in a package of its own, installed beside kinopt_ros, is found and passes the same suite."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "solver_plugin"

SUITE = """
from kinopt_ros.conformance.ik import IkConformance


class TestExampleDls(IkConformance):
    solver = "example_dls"
    minimum_success = 0.7
    targets = 8
    robots = ("with_mimic",)
    patience = 4.0
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment in which the example is installed, in a folder of its own."""
    folder = tmp_path_factory.mktemp("third_party")
    source = folder / "source"
    # A copy: building writes into the source folder.
    subprocess.run(["cp", "-r", str(EXAMPLE), str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--target", str(folder / "site")]
    subprocess.run([*pip, *options, str(source)], check=True)
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("PYTEST_ADDOPTS", None)  # those of the run around this one
    return environment


def test_it_is_found_and_solves(installed: dict[str, str]) -> None:
    pose = ["--xyz", "0.4", "0.1", "0.5", "--rpy", "3.14159", "0", "0"]
    command = [
        sys.executable,
        "-m",
        "kinopt_ros.cli",
        "ik",
        "--robot",
        "panda",
        *pose,
        "--solver",
        "example_dls",
    ]
    result = subprocess.run(command, env=installed, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "example_dls" in result.stdout


@pytest.mark.slow
def test_it_passes_the_conformance_suite(installed: dict[str, str], tmp_path: Path) -> None:
    module = tmp_path / "test_example.py"
    module.write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(module)]
    result = subprocess.run(command, env=installed, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "passed" in result.stdout
