"""Findings in a URDF text."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.files import is_file
from kinopt_ros.robot.lint.finding import Finding, Severity, in_order
from kinopt_ros.robot.lint.inertials import lint_inertials
from kinopt_ros.robot.lint.lines import Node, parse_lines
from kinopt_ros.robot.mimic import prefixed_leader
from kinopt_ros.robot.mimic_limits import Range, contradict, followed, implied_range, what_contradicts
from kinopt_ros.robot.model import JointType
from kinopt_ros.robot.rate_limits import read_rate_limits
from kinopt_ros.robot.urdf_elements import MAX_LINKS
from kinopt_ros.robot.xml_text import finite_number

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
_TYPES = frozenset(kind.value for kind in JointType)
_AXIS_LENGTH = 1e-3

MeshFinder = Callable[[str], Path | None]
"""Function that returns the file of a mesh URI, or None if it cannot be resolved."""


def lint_urdf(text: str, find_mesh: MeshFinder | None = None) -> list[Finding]:
    """List everything worth saying about a URDF, by line.

    Args:
        text: the URDF, after xacro.
        find_mesh: resolves mesh URIs; None: meshes are not looked for.
    """
    root = parse_lines(text, "URDF")
    if isinstance(root, Finding):
        return [root]
    links, joints = root.all("link"), root.all("joint")
    for count, what in ((len(links), "links"), (len(joints), "joints")):
        if count > MAX_LINKS:  # the loader refuses it, and looking at all takes long
            remedy = "remove what is not part of the robot"
            return [
                Finding(
                    ERROR, root.line, f"the URDF has {count} {what}; at most {MAX_LINKS} are read", remedy
                )
            ]
    findings = [*_xacro(root), *_names(links, "link"), *_names(joints, "joint")]
    if not links:
        findings.append(Finding(ERROR, root.line, "the URDF has no <link>", "give the output of xacro"))
    by_link = {link.get("name"): link for link in links}
    by_joint = {joint.get("name"): joint for joint in joints}
    for joint in joints:
        findings += _joint(joint, by_link, by_joint)
    findings += _mimic_limits(joints, by_joint)
    findings += _tree(links, joints, by_link)
    findings += lint_inertials(links, joints)
    for link in links:
        findings += _link(link, find_mesh)
    return in_order(findings)


def _xacro(root: Node) -> Iterator[Finding]:
    for node in (root, *root.children):
        if node.tag.startswith("xacro:"):
            yield Finding(
                ERROR,
                node.line,
                f"unprocessed <{node.tag}>",
                "run xacro first: xacro robot.urdf.xacro > robot.urdf",
            )


def _names(nodes: list[Node], tag: str) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for node in nodes:
        name = node.attributes.get("name", "")
        if not name.strip():
            yield Finding(ERROR, node.line, f"a <{tag}> has no name", 'add name="..."')
        elif name in seen:
            yield Finding(
                ERROR, node.line, f"two {tag}s are called {name!r} (also line {seen[name]})", "rename one"
            )
        elif name != name.strip():
            yield Finding(
                ERROR, node.line, f"the name {name!r} of a <{tag}> begins or ends with white space", "trim it"
            )
        seen.setdefault(name, node.line)


def _joint(joint: Node, links: Mapping[str, Node], joints: Mapping[str, Node]) -> Iterator[Finding]:
    name, kind = joint.get("name"), joint.get("type")
    who = f"joint {name!r}"
    if kind not in _TYPES:
        yield Finding(
            ERROR,
            joint.line,
            f"{who} has the unknown type {kind!r}",
            f"take one of {', '.join(sorted(_TYPES))}",
        )
    for role in ("parent", "child"):
        end = joint.first(role)
        if end is None or not end.get("link"):
            line = joint.line if end is None else end.line
            yield Finding(ERROR, line, f"{who} has no {role} link", f'add <{role} link="..."/>')
        elif end.get("link") not in links:
            yield Finding(
                ERROR,
                end.line,
                f"{who} has the {role} link {end.get('link')!r}, which does not exist",
                "correct the name, or add the link",
            )
    for tag in ("origin", "parent", "child", "axis", "limit", "mimic"):
        found = joint.all(tag)
        if len(found) > 1:
            yield Finding(
                WARNING,
                found[1].line,
                f"{who} has {len(found)} <{tag}> elements",
                "keep one: the first counts",
            )
    yield from _numbers(joint, who)
    yield from _axis(joint, who, kind)
    yield from _limits(joint, who, kind)
    yield from _mimic(joint, who, kind, joints)


def _numbers(joint: Node, who: str) -> Iterator[Finding]:
    for tag, attribute, count in (
        ("origin", "xyz", 3),
        ("origin", "rpy", 3),
        ("axis", "xyz", 3),
        ("limit", "lower", 1),
        ("limit", "upper", 1),
        ("limit", "velocity", 1),
        ("mimic", "multiplier", 1),
        ("mimic", "offset", 1),
    ):
        node = joint.first(tag)
        if node is None or attribute not in node.attributes:
            continue
        words = node.attributes[attribute].split()
        if len(words) != count or any(finite_number(word) is None for word in words):
            yield Finding(
                ERROR,
                node.line,
                f"{who}: {attribute}={node.attributes[attribute]!r} of <{tag}> is not {count} finite number"
                + ("s" if count > 1 else ""),
                "write plain numbers",
            )


def _axis(joint: Node, who: str, kind: str) -> Iterator[Finding]:
    axis = joint.first("axis")
    if kind in ("fixed", "floating"):
        return
    if axis is None or "xyz" not in axis.attributes:
        if kind in _TYPES:
            yield Finding(NOTE, joint.line, f"{who} has no <axis>; x is taken", 'say it: <axis xyz="1 0 0"/>')
        return
    values = [finite_number(word) for word in axis.attributes["xyz"].split()]
    numbers = [value for value in values if value is not None]
    if len(numbers) != 3:
        return  # said already
    length = math.hypot(*numbers)
    if length == 0.0:
        yield Finding(ERROR, axis.line, f"{who} has a zero axis", 'give a direction, such as xyz="0 0 1"')
    elif abs(length - 1.0) > _AXIS_LENGTH:
        yield Finding(
            NOTE,
            axis.line,
            f"the axis of {who} has length {length:.4g}; its direction counts",
            "make it 1: other programs may scale the joint by it",
        )


def _limits(joint: Node, who: str, kind: str) -> Iterator[Finding]:
    limit, mimic = joint.first("limit"), joint.first("mimic")
    if kind in ("revolute", "prismatic"):
        if limit is None:
            severity = WARNING if mimic is not None else ERROR
            turn = ", or make it continuous" if kind == "revolute" else ""
            yield Finding(
                severity,
                joint.line,
                f"{who} is {kind} but has no <limit>",
                f'add <limit lower="..." upper="..." velocity="..." effort="..."/>{turn}',
            )
            return
        lower, upper = _number(limit, "lower", 0.0), _number(limit, "upper", 0.0)
        if lower is not None and upper is not None:
            if lower > upper:
                yield Finding(
                    ERROR,
                    limit.line,
                    f"{who} has its lower limit {lower:g} above the upper, {upper:g}",
                    "swap them",
                )
            elif lower == upper:
                yield Finding(
                    WARNING,
                    limit.line,
                    f"{who} cannot move: both its limits are {lower:g}"
                    + ("" if "lower" in limit.attributes else " (lower and upper are 0 where not given)"),
                    "give its range, or make it fixed",
                )
    elif kind == "continuous" and limit is not None:
        given = [a for a in ("lower", "upper") if a in limit.attributes]
        if given and (_number(limit, "lower", 0.0), _number(limit, "upper", 0.0)) != (0.0, 0.0):
            yield Finding(
                WARNING,
                limit.line,
                f"{who} is continuous; its {' and '.join(given)} limit is not used",
                "make it revolute if it must keep a range",
            )
    if limit is not None:
        try:
            read_rate_limits(limit.attributes, f"<limit> of {who}")
        except RobotDescriptionError as error:
            yield Finding(ERROR, limit.line, str(error), "write plain numbers above 0")
    if kind not in ("fixed", "floating", "planar") and limit is not None:
        velocity = _number(limit, "velocity", None)
        if velocity is not None and velocity < 0.0:
            yield Finding(
                ERROR, limit.line, f"{who} has the negative velocity limit {velocity:g}", "make it positive"
            )
        elif not velocity and mimic is None:
            yield Finding(
                WARNING,
                limit.line,
                f"{who} has no velocity limit; a low default is used",
                'add velocity="..." (rad/s, m/s)',
            )
    elif kind == "continuous":
        yield Finding(
            WARNING,
            joint.line,
            f"{who} has no velocity limit; a low default is used",
            'add <limit velocity="..." effort="..."/>',
        )


def _number(node: Node, attribute: str, default: float | None) -> float | None:
    """Return the number of an attribute; None if it is none."""
    if attribute not in node.attributes:
        return default
    return finite_number(node.attributes[attribute].strip())


def _mimic(joint: Node, who: str, kind: str, joints: Mapping[str, Node]) -> Iterator[Finding]:
    mimic = joint.first("mimic")
    if mimic is None:
        return
    if kind == "fixed":
        yield Finding(NOTE, mimic.line, f"{who} is fixed; its <mimic> is not used", "remove <mimic>")
        return
    if kind in ("floating", "planar"):
        yield Finding(ERROR, mimic.line, f"{who} is {kind} and cannot mimic another joint", "remove <mimic>")
    leader = joints.get(mimic.get("joint"))
    meant = prefixed_leader(joint.get("name"), mimic.get("joint"), joints) if leader is None else None
    if meant is not None:
        yield Finding(
            WARNING,
            mimic.line,
            f"{who} mimics {mimic.get('joint')!r}, which does not exist; {meant!r} is taken instead",
            f"write {meant!r}",
        )
        leader = joints[meant]
    if leader is None:
        yield Finding(
            ERROR,
            mimic.line,
            f"{who} mimics {mimic.get('joint')!r}, which does not exist",
            "name a joint of this file",
        )
        return
    if leader.get("type") in ("fixed", "floating", "planar"):
        yield Finding(
            ERROR,
            mimic.line,
            f"{who} mimics {leader.get('name')!r}, which is {leader.get('type')}",
            "name a revolute, continuous or prismatic joint",
        )
    seen = {joint.get("name")}
    while True:
        if leader.get("name") in seen:
            yield Finding(ERROR, mimic.line, f"{who} mimics itself, by way of others", "break the circle")
            return
        seen.add(leader.get("name"))
        following = leader.first("mimic")
        further = joints.get(following.get("joint")) if following is not None else None
        if further is None:
            return
        leader = further


def _mimic_limits(joints: list[Node], by_name: Mapping[str, Node]) -> Iterator[Finding]:
    """Find limits of mimic joints that contradict their driver's; a robot with them is loaded without."""
    ranges: dict[str, Range] = {}
    for joint in joints:
        limit, resolved = joint.first("limit"), _driver(joint, by_name)
        if limit is None or resolved is None or joint.get("type") not in ("revolute", "prismatic"):
            continue
        driver, drive = resolved
        own, full = _range(joint), ranges.get(driver.get("name"), _range(driver))
        if own is None or full is None:
            continue
        implied = implied_range(own, *drive)
        if contradict(full, implied):
            low, high = followed(full, drive)
            yield Finding(
                WARNING,
                limit.line,
                what_contradicts(joint.get("name"), driver.get("name"), own, full, drive),
                f'write lower="{low + 0.0:g}" upper="{high + 0.0:g}"',
            )
        else:
            ranges[driver.get("name")] = max(full[0], implied[0]), min(full[1], implied[1])


def _driver(joint: Node, by_name: Mapping[str, Node]) -> tuple[Node, tuple[float, float]] | None:
    """Find the joint at the end of a chain of mimic joints, with multiplier and offset; None if there is none, or the
    chain is broken."""
    multiplier, offset, passed = 1.0, 0.0, set[str]()
    while (mimic := joint.first("mimic")) is not None:
        passed.add(joint.get("name"))
        wanted = mimic.get("joint")
        leader = by_name.get(wanted) or by_name.get(prefixed_leader(joint.get("name"), wanted, by_name) or "")
        factor, added = _number(mimic, "multiplier", 1.0), _number(mimic, "offset", 0.0)
        if leader is None or leader.get("name") in passed or factor is None or added is None:
            return None
        multiplier, offset = multiplier * factor, multiplier * added + offset
        joint = leader
    return (joint, (multiplier, offset)) if passed and math.isfinite(multiplier * offset) else None


def _range(joint: Node) -> Range | None:
    """Return the limits of a joint; None if they are missing or broken."""
    if joint.get("type") == "continuous":
        return -math.inf, math.inf
    limit = joint.first("limit")
    lower, upper = (
        (None, None) if limit is None else (_number(limit, "lower", 0.0), _number(limit, "upper", 0.0))
    )
    return None if lower is None or upper is None or lower > upper else (lower, upper)


def _tree(links: list[Node], joints: list[Node], by_link: Mapping[str, Node]) -> Iterator[Finding]:
    parents: dict[str, Node] = {}
    above: dict[str, str] = {}
    for joint in joints:
        parent, child = joint.first("parent"), joint.first("child")
        if parent is None or child is None or child.get("link") not in by_link:
            continue
        name = child.get("link")
        if name in parents:
            yield Finding(
                ERROR,
                child.line,
                f"link {name!r} has two parents: joints {parents[name].get('name')!r} and {joint.get('name')!r}",
                "a URDF is a tree: remove one of the joints",
            )
            continue
        parents[name] = joint
        above[name] = parent.get("link")
    roots = [link for link in links if link.get("name") not in parents]
    if len(roots) > 1:
        for root in roots[1:]:
            yield Finding(
                ERROR,
                root.line,
                f"link {root.get('name')!r} has no parent joint, as has {roots[0].get('name')!r}: "
                "there must be one root",
                "join it to the tree by a joint, or remove it",
            )
    for link in links:
        name, passed = link.get("name"), set[str]()
        while name in above and name not in passed:
            passed.add(name)
            name = above[name]
        if name in passed and name == link.get("name"):
            yield Finding(
                ERROR,
                parents[name].line,
                f"link {name!r} is its own ancestor: the joints form a cycle",
                "break the cycle",
            )


def _link(link: Node, find_mesh: MeshFinder | None) -> Iterator[Finding]:
    who = f"link {link.get('name')!r}"
    if not link.all("collision") and link.all("visual"):
        yield Finding(
            NOTE,
            link.line,
            f"{who} is seen but has no <collision>: it will never be checked for collisions",
            "give it collision geometry",
        )
    if find_mesh is None:
        return
    for shape in (*link.all("visual"), *link.all("collision")):
        geometry = shape.first("geometry")
        mesh = geometry.first("mesh") if geometry is not None else None
        if mesh is None:
            continue
        file = mesh.get("filename")
        found = find_mesh(file)
        severity = WARNING if shape.tag == "collision" else NOTE
        if found is None:
            yield Finding(
                severity,
                mesh.line,
                f"the mesh {file!r} of {who} cannot be resolved",
                _mesh_remedy(file),
            )
        elif not is_file(found):
            yield Finding(severity, mesh.line, f"the mesh {file!r} of {who} does not exist", "add the file")


def _mesh_remedy(file: str) -> str:
    if file.startswith("package:///"):
        return "name its package after two slashes: package://PACKAGE/..."
    if "://" in file and not file.startswith("package://"):
        return "write package://PACKAGE/..., file:///... or a path from the URDF's folder"
    return "install the package that has it, or source its workspace"
