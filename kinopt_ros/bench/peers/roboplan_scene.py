"""The robot of a task as RoboPlan (https://github.com/open-planning/roboplan) takes it: joints of one chain, no
shapes."""

import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np

from kinopt_ros.bench.peers import require, require_plain_chain
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import SolverUnavailableError, UnsupportedFeatureError

GROUP = "bench_joints"


def roboplan_scene(task: IkTask, module: str) -> tuple[Any, str]:
    """Return a scene whose ``GROUP`` are the joints that are solved for, and RoboPlan's version.

    Raises:
        SolverUnavailableError: RoboPlan, or a module of it, is not installed.
        UnsupportedFeatureError: it does not take this robot.
    """
    require("roboplan", "roboplan")
    version = require(f"roboplan.{module}", "roboplan")
    require_plain_chain(task)
    if not np.isfinite(task.upper - task.lower).all():
        raise UnsupportedFeatureError("takes joints without limits as points of a circle")
    from roboplan import core

    root = ElementTree.fromstring(task.urdf_text)
    for link in root.iter("link"):
        for kind in ("visual", "collision"):
            for element in link.findall(kind):
                link.remove(element)
    try:
        description = core.loadUrdfSceneDescriptionFromXml(ElementTree.tostring(root, encoding="unicode"))
        scene: Any = core.Scene(task.robot.name, description)
        scene.addGroup(GROUP, list(task.names))
    except RuntimeError as error:
        raise SolverUnavailableError(f"RoboPlan does not take robot {task.robot.name}: {error}") from None
    return scene, version
