"""Arms that can move while their tip rests are told from others; EAIK would end the process by some of them."""

import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("eaik", reason="EAIK is not installed (pip install eaik)")
from kinopt_ros.solvers.analytic.redundancy import is_redundant
from kinopt_ros.solvers.analytic.rounding import Axes

TIP = np.array([0.1, 0.2, 1.3])


def arm(pattern: str, seed: int = 0) -> Axes:
    """Axes, each placed against the one before: anywhere (r), parallel (p), meeting it in the same point (m), the same
    line (c)."""
    rng = np.random.default_rng(seed)
    directions, points = [rng.normal(size=3)], [rng.normal(size=3)]
    for kind in pattern:
        beside = {"m": np.zeros(3), "c": directions[-1]}.get(kind, rng.normal(size=3))
        points.append(points[-1] + beside)
        directions.append(directions[-1] if kind in "pc" else rng.normal(size=3))
    direction = np.array(directions)
    return Axes(direction / np.linalg.norm(direction, axis=1, keepdims=True), np.array(points))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    ("pattern", "redundant"),
    [
        ("", False),
        ("c", True),
        ("pp", False),
        ("ppp", True),
        ("mm", False),
        ("mmm", True),
        ("mcm", True),
        ("rrrrr", False),
        ("ppprr", True),
        ("rpprm", False),
        ("mcmcm", True),
    ],
)
def test_redundant_arms(pattern: str, redundant: bool, scale: float) -> None:
    axes = arm(pattern)
    assert is_redundant(Axes(axes.direction, scale * axes.point), scale * TIP) == redundant


def test_nothing_is_not_redundant() -> None:
    assert not is_redundant(Axes(np.empty((0, 3)), np.empty((0, 3))), TIP)


EVERY_OTHER = """
from itertools import product
import numpy as np
from eaik.pybindings.EAIK import Robot
from test_redundancy import TIP, arm
from kinopt_ros.solvers.analytic.redundancy import is_redundant
tried = 0
for count in range(6):
    for pattern in map("".join, product("rpmc", repeat=count)):
        axes = arm(pattern)
        if is_redundant(axes, TIP):
            continue
        places = np.concatenate([np.zeros((1, 3)), axes.point, TIP[None]])
        try:
            Robot(axes.direction.T, np.diff(places, axis=0).T, np.eye(3), [], True)
        except RuntimeError:
            pass
        tried += 1
print("tried", tried)
"""


def test_eaik_lives_with_every_other_arm() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", EVERY_OTHER],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": __file__.rpartition("/")[0]},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout.split()[-1]) > 300
