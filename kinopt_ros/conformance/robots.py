"""Small robots, one for each thing that a solver must get right."""

from functools import lru_cache

from kinopt_ros.robot.model import JointType, RobotModel
from kinopt_ros.robot.urdf import robot_from_urdf

_LIMIT = '<limit lower="{lower}" upper="{upper}" velocity="2" effort="10"/>'


def _joint(
    name: str, kind: str, parent: str, child: str, xyz: str, rpy: str, axis: str, extra: str = ""
) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>{extra}</joint>'
    )


def _robot(name: str, links: int, joints: list[str]) -> RobotModel:
    text = "".join(f'<link name="l{i}"/>' for i in range(links))
    return robot_from_urdf(f'<robot name="{name}">{text}{"".join(joints)}</robot>')


def six_revolute() -> RobotModel:
    """A 6R arm with a spherical wrist, axes oblique to no frame."""
    limit = _LIMIT.format(lower=-2.9, upper=2.9)
    rows = [
        ("0 0 0.3", "0 0 1"),
        ("0 0.1 0", "0 1 0"),
        ("0 0 0.4", "0 1 0"),
        ("0 -0.1 0.35", "0 0 1"),
        ("0 0 0.05", "0 1 0"),
        ("0 0 0.08", "0 0 1"),
    ]
    joints = [
        _joint(f"j{i + 1}", "revolute", f"l{i}", f"l{i + 1}", xyz, "0 0 0", axis, limit)
        for i, (xyz, axis) in enumerate(rows)
    ]
    return _robot("six_revolute", 7, joints)


def three_parallel() -> RobotModel:
    """A 6R arm as Universal Robots builds them: the axes of shoulder, elbow and first wrist joint are parallel.

    One of them points the other way; joints turn once round in each direction.
    """
    limit = _LIMIT.format(lower=-6.28, upper=6.28)
    rows = [
        ("0.1 0 0.09", "0 0 0.3", "0 0 1"),
        ("0 0 0", "1.5707963267948966 0 0", "0 0 1"),
        ("-0.425 0 0", "0 0 0", "0 0 -1"),
        ("-0.392 0 0.109", "0 0 0", "0 0 1"),
        ("0 -0.095 0", "1.5707963267948966 0 0", "0 0 1"),
        ("0 0.082 0", "-1.5707963267948966 0 0", "0 0 1"),
    ]
    joints = [
        _joint(f"j{i + 1}", "revolute", f"l{i}", f"l{i + 1}", xyz, rpy, axis, limit)
        for i, (xyz, rpy, axis) in enumerate(rows)
    ]
    return _robot("three_parallel", 7, joints)


def seven_revolute() -> RobotModel:
    """A redundant 7R arm with tilted frames, negative axes and limits that exclude zero."""
    rows = [
        ("0 0 0.3", "0 0 0", "0 0 -1", (-2.8, 2.8)),
        ("0 0 0", "-1.5708 0 0", "0 0 1", (-1.7, 1.7)),
        ("0 -0.32 0", "1.5708 0 0", "0 0 1", (-2.8, 2.8)),
        ("0.08 0 0", "1.5708 0 0", "0 0 2", (-3.0, -0.1)),
        ("-0.08 0.38 0", "-1.5708 0 0", "0 0 1", (-2.8, 2.8)),
        ("0 0 0", "1.5708 0 0", "0 0 1", (0.1, 3.7)),
        ("0.09 0 0", "1.5708 0 0", "0 0 1", (-2.8, 2.8)),
    ]
    joints = [
        _joint(
            f"j{i + 1}",
            "revolute",
            f"l{i}",
            f"l{i + 1}",
            xyz,
            rpy,
            axis,
            _LIMIT.format(lower=lower, upper=upper),
        )
        for i, (xyz, rpy, axis, (lower, upper)) in enumerate(rows)
    ]
    return _robot("seven_revolute", 8, joints)


def continuous_and_prismatic() -> RobotModel:
    """A lift, a continuous shoulder and a wrist: 1 prismatic, 2 continuous, 4 revolute joints."""
    limit = _LIMIT.format(lower=-2.2, upper=2.2)
    return _robot(
        "continuous_and_prismatic",
        8,
        [
            _joint(
                "lift",
                "prismatic",
                "l0",
                "l1",
                "0 0 0.4",
                "0 0 0",
                "0 0 1",
                _LIMIT.format(lower=0, upper=0.4),
            ),
            _joint(
                "shoulder",
                "continuous",
                "l1",
                "l2",
                "0.1 0 0",
                "0 0 0",
                "0 0 1",
                '<limit velocity="2" effort="9"/>',
            ),
            _joint("j3", "revolute", "l2", "l3", "0.1 0 0", "0 0 0", "0 1 0", limit),
            _joint("j4", "revolute", "l3", "l4", "0.3 0 0", "0 0 0", "1 0 0", limit),
            _joint("j5", "revolute", "l4", "l5", "0.25 0 0", "0 0 0", "0 1 0", limit),
            _joint("j6", "revolute", "l5", "l6", "0.1 0 0", "0 0 0", "0 0 1", limit),
            _joint(
                "roll",
                "continuous",
                "l6",
                "l7",
                "0.1 0 0",
                "0 0 0",
                "1 0 0",
                '<limit velocity="2" effort="9"/>',
            ),
        ],
    )


def on_a_base() -> RobotModel:
    """Four revolute joints on a planar one, whose plane is tilted."""
    limit = _LIMIT.format(lower=-2.2, upper=2.2)
    rows = [("0 0 0.3", "0 0 1"), ("0 0 0.2", "0 1 0"), ("0 0 0.5", "0 1 0"), ("0 0 0.4", "1 0 0")]
    joints = [_joint("base", "planar", "l0", "l1", "0.2 0 0.1", "0.3 0 0.2", "0 0 1")]
    joints += [
        _joint(f"j{i + 1}", "revolute", f"l{i + 1}", f"l{i + 2}", xyz, "0 0 0", axis, limit)
        for i, (xyz, axis) in enumerate(rows)
    ]
    return _robot("on_a_base", 6, joints)


def with_mimic() -> RobotModel:
    """A 6R arm whose elbow is split over two joints, the second following the first, reversed and offset."""
    limit = _LIMIT.format(lower=-2.5, upper=2.5)
    mimic = '<mimic joint="j3" multiplier="-0.5" offset="0.2"/>'
    return _robot(
        "with_mimic",
        8,
        [
            _joint("j1", "revolute", "l0", "l1", "0 0 0.3", "0 0 0", "0 0 1", limit),
            _joint("j2", "revolute", "l1", "l2", "0 0.1 0", "0 0 0", "0 1 0", limit),
            _joint("j3", "revolute", "l2", "l3", "0 0 0.4", "0 0 0", "0 1 0", limit),
            _joint(
                "j3b",
                "revolute",
                "l3",
                "l4",
                "0 0 0.1",
                "0 0 0",
                "0 1 0",
                _LIMIT.format(lower=-1, upper=1) + mimic,
            ),
            _joint("j4", "revolute", "l4", "l5", "0 0 0.3", "0 0 0", "0 0 1", limit),
            _joint("j5", "revolute", "l5", "l6", "0 0 0.05", "0 0 0", "0 1 0", limit),
            _joint("j6", "revolute", "l6", "l7", "0 0.02 0.08", "0 0 0", "0 0 1", limit),
        ],
    )


def two_arms() -> RobotModel:
    """A torso that turns and two 6R arms on it, whose tips are ``l7`` and ``l13``."""
    joints = [
        _joint(
            "torso", "revolute", "l0", "l1", "0 0 0.5", "0 0 0", "0 0 1", _LIMIT.format(lower=-1.5, upper=1.5)
        )
    ]
    limit = _LIMIT.format(lower=-2.6, upper=2.6)
    for side, first, y in (("left", 2, 0.2), ("right", 8, -0.2)):
        rows = [
            (f"0 {y} 0.3", "0 1 0"),
            ("0 0 0", "1 0 0"),
            ("0 0 -0.3", "0 1 0"),
            ("0 0 -0.25", "0 0 1"),
            ("0 0 -0.05", "0 1 0"),
            ("0 0 -0.08", "1 0 0"),
        ]
        for i, (xyz, axis) in enumerate(rows):
            parent = "l1" if i == 0 else f"l{first + i - 1}"
            joints.append(
                _joint(f"{side}_{i + 1}", "revolute", parent, f"l{first + i}", xyz, "0 0 0", axis, limit)
            )
    return _robot("two_arms", 14, joints)


@lru_cache(maxsize=1)
def two_hands() -> RobotModel:
    """Three joints about z with a hand, and another hand behind a fourth one: a plane, quick to compile for."""
    limit = _LIMIT.format(lower=-2.5, upper=2.5)
    rows = [
        ("j0", "revolute", "l0", "l1", "0"),
        ("j1", "revolute", "l1", "l2", "0.4"),
        ("j2", "revolute", "l2", "l3", "0.4"),
        ("tool", "fixed", "l3", "hand", "0.2"),
        ("j3", "revolute", "l1", "l5", "0.3"),
        ("other_tool", "fixed", "l5", "other_hand", "0.4"),
    ]
    joints = [
        _joint(name, kind, parent, child, f"{x} 0 0", "0 0 0", "0 0 1", limit if kind == "revolute" else "")
        for name, kind, parent, child, x in rows
    ]
    links = "".join(f'<link name="{link}"/>' for link in ("l0", *(row[3] for row in rows)))
    return robot_from_urdf(f'<robot name="two_hands">{links}{"".join(joints)}</robot>')


def flying() -> RobotModel:
    """A floating joint with four joints of other types on it; the last link is ``l5``."""
    limit = _LIMIT.format(lower=-1.5, upper=1.5)
    rows = [
        ("fly", "floating", "0 0 0", ""),
        ("a", "revolute", "0.1 0 0.2", limit),
        ("c", "continuous", "0.2 0.1 0", ""),
        ("p", "prismatic", "0 0 0.3", limit),
        ("b", "revolute", "0.1 0.1 0.1", limit),
    ]
    axes = ("0 0 1", "0 1 0", "1 0 0", "0 0 1", "0 1 0")
    joints = [
        _joint(name, kind, f"l{k}", f"l{k + 1}", xyz, "0.1 0.2 0", axis, extra)
        for k, ((name, kind, xyz, extra), axis) in enumerate(zip(rows, axes, strict=True))
    ]
    return _robot("flying", 6, joints)


ROBOTS = {
    "six_revolute": (six_revolute, {JointType.REVOLUTE}),
    "seven_revolute": (seven_revolute, {JointType.REVOLUTE}),
    "continuous_and_prismatic": (
        continuous_and_prismatic,
        {JointType.REVOLUTE, JointType.CONTINUOUS, JointType.PRISMATIC},
    ),
    "with_mimic": (with_mimic, {JointType.REVOLUTE}),
}
"""Name -> (function, joint types that a solver must support for it). All have six or more degrees of freedom."""
