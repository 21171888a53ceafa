"""Records of failed requests."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from fuzz.kinds import robots
from fuzz.kinds.scenes import yaml_text
from fuzz.source import Source
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.record import (
    load_record,
    make_record,
    recorded_problem,
    recorded_robot,
    save_record,
)
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.changes import add
from kinopt_ros.scene.scene import EMPTY_SCENE, SceneObject


@cache
def _good(folder: Path) -> tuple[Any, ...]:
    return tuple(yaml.safe_load((folder / f"{name}.yaml").read_text()) for name in ("good", "near"))


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    robot = robot_from_urdf(robots.ARM, robots.ARM_SRDF)
    T = forward_kinematics(robot, robot.default_q, links=("hand",))[0]
    shapes = (PlacedShape(Box(0.1, 0.1, 0.1), np.eye(4)),)
    scene = add(EMPTY_SCENE, robot, SceneObject("box", shapes, np.eye(4)))
    asked: dict[str, dict[str, Any]] = {
        "good": {"prefer": "closest", "free_axes": ["rz"]},
        "near": {"nearest": PoseWeights((1.0, 2.0, 0.0), 0.1)},
    }
    for name, options in asked.items():
        problem = ik_problem(robot, np.stack([T, T]), group="arm", scene=scene, **options)
        record = make_record(
            robot, problem, "cpu", {"a": 1}, 0.1, [1, -31], ["", "no"], robots.ARM, robots.ARM_SRDF
        )
        file = folder / f"{name}.yaml"
        save_record(record, file, robots.ARM, robots.ARM_SRDF, scene)
        record = load_record(file)
        recorded_problem(record, recorded_robot(record, file), file)


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    path = folder / "record.yaml"
    path.write_bytes(yaml_text(source, source.choice(_good(folder))).encode("utf-8", "surrogatepass"))
    record = load_record(path)
    robot = recorded_robot(record, path)
    recorded_problem(record, robot, path)
