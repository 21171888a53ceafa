"""Job that every solver of the comparison is given: a folder with the robot and the targets."""

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kinopt_ros.bench.peers import require_plain_chain
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.robot.chain import build_chain

JOB, TARGETS = "job.json", "targets.npy"


def answers_file(folder: Path, size: int) -> Path:
    """Return the file in which a worker leaves its answers to batches of ``size`` targets."""
    return folder / f"answers_{size}.npy"


def write_own_job(
    folder: Path, robot: str, task: IkTask, sizes: Sequence[tuple[int, int]], **more: Any
) -> None:
    """Write the job of an ``own_worker``: target poses as matrices, in the base link."""
    np.save(folder / TARGETS, task.T_base_target)
    job = {"robot": robot, "base_link": task.base_link, "tip_link": task.tip_link, "sizes": sizes} | more
    (folder / JOB).write_text(json.dumps(job), encoding="utf-8")


def write_pyroki_job(folder: Path, task: IkTask, sizes: Sequence[tuple[int, int]], analytic: bool) -> None:
    """Write the job of a PyRoki worker: target poses as quaternions (wxyz) and positions, in the root link.

    Raises:
        UnsupportedFeatureError: the chain has mimic joints, or its base moves with it, or joints of it are held.
    """
    require_plain_chain(task)
    chain = build_chain(task.robot, task.base_link, task.tip_link)
    if set(chain.variables.tolist()) != set(task.variables.tolist()):
        raise UnsupportedFeatureError("cannot take a chain with held joints")
    if task.base_link != task.robot.root_link:
        raise UnsupportedFeatureError(f"takes targets in the root link only ({task.robot.root_link})")
    T = task.T_base_target
    quaternions = np.array([matrix_to_quaternion(R) for R in T[:, :3, :3]])
    np.save(folder / TARGETS, np.concatenate([quaternions, T[:, :3, 3]], axis=1))
    job = {
        "urdf": with_fixed_joints(task.urdf_text, task.names),
        "tip_link": task.tip_link,
        "sizes": sizes,
        "analytic": analytic,
    }
    (folder / JOB).write_text(json.dumps(job), encoding="utf-8")


def with_fixed_joints(urdf_text: str, moving: Sequence[str]) -> str:
    """Return the description with all other joints fixed and without shapes, as PyRoki's benchmark does it."""
    root = ElementTree.fromstring(urdf_text)
    for link in root.iter("link"):
        _drop(link, "visual", "collision", "inertial")
    for joint in root.findall("joint"):
        if joint.get("name") not in moving:
            joint.set("type", "fixed")
            _drop(joint, "axis", "limit", "mimic", "dynamics", "safety_controller", "calibration")
    return ElementTree.tostring(root, encoding="unicode")


def _drop(element: ElementTree.Element, *tags: str) -> None:
    for tag in tags:
        for child in element.findall(tag):
            element.remove(child)
