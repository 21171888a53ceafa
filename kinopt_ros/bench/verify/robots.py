"""Robots of different kinds: installed ones, and generated ones for what those lack."""

from dataclasses import dataclass

from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import find_robot, robot_names
from kinopt_ros.robot.urdf import robot_from_urdf


@dataclass(frozen=True, eq=False)
class Subject:
    """A robot and the links that requests are about."""

    name: str
    urdf: str
    robot: RobotModel
    base: str
    tips: tuple[str, ...]
    """The first one is the usual tip; several are asked for together."""


_INSTALLED = {
    "panda": ("panda_link0", ("panda_link8",)),
    "ur5": ("base_link", ("tool0",)),
    "kinova": ("j2s6s200_link_base", ("j2s6s200_end_effector",)),
    "tiago": ("base_link", ("arm_tool_link",)),
    "talos_reduced": ("base_link", ("gripper_left_base_link", "gripper_right_base_link")),
    "lbr_iiwa_14_r820": ("base_link", ("tool0",)),
    "so101": ("base_link", ("gripper_frame_link",)),
}


def subjects() -> tuple[list[Subject], list[str]]:
    """Return all robots that are available here, and the names of those that are not installed."""
    known = robot_names()
    found, missing = [], []
    for name, (base, tips) in _INSTALLED.items():
        if name not in known:
            missing.append(name)
            continue
        urdf = find_robot(name)[0].read_text(encoding="utf-8")
        found.append(_subject(name, urdf, base, tips))
    for name, (urdf, tips) in _generated().items():
        found.append(_subject(name, urdf, "l0", tips))
    return found, missing


def _subject(name: str, urdf: str, base: str, tips: tuple[str, ...]) -> Subject:
    robot = robot_from_urdf(urdf)
    for link in (base, *tips):
        robot.link(link)
    return Subject(name, urdf, robot, base, tips)


def _generated() -> dict[str, tuple[str, tuple[str, ...]]]:
    gantry = _urdf(
        "gantry",
        [
            _joint(1, "prismatic", "1 0 0", (-0.8, 0.8), "0 0 0.5"),
            _joint(2, "prismatic", "0 1 0", (-0.5, 0.5), "0 0 0"),
            _joint(3, "prismatic", "0 0 -1", (0.0, 0.4), "0 0 0"),
            _joint(4, "continuous", "0 0 1", None, "0 0 -0.1"),
            _joint(5, "revolute", "0 1 0", (-1.8, 1.8), "0 0 -0.05"),
            _joint(6, "continuous", "0 0 1", None, "0.02 0 -0.08"),
        ],
    )
    five = _urdf(
        "five",
        [
            _joint(1, "revolute", "0 0 1", (-2.9, 2.9), "0 0 0.2"),
            _joint(2, "revolute", "0 1 0", (-1.9, 1.9), "0.05 0 0.1"),
            _joint(3, "revolute", "0 1 0", (-2.4, 2.4), "0 0 0.35"),
            _joint(4, "revolute", "0 1 0", (-1.9, 1.9), "0 0 0.3"),
            _joint(5, "continuous", "0 0 1", None, "0 0 0.12"),
        ],
    )
    # A finger-like chain: joints 3 and 5 follow others, one with an offset and the other sign.
    mimic = _urdf(
        "mimic",
        [
            _joint(1, "revolute", "0 0 1", (-2.5, 2.5), "0 0 0.3"),
            _joint(2, "revolute", "0 1 0", (-1.6, 1.6), "0 0 0.1"),
            _joint(3, "revolute", "0 1 0", (-1.0, 1.0), "0 0 0.3", ("j2", 0.5, 0.1)),
            _joint(4, "revolute", "1 0 0", (-2.0, 2.0), "0 0 0.25"),
            _joint(5, "prismatic", "0 0 1", (0.0, 0.2), "0 0 0.05", ("j4", -0.05, 0.1)),
            _joint(6, "revolute", "0 1 0", (-2.0, 2.0), "0 0 0.1"),
            _joint(7, "revolute", "0 0 1", (-2.9, 2.9), "0 0 0.08"),
            _joint(8, "revolute", "1 0 0", (-1.5, 1.5), "0 0 0.08"),
        ],
    )
    return {"gantry": (gantry, ("l6",)), "five": (five, ("l5",)), "mimic": (mimic, ("l8",))}


def _joint(
    number: int,
    kind: str,
    axis: str,
    limits: tuple[float, float] | None,
    xyz: str,
    mimic: tuple[str, float, float] | None = None,
) -> str:
    limit = "" if limits is None else f'lower="{limits[0]}" upper="{limits[1]}" '
    follows = (
        "" if mimic is None else f'<mimic joint="{mimic[0]}" multiplier="{mimic[1]}" offset="{mimic[2]}"/>'
    )
    return (
        f'<joint name="j{number}" type="{kind}"><parent link="l{number - 1}"/><child link="l{number}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="{axis}"/><limit {limit}velocity="2" effort="10"/>{follows}</joint>'
    )


def _urdf(name: str, joints: list[str]) -> str:
    links = "".join(f'<link name="l{i}"/>' for i in range(len(joints) + 1))
    return f'<robot name="{name}">{links}{"".join(joints)}</robot>'
