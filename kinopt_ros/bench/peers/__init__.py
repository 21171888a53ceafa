"""Solvers to compare with, one file each: ``build(task)`` returns a ``Peer`` or raises with a sentence.

A peer takes a 4x4 float64 pose and returns joint values in the order of ``task.variables`` (its best attempt or
NaN if it fails). It restarts from random configurations where its own interface does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated

from kinopt_ros.array import Float64
from kinopt_ros.bench.targets import IkTask
from kinopt_ros.errors import SolverUnavailableError, UnknownSolverError, UnsupportedFeatureError

Solve = Callable[[Annotated[Float64, "4 4"]], Annotated[Float64, "n"]]


@dataclass(frozen=True)
class Peer:
    """A solver ready for one task."""

    name: str
    version: str
    seeds: int
    """Start values that the caller hands in with each target."""
    solve: Solve


PEERS = {
    "cpu": "kinopt_ros.bench.peers.cpu",
    "cpu:solve_ik": "kinopt_ros.bench.peers.cpu_solve_ik",
    "analytic:solve_ik": "kinopt_ros.bench.peers.analytic",
    "rtb_ik_lm": "kinopt_ros.bench.peers.rtb_ik_lm",
    "rtb_ik_lm_tight": "kinopt_ros.bench.peers.rtb_ik_lm_tight",
    "trac_ik": "kinopt_ros.bench.peers.trac_ik",
    "pinocchio_lm": "kinopt_ros.bench.peers.pinocchio_lm",
    "roboplan_simple_ik": "kinopt_ros.bench.peers.roboplan_simple_ik",
    "roboplan_oink": "kinopt_ros.bench.peers.roboplan_oink",
    "pink": "kinopt_ros.bench.peers.pink",
}
"""Module of every peer."""


def build_peer(name: str, task: IkTask) -> Peer:
    """A peer for a task.

    Raises:
        UnknownSolverError: there is none of that name.
        SolverUnavailableError: its library is not installed.
        UnsupportedFeatureError: it cannot take this robot.
    """
    if name not in PEERS:
        raise UnknownSolverError(name, PEERS)
    peer: Peer = import_module(PEERS[name]).build(task)
    return peer


def require(module: str, distribution: str) -> str:
    """Version of a peer's distribution; SolverUnavailableError if its module is not installed."""
    if find_spec(module) is None:
        raise SolverUnavailableError(f"not installed (pip install {distribution})")
    return version(distribution)


def require_plain_chain(task: IkTask) -> None:
    """Refuse robots that libraries without mimic joints and moving bases cannot take."""
    if task.has_mimic_joints:
        raise UnsupportedFeatureError("cannot take a chain with mimic joints")
    # Planar and floating joints have variables that are not named like a joint.
    if not set(task.names) <= set(task.robot.joint_by_name):
        raise UnsupportedFeatureError("cannot take a chain with planar or floating joints")
