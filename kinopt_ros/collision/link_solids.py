"""A robot's links as solids that coal can compare."""

from collections.abc import Mapping
from typing import Annotated, Any

from kinopt_ros.array import Float64
from kinopt_ros.errors import SolverUnavailableError
from kinopt_ros.geometry.shapes import Box, Capsule, Cylinder, Mesh, PlacedShape, Shape, Sphere
from kinopt_ros.robot.memo import remembered
from kinopt_ros.robot.model import RobotModel


class LinkSolids:
    """The original shapes of all links."""

    def __init__(self, coal: Any, shapes: Mapping[str, tuple[PlacedShape, ...]]) -> None:
        self._coal = coal
        self._request = coal.CollisionRequest()
        self._solids = {
            link: [(_solid(coal, item.shape), item.T_frame_shape) for item in placed]
            for link, placed in shapes.items()
        }

    def collide(
        self, a: str, T_root_a: Annotated[Float64, "4 4"], b: str, T_root_b: Annotated[Float64, "4 4"]
    ) -> bool:
        """Whether two links touch."""
        placed_a, placed_b = self._placed(a, T_root_a), self._placed(b, T_root_b)
        for solid_a, T_a in placed_a:
            for solid_b, T_b in placed_b:
                result = self._coal.CollisionResult()
                if self._coal.collide(solid_a, T_a, solid_b, T_b, self._request, result):
                    return True
        return False

    def _placed(self, link: str, T_root_link: Float64) -> list[tuple[Any, Any]]:
        placed = []
        for solid, T_link_shape in self._solids[link]:
            T = T_root_link @ T_link_shape
            placed.append((solid, self._coal.Transform3s(T[:3, :3], T[:3, 3])))
        return placed


@remembered
def link_solids(robot: RobotModel) -> LinkSolids:
    """Solids of the links that have shapes.

    Raises:
        SolverUnavailableError: coal is not installed.
    """
    try:
        import coal
    except ImportError:
        raise SolverUnavailableError("collision checks need the package coal (pip install coal)") from None
    return LinkSolids(coal, robot.collision_shapes)


def _solid(coal: Any, shape: Shape) -> Any:
    if isinstance(shape, Sphere):
        return coal.Sphere(shape.radius)
    if isinstance(shape, Box):
        return coal.Box(shape.x, shape.y, shape.z)
    if isinstance(shape, Cylinder):
        return coal.Cylinder(shape.radius, shape.length)
    if isinstance(shape, Capsule):
        return coal.Capsule(shape.radius, shape.length)
    assert isinstance(shape, Mesh)  # a URDF has no others
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(shape.triangles), len(shape.vertices))
    model.addVertices(shape.vertices)
    model.addTriangles(shape.triangles)
    model.endModel()
    return model
