"""Files of trajectory problems."""

from pathlib import Path
from typing import Any

import yaml

from fuzz.kinds import robots, scenes
from fuzz.kinds.scenes import yaml_text
from fuzz.source import Source
from kinopt_ros.planning.problem_files import load_problem

GOOD: dict[str, Any] = {
    "robot": "arm.urdf",
    "srdf": "arm.srdf",
    "group": "arm",
    "scene": "good.yaml",
    "start": "home",
    "goals": [
        {"state": "home"},
        {"joints": {"turn": 0.5}},
        {"link": "hand", "pose": {"xyz": [0.1, 0.0, 0.6]}, "position_tolerance": 0.01, "free_axes": ["rz"]},
    ],
    "waypoints": [{"joints": {"bend": 0.2}}],
    "along": [{"upright": "hand", "tilt": 3.0}, {"straight": "hand", "tolerance": 0.5}],
    "clearance": 0.01,
    "velocity_scaling": 0.5,
    "duration": 5.0,
    "num_points": 30,
    "random_seed": 3,
}


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    scenes.prepare(folder)
    (folder / "arm.urdf").write_text(robots.ARM)
    (folder / "arm.srdf").write_text(robots.ARM_SRDF)
    (folder / "good_plan.yaml").write_text(yaml.safe_dump(GOOD))
    load_problem(folder / "good_plan.yaml")


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    path = folder / "plan.yaml"
    path.write_bytes(yaml_text(source, GOOD).encode("utf-8", "surrogatepass"))
    load_problem(path)
