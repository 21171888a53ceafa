"""Semantic descriptions, and names of states."""

from pathlib import Path

from fuzz.kinds import robots
from fuzz.source import Source
from fuzz.xml_trees import changed_xml
from kinopt_ros.robot.lint.srdf import lint_srdf
from kinopt_ros.robot.states import joints_of_state, named_configuration
from kinopt_ros.robot.urdf import robot_from_urdf


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    robots.use(robot_from_urdf(robots.ARM, robots.ARM_SRDF))


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    text = changed_xml(source, robots.ARM_SRDF)
    for finding in lint_srdf(text, robot_from_urdf(robots.ARM)):
        assert len(finding.what) < 10_000
    robot = robot_from_urdf(robots.ARM, text, virtual_joint=source.often(0.3))
    robots.use(robot)
    states = [f"{group.name}/{state}" for group in robot.groups.values() for state in group.states]
    name = source.name(states)
    joints_of_state(robot, name)
    named_configuration(robot, name)
