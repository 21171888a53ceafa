"""Findings in the masses of a URDF's links."""

from collections.abc import Iterator

import numpy as np

from kinopt_ros.robot.inertials import OTHERS, Inertial, InertialDefect, inertial_of
from kinopt_ros.robot.lint.finding import Finding, Severity
from kinopt_ros.robot.lint.lines import Node

_ROUNDED = 0.01
"""Share of the largest principal moment by which moments may fail to be a body's: files round their numbers."""
_REMEDIES = {
    "mass": 'give it one number of 0 or more: <mass value="..."/> (kg)',
    "origin": 'write three plain numbers: <origin xyz="x y z" rpy="roll pitch yaw"/> (m, rad)',
    "inertia": 'write six plain numbers: <inertia ixx="..." ixy="..." ixz="..." iyy="..." iyz="..." izz="..."/>',
}


def lint_inertials(links: list[Node], joints: list[Node]) -> Iterator[Finding]:
    """Find masses that cannot be used, and moving links without one in a file that gives masses at all."""
    if not any(link.all("inertial") for link in links):
        return
    mover: dict[str, str] = {}
    for joint in joints:
        child = joint.first("child")
        if child is not None and joint.get("type") != "fixed":
            mover.setdefault(child.get("link"), joint.get("name"))
    for link in links:
        who = f"link {link.get('name')!r}"
        if link.get("name") in mover:
            who += f", which joint {mover[link.get('name')]!r} moves,"
        inertial = link.first("inertial")
        if inertial is not None:
            yield from _inertial(who, link, inertial, link.get("name") in mover)
        elif link.get("name") in mover:
            yield Finding(
                Severity.NOTE,
                link.line,
                f"{who} has no <inertial>, as other links have",
                "give it mass and inertia: simulators leave such links out; kinematics does without",
            )


def _inertial(who: str, link: Node, inertial: Node, moves: bool) -> Iterator[Finding]:
    parts = {tag: inertial.all(tag) for tag in ("mass", "origin", "inertia")}
    read, defects = inertial_of(
        len(link.all("inertial")), {tag: [node.attributes for node in nodes] for tag, nodes in parts.items()}
    )
    for defect in defects:
        node = inertial.first(defect.tag)
        yield _unusable(who, defect, (inertial if node is None else node).line)
    if read is None:
        return
    mass, inertia = inertial.first("mass"), inertial.first("inertia")
    if moves and read.mass == 0.0:
        yield Finding(
            Severity.NOTE,
            (mass or inertial).line,
            f"the mass of {who} is 0",
            'give it one above 0: <mass value="..."/> (kg)',
        )
    if inertia is None:
        yield Finding(
            Severity.NOTE,
            inertial.line,
            f"the <inertial> of {who} has no <inertia>: programs that simulate refuse such a file",
            _REMEDIES["inertia"],
        )
    elif read.mass > 0.0 and not _of_a_body(read):
        yield Finding(
            Severity.NOTE,
            inertia.line,
            f"no body has the inertia of {who}: a principal moment is not above 0, or above the sum of the others",
            "compute it from the shape; simulators refuse it or misbehave, kinematics does without",
        )


def _unusable(who: str, defect: InertialDefect, line: int) -> Finding:
    return Finding(
        Severity.WARNING,
        line,
        f"the <inertial> of {who} is not used as it is: {defect.what}; left out: {defect.loses}",
        "keep one" if defect.loses == OTHERS else _REMEDIES[defect.tag],
    )


def _of_a_body(inertial: Inertial) -> bool:
    """Check that the principal moments are positive, and none greater than the sum of the others; true without any."""
    if inertial.inertia is None:
        return True
    moments = np.linalg.eigvalsh(inertial.inertia)
    return bool(moments[0] > 0.0 and moments[2] <= moments[0] + moments[1] + _ROUNDED * moments[2])
