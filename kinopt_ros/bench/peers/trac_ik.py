"""TRAC-IK by the wheel pytracik: KDL's Newton method and a SQP solver in two threads, random restarts, 5 ms.

``<safety_controller>`` is taken out of the description, as it reads such joints as fixed. It keeps limits as float32,
so that they are rounded inwards to float32 for it: else it answers up to 6e-8 rad outside. The wheel's Python class
does not work with numpy 2, so that its extension module is called directly.
"""

import xml.etree.ElementTree as ElementTree

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.bench.peers import Peer, require, require_plain_chain
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import UnsupportedFeatureError
from kinopt_ros.kinematics.se3 import matrix_to_quaternion

TIMEOUT = 0.005
"""Seconds; TRAC-IK's usual value."""
EPSILON = 5e-7
"""Per component of the error, so that its length stays below 1e-6."""


def build(task: IkTask) -> Peer:
    """Seeds are the middle of the joint ranges: the interface takes no pose alone."""
    version = require("pytracik", "pytracik")
    require_plain_chain(task)
    import pytracik

    root = ElementTree.fromstring(task.urdf_text)
    for joint in root.iter("joint"):
        for controller in joint.findall("safety_controller"):
            joint.remove(controller)
        for limit in joint.findall("limit"):
            _round_inwards(limit)
    text = ElementTree.tostring(root, encoding="unicode")
    solver = pytracik.TRAC_IK(task.base_link, task.tip_link, text, TIMEOUT, EPSILON, pytracik.SolveType.Speed)
    n = len(task.variables)
    if pytracik.get_num_joints(solver) != n:
        raise UnsupportedFeatureError("cannot take this chain: it finds another number of joints")
    bounded = np.isfinite(task.upper - task.lower)
    middle = np.zeros(n)
    middle[bounded] = 0.5 * (task.lower + task.upper)[bounded]
    seed = np.empty(n)
    seed[:] = middle[task.chain.column]  # TRAC-IK counts joints from base to tip
    order = np.argsort(task.chain.column)
    failed = np.full(n, np.nan)

    def solve(T_base_target: Float64) -> Float64:
        w, x, y, z = matrix_to_quaternion(T_base_target[:3, :3]).tolist()
        px, py, pz = T_base_target[:3, 3].tolist()
        answer = pytracik.ik(solver, seed, px, py, pz, x, y, z, w)
        return np.asarray(answer[1:])[order] if answer[0] >= 0 else failed

    return Peer("trac_ik", version, 1, solve)


def _round_inwards(limit: ElementTree.Element) -> None:
    """Replace position limits by the next float32 that lies inside."""
    for end, inside in (("lower", np.inf), ("upper", -np.inf)):
        if end in limit.attrib:
            exact = float(limit.attrib[end])
            rounded = np.float32(exact)
            if (float(rounded) - exact) * inside < 0.0:
                rounded = np.nextafter(rounded, np.float32(inside))
            limit.set(end, repr(float(rounded)))
