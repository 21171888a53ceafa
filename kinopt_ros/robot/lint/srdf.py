"""Findings in an SRDF text, beside the robot that it is for."""

from collections.abc import Iterator

from kinopt_ros.errors import RobotDescriptionError
from kinopt_ros.robot.chain import joints_between
from kinopt_ros.robot.lint.finding import Finding, Severity, in_order
from kinopt_ros.robot.lint.lines import Node, parse_lines
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.srdf import apply_srdf
from kinopt_ros.robot.srdf_elements import MAX_CHAINS, MAX_GROUPS, MAX_STATES
from kinopt_ros.robot.xml_text import finite_number

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
_VIRTUAL_TYPES = ("fixed", "planar", "floating")
_LIMIT_ROUNDING = 1e-6


def lint_srdf(text: str, robot: RobotModel) -> list[Finding]:
    """List everything worth saying about an SRDF, by line; ``robot`` is that of the URDF alone."""
    root = parse_lines(text, "SRDF")
    if isinstance(root, Finding):
        return [root]
    findings: list[Finding] = []
    if root.get("name") and root.get("name") != robot.name:
        findings.append(
            Finding(
                WARNING,
                root.line,
                f"the SRDF is for robot {root.get('name')!r}, the URDF for {robot.name!r}",
                "check that they belong together",
            )
        )
    refused = _too_many(root)
    if refused is not None:
        return [*findings, refused]
    virtual = {node.get("name"): node for node in root.all("virtual_joint")}
    joints = set(robot.joint_by_name) | set(virtual)
    links = set(robot.link_index) | {node.get("parent_frame") for node in virtual.values()}
    groups = root.all("group")
    for node in virtual.values():
        findings += _virtual_joint(node, robot)
    findings += _groups(groups, joints, links)
    for group in groups:
        findings += _chains(group, robot)
    names = {group.get("name") for group in groups}
    for state in root.all("group_state"):
        findings += _state(state, names, robot, virtual)
    for effector in root.all("end_effector"):
        findings += _end_effector(effector, names, links)
    for passive in root.all("passive_joint"):
        findings += _unknown(passive, "name", joints, "joint")
    for pair in (*root.all("disable_collisions"), *root.all("enable_collisions")):
        for attribute in ("link1", "link2"):
            findings += _unknown(pair, attribute, links, "link", NOTE)
    for single in root.all("disable_default_collisions"):
        findings += _unknown(single, "link", links, "link", NOTE)
    findings += _what_the_loader_says(text, robot, findings)
    return in_order(findings)


def _too_many(root: Node) -> Finding | None:
    """Return findings about too many elements: the loader refuses them, and looking at all takes long."""
    chains = sum(len(group.all("chain")) for group in root.all("group"))
    for tag, count, most in (
        ("group", len(root.all("group")), MAX_GROUPS),
        ("chain", chains, MAX_CHAINS),
        ("group_state", len(root.all("group_state")), MAX_STATES),
    ):
        if count > most:
            what = f"the SRDF has {count} <{tag}> elements; at most {most} are read"
            return Finding(ERROR, root.line, what, "remove those that nobody needs")
    return None


def _unknown(
    node: Node, attribute: str, known: set[str], kind: str, severity: Severity = WARNING
) -> Iterator[Finding]:
    name = node.get(attribute)
    if not name:
        yield Finding(ERROR, node.line, f"<{node.tag}> has no {attribute}", f'add {attribute}="..."')
    elif name not in known:
        yield Finding(
            severity,
            node.line,
            f"<{node.tag}> names the {kind} {name!r}, which does not exist; it is left out",
            "correct the name or remove the line",
        )


def _virtual_joint(node: Node, robot: RobotModel) -> Iterator[Finding]:
    if node.get("type") not in _VIRTUAL_TYPES:
        yield Finding(
            ERROR,
            node.line,
            f"virtual_joint {node.get('name')!r} has the unknown type {node.get('type')!r}",
            f"take one of {', '.join(_VIRTUAL_TYPES)}",
        )
    if node.get("child_link") != robot.root_link:
        yield Finding(
            WARNING,
            node.line,
            f"virtual_joint {node.get('name')!r} attaches {node.get('child_link')!r}, not the root {robot.root_link!r}",
            "name the root link",
        )


def _groups(groups: list[Node], joints: set[str], links: set[str]) -> Iterator[Finding]:
    names: dict[str, int] = {}
    for group in groups:
        name = group.get("name")
        if name in names:
            yield Finding(
                ERROR, group.line, f"group {name!r} is defined twice (also line {names[name]})", "rename one"
            )
        names.setdefault(name, group.line)
    for group in groups:
        for member, known, kind in (
            ("joint", joints, "joint"),
            ("link", links, "link"),
            ("group", set(names), "group"),
        ):
            for node in group.all(member):
                if node.get("name") not in known:
                    yield Finding(
                        WARNING,
                        node.line,
                        f"group {group.get('name')!r} is left out: its {kind} {node.get('name')!r} does not exist",
                        "correct the name, or remove the group",
                    )
        for chain in group.all("chain"):
            for attribute in ("base_link", "tip_link"):
                if chain.get(attribute) not in links:
                    yield Finding(
                        WARNING,
                        chain.line,
                        f"group {group.get('name')!r} is left out: its {attribute} {chain.get(attribute)!r} does not "
                        "exist",
                        "correct the name",
                    )
        if not any(group.all(tag) for tag in ("joint", "link", "chain", "group")):
            yield Finding(WARNING, group.line, f"group {group.get('name')!r} is empty", "give it members")


def _chains(group: Node, robot: RobotModel) -> Iterator[Finding]:
    for chain in group.all("chain"):
        base, tip = chain.get("base_link"), chain.get("tip_link")
        if base not in robot.link_index or tip not in robot.link_index:
            continue
        up, down = joints_between(robot, base, tip)
        if not any(joint.is_active or joint.mimics for joint in (*up, *down)):
            yield Finding(
                WARNING,
                chain.line,
                f"nothing moves on the chain of group {group.get('name')!r} from {base!r} to {tip!r}",
                "check its ends",
            )
        elif up:
            yield Finding(
                NOTE,
                chain.line,
                f"the chain of group {group.get('name')!r} from {base!r} to {tip!r} leads up the tree first",
                "fine here; MoveIt wants the base above the tip",
            )


def _state(state: Node, groups: set[str], robot: RobotModel, virtual: dict[str, Node]) -> Iterator[Finding]:
    who = f"group_state {state.get('name')!r}"
    if state.get("group") not in groups:
        yield Finding(
            WARNING,
            state.line,
            f"{who} is of the group {state.get('group')!r}, which does not exist; left out",
            "correct the name",
        )
    for value in state.all("joint"):
        name = value.get("name")
        if name in virtual:
            continue
        joint = robot.joint_by_name.get(name)
        if joint is None:
            yield Finding(
                WARNING,
                value.line,
                f"{who} names the joint {name!r}, which does not exist",
                "correct the name",
            )
            continue
        numbers = [finite_number(word) for word in value.get("value").split()]
        if not numbers or any(number is None for number in numbers):
            yield Finding(
                ERROR, value.line, f"{who}: the value of {name!r} is {value.get('value')!r}", "write a number"
            )
        elif joint.is_active and len(numbers) == 1 and joint.type.num_variables == 1:
            number = numbers[0] or 0.0
            lower = robot.limits.lower[joint.first_variable]
            upper = robot.limits.upper[joint.first_variable]
            if not lower - _LIMIT_ROUNDING <= number <= upper + _LIMIT_ROUNDING:
                yield Finding(
                    WARNING,
                    value.line,
                    f"{who}: {name!r} at {number:g} is outside its limits {lower:g} to {upper:g}",
                    "bring it inside: it cannot be taken as it is",
                )


def _end_effector(node: Node, groups: set[str], links: set[str]) -> Iterator[Finding]:
    yield from _unknown(node, "parent_link", links, "link")
    yield from _unknown(node, "group", groups, "group")
    if node.get("parent_group"):
        yield from _unknown(node, "parent_group", groups, "group")


def _what_the_loader_says(text: str, robot: RobotModel, known: list[Finding]) -> Iterator[Finding]:
    """Yield findings that only loading shows: why the SRDF is refused, and groups without a tip."""
    try:
        loaded = apply_srdf(robot, text)
    except RobotDescriptionError as error:
        if not any(finding.severity is ERROR for finding in known):
            yield Finding(ERROR, 0, str(error), "see the message")
        return
    if loaded.groups is robot.groups or set(loaded.groups) == set(robot.groups):
        return
    for group in loaded.groups.values():
        if group.tip_link is None:
            yield Finding(
                NOTE,
                0,
                f"group {group.name!r} is no chain and has no tip",
                "requests for it must name a tip_link",
            )
