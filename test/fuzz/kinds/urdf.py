"""Robot descriptions."""

from pathlib import Path

from fuzz.kinds import robots
from fuzz.source import Source
from fuzz.xml_trees import changed_xml
from kinopt_ros.robot.lint.urdf import lint_urdf
from kinopt_ros.robot.sources import find_robot
from kinopt_ros.robot.urdf import robot_from_urdf


def prepare(folder: Path) -> None:
    """See ``kinds``."""
    from kinopt_ros.geometry.meshes import read_triangles  # noqa: F401

    robots.use(robot_from_urdf(robots.ARM, urdf_file=folder / "arm.urdf"))


def feed(source: Source, folder: Path) -> None:
    """See ``kinds``."""
    seed = find_robot("panda")[0].read_text() if source.often(0.02) else robots.ARM
    text = changed_xml(source, seed)
    for finding in lint_urdf(text):
        assert len(finding.what) < 10_000
    robots.use(robot_from_urdf(text, urdf_file=folder / "arm.urdf" if source.often(0.5) else None))
