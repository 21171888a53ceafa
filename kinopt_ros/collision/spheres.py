"""A robot as spheres that contain its shapes: what solvers check quickly, on the safe side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from kinopt_ros.array import Float64, Immutable, Int64, taken_over
from kinopt_ros.errors import InvalidShapeError, RobotDescriptionError, UnknownLinkError, quoted
from kinopt_ros.files import path_of, read_text
from kinopt_ros.geometry import kept
from kinopt_ros.geometry.fit import MAX_SPHERES, TOLERANCE, fit_spheres, sticking_out
from kinopt_ros.geometry.shapes import PlacedShape, Shape
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.geometry.surfaces import surface_points
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene import yaml_text

LARGE_MOST = 18
"""Most spheres for a link whose spheres otherwise stick out further than ``COARSE``."""
COARSE = 0.06
"""Length that spheres may stick out; a link whose spheres stick out further gets up to LARGE_MOST spheres, m."""
_NONE: Mapping[str, SphereSet] = {}
_SOURCES = (__name__, *(f"kinopt_ros.geometry.{name}" for name in ("cells", "cover", "fit", "surfaces")))
_SLACK = 1e-6
"""Distance outside of given spheres up to which points count as covered, m, as files round their numbers."""


@dataclass(frozen=True, eq=False)
class RobotSpheres(Immutable):
    """Spheres of all links that have shapes."""

    link: Annotated[Int64, "N"]
    """Index of every sphere's link in ``robot.link_names``, ascending."""
    centers: Annotated[Float64, "N 3"]
    """Centres in the link's frame, m."""
    radii: Annotated[Float64, "N"]
    sources: Mapping[str, str]
    """Where the spheres of each link come from: "fit", "srdf" or "file"."""
    warnings: tuple[str, ...] = ()
    """Given spheres that leave out a part of their link."""

    def __post_init__(self) -> None:
        taken_over(self, "link", "centers", "radii")

    def of(self, link: int) -> SphereSet:
        """Return the spheres of one link."""
        own = self.link == link
        return SphereSet(self.centers[own], self.radii[own])


def robot_spheres(
    robot: RobotModel,
    given: Mapping[str, SphereSet] = _NONE,
    most: int | None = None,
    tolerance: float = TOLERANCE,
) -> RobotSpheres:
    """Return spheres of every link that has shapes: ``given`` ones, else those of the SRDF, else fitted ones.

    Fitted spheres contain the link's shapes. Given ones and those of the SRDF are taken as they are; ``warnings`` says
    which leave something out. Fits are made once for each robot.

    Args:
        robot: its meshes are read, unless that has been done.
        given: by link, as ``read_spheres`` reads them from a file.
        most: at most so many spheres for a link; None: 6, but up to 18 where 6 would stick out more than 6 cm.
        tolerance: how far (m) spheres may stick out before there are more of them.

    Raises:
        UnknownLinkError: spheres for a link that the robot does not have.
    """
    for name in given:
        if name not in robot.link_index:
            raise UnknownLinkError(name, robot.link_names)
    chosen: dict[str, tuple[str, SphereSet]] = {}
    for source, by_link in (("srdf", robot.link_spheres), ("file", given)):
        chosen.update({name: (source, spheres) for name, spheres in by_link.items()})
    needed = tuple(name for name in robot.collision_shapes if name not in chosen)
    chosen.update(
        {name: ("fit", spheres) for name, spheres in fitted_spheres(robot, needed, most, tolerance).items()}
    )
    order = [name for name in robot.link_names if name in chosen]
    sets = [chosen[name][1] for name in order]
    index = np.array([robot.link_index[name] for name in order], dtype=np.int64)
    return RobotSpheres(
        link=np.repeat(index, [len(spheres.radii) for spheres in sets]),
        centers=np.concatenate([np.empty((0, 3)), *(spheres.centers for spheres in sets)]),
        radii=np.concatenate([np.empty(0), *(spheres.radii for spheres in sets)]),
        sources={name: chosen[name][0] for name in order},
        warnings=tuple(
            sentence
            for name in order
            if chosen[name][0] != "fit" and (sentence := _left_out(robot, name, *chosen[name]))
        ),
    )


def read_spheres(path: str | Path) -> dict[str, SphereSet]:
    """Read spheres by link from a YAML file ``collision_spheres: {link: [{center: [x, y, z], radius: r}, ...]}`` (m).

    Raises:
        RobotDescriptionError: no such file, or not of this form.
    """
    path = path_of(path, "a file of spheres", RobotDescriptionError)
    what = f"the file of spheres {quoted(str(path), 300)}"
    try:
        content = yaml_text.parsed(read_text(path, yaml_text.LARGEST_TEXT, what, RobotDescriptionError))
    except InvalidShapeError as error:
        raise RobotDescriptionError(f"{what}: {error}") from None
    links = content.get("collision_spheres") if isinstance(content, dict) else None
    if not isinstance(links, dict):
        raise RobotDescriptionError(f"{what} has no map collision_spheres: link name -> list of spheres")
    return {str(name): _sphere_set(str(name), spheres, what) for name, spheres in links.items()}


def _sphere_set(name: str, spheres: object, what: str) -> SphereSet:
    try:
        if not isinstance(spheres, list):
            raise TypeError("it is no list")
        values = np.array([[*sphere["center"], sphere["radius"]] for sphere in spheres], dtype=np.float64)
        values = values.reshape(len(spheres), 4)
        return SphereSet(values[:, :3].copy(), values[:, 3].copy())
    except (KeyError, TypeError, ValueError, OverflowError, InvalidShapeError) as error:
        raise RobotDescriptionError(
            f"the spheres of {quoted(name)} in {what} are not usable ({str(error)[:200]}); each needs "
            "center: [x, y, z] and radius"
        ) from None


@remembered
def fitted_spheres(
    robot: RobotModel, links: tuple[str, ...], most: int | None = None, tolerance: float = TOLERANCE
) -> dict[str, SphereSet]:
    """Fit spheres that contain the shapes of these links, which must have some. They are kept on disk."""
    shapes = [robot.collision_shapes[name] for name in links]
    key = kept.digest(_SOURCES, most, tolerance, shapes)
    found = kept.load(key)
    if found is None:
        sets = _fit_all(shapes, most, tolerance)
        found = {
            "counts": np.array([len(spheres.radii) for spheres in sets], dtype=np.int64),
            "centers": np.concatenate([np.empty((0, 3)), *(spheres.centers for spheres in sets)]),
            "radii": np.concatenate([np.empty(0), *(spheres.radii for spheres in sets)]),
        }
        kept.store(key, found)
    ends = np.cumsum(found["counts"])
    return {
        name: SphereSet(found["centers"][end - count : end].copy(), found["radii"][end - count : end].copy())
        for name, count, end in zip(links, found["counts"], ends, strict=True)
    }


def _fit_all(
    shapes: Sequence[tuple[PlacedShape, ...]], most: int | None, tolerance: float
) -> list[SphereSet]:
    """Fit spheres; equal shapes, as of a left and a right hand, are fitted once where they are alone on their link."""
    known: dict[Shape, SphereSet] = {}
    sets = []
    for placed in shapes:
        if len(placed) > 1:
            sets.append(_fit(placed, most, tolerance))
            continue
        shape, T = placed[0].shape, placed[0].T_frame_shape
        if shape not in known:
            known[shape] = _fit((PlacedShape(shape, np.eye(4)),), most, tolerance)
        centers: Float64 = known[shape].centers @ T[:3, :3].T + T[:3, 3]
        # Half a nanometre for the rounding of turned centres.
        sets.append(SphereSet(centers, known[shape].radii + 5e-10))
    return sets


def _fit(placed: tuple[PlacedShape, ...], most: int | None, tolerance: float) -> SphereSet:
    spheres = fit_spheres(placed, most or MAX_SPHERES, tolerance)
    if most is None and len(spheres.radii) == MAX_SPHERES and sticking_out(placed, spheres) > COARSE:
        more = fit_spheres(placed, LARGE_MOST, COARSE)
        if sticking_out(placed, more) < sticking_out(placed, spheres):
            return more
    return spheres


@remembered  # who has given spheres asks for every motion, and it takes 25 ms
def _left_out(robot: RobotModel, name: str, source: str, spheres: SphereSet) -> str | None:
    points = surface_points(robot.collision_shapes.get(name, ()))
    outside = int((~spheres.contain(points, _SLACK)).sum())
    if not outside:
        return None
    where = "the SRDF's link_sphere_approximation" if source == "srdf" else "the file's spheres"
    return f"{where} of {name!r} leave out {100.0 * outside / len(points):.3g} % of the surface of its shapes"
