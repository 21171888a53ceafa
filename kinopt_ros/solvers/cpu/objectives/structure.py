"""What the kernels need of a robot and of the structure of an objective, packed once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

import numpy as np

from kinopt_ros.array import Bool, Float64, Int64
from kinopt_ros.kinematics.tangent import directions
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.motion_tree import MotionTree
from kinopt_ros.solvers.cpu.objectives.kinds import KINDS, Rows
from kinopt_ros.solvers.cpu.objectives.starts import Anchor, anchors_of

if TYPE_CHECKING:
    from kinopt_ros.solvers.cpu.objectives.kernels.model import Costs, Model, Moving, Tree

Array: TypeAlias = Float64 | Int64 | Bool


@dataclass(frozen=True, eq=False)
class Structure:
    """A robot and an objective's structure, packed."""

    model: "Model"
    parts: tuple["Part", ...]
    """Per cost."""
    num_rows: int
    num_directions: int
    """Directions that move."""
    numbers: Annotated[Float64, "N"]
    """Those of all costs, without what differs between objectives of this structure."""
    anchors: tuple[Anchor, ...]
    """Link poses that starts are led to."""

    @cached_property
    def arrays(self) -> tuple[Array, ...]:
        """Arrays of the model, one after the other, as the search takes them."""
        return (*self.model.tree, *self.model.moving, *self.model.costs)

    def pack(
        self, objectives: Sequence[Objective]
    ) -> tuple[Annotated[Float64, "B N"], Annotated[Float64, "B R"]]:
        """Return the numbers and weights of objectives of this structure."""
        numbers = np.empty((len(objectives), len(self.numbers)))
        weights = np.empty((len(objectives), self.num_rows))
        numbers[:] = self.numbers
        for b, objective in enumerate(objectives):
            for part, cost in zip(self.parts, objective.costs, strict=True):
                part.write(cost, numbers[b, part.numbers])
                weights[b, part.rows] = cost.weight
        return numbers, weights


class Part(NamedTuple):
    """Where a cost is in what is packed, and how its numbers come there."""

    write: Callable[[Any, Float64], None]
    numbers: slice
    rows: slice


def pack_structure(robot: RobotModel, objective: Objective, free: Annotated[Bool, "nv"]) -> Structure:
    """Pack an objective whose costs are all of ``KINDS``.

    Args:
        robot: the robot.
        objective: of the structure; its numbers do not matter.
        free: directions that move.
    """
    from kinopt_ros.solvers.cpu.objectives.kernels import model as codes

    rows = tuple(KINDS[type(cost)].rows(robot, cost) for cost in objective)
    tree, frames = _tree(robot, rows, free)
    table = np.zeros((len(rows), codes.ROW_SIZE), dtype=np.int64)
    lists: list[int] = []
    parts: list[Part] = []
    first, numbers = 0, 0
    for k, (cost, own) in enumerate(zip(objective, rows, strict=True)):
        table[k, codes.CODE] = getattr(codes, own.code)
        table[k, codes.FRAME] = frames.get(own.link, -1)
        table[k, codes.BASE] = frames.get(own.base_link, -1)
        table[k, codes.FIRST], table[k, codes.SIZE] = first, own.size
        table[k, codes.NUMBERS], table[k, codes.LISTED] = numbers, len(lists)
        table[k, codes.COUNT] = len(own.listed)
        table[k, codes.VARIANT] = getattr(codes, own.variant) if own.variant else 0
        lists += own.listed
        parts.append(
            Part(
                KINDS[type(cost)].write,
                slice(numbers, numbers + len(own.numbers)),
                slice(first, first + own.size),
            )
        )
        first += own.size
        numbers += len(own.numbers)
    sizes = [own.size for own in rows]
    anchors = anchors_of(robot, objective, free)
    costs: Costs = codes.Costs(
        table,
        np.array(lists, dtype=np.int64),
        np.repeat([cost.holds for cost in objective], sizes),
        np.repeat([cost.one_sided for cost in objective], sizes),
    )
    return Structure(
        codes.Model(tree, _moving(robot, free), costs),
        tuple(parts),
        first,
        int(np.count_nonzero(free)),
        np.concatenate([own.numbers for own in rows]),
        anchors,
    )


def _moving(robot: RobotModel, free: Annotated[Bool, "nv"]) -> "Moving":
    from kinopt_ros.solvers.cpu.objectives.kernels.model import Moving

    known, column = directions(robot), _columns(free)
    own = free[known.scalar_directions]
    scalar = known.scalar_directions[own]
    quaternions = [(i, *column[v : v + 3]) for i, v in known.quaternions if free[v : v + 3].any()]
    return Moving(
        column[scalar],
        known.scalar_variables[own],
        known.lower[scalar],
        known.upper[scalar],
        np.array(quaternions, dtype=np.int64).reshape(-1, 4),
    )


def _columns(free: Annotated[Bool, "nv"]) -> Annotated[np.ndarray, "nv"]:
    return np.where(free, np.cumsum(free) - 1, -1).astype(np.int64)


def _tree(
    robot: RobotModel, rows: tuple[Rows, ...], free: Annotated[Bool, "nv"]
) -> tuple["Tree", dict[str, int]]:
    """Return the motions that the rows depend on, and the numbers of the frames that they name."""
    from kinopt_ros.solvers.cpu.objectives.kernels.model import Tree

    named = {row.link for row in rows} | {row.base_link for row in rows if row.base_link != robot.root_link}
    links = sorted(named - {""})
    massive = (
        [name for name in robot.link_names if name in robot.inertials]
        if any(row.masses for row in rows)
        else []
    )
    behind = MotionTree(robot, {*links, *massive})
    frames = {name: k for k, name in enumerate(links)}
    chains = [behind.chain(name) for name in links]
    steps = behind.steps
    first_direction = directions(robot).of_variable
    return Tree(
        np.array(behind.parent, dtype=np.int64),
        np.array([step.motion for step in steps], dtype=np.int64),
        np.array([step.variable for step in steps], dtype=np.int64),
        np.array([first_direction[step.variable] for step in steps], dtype=np.int64),
        np.array([_twelve(T) for T in behind.fixed]).reshape(-1, 12),
        np.array([step.axis for step in steps], dtype=np.float64).reshape(-1, 3),
        np.array([(step.multiplier, step.offset) for step in steps], dtype=np.float64).reshape(-1, 2),
        _columns(free),
        np.array([behind.of_link[name][0] for name in links], dtype=np.int64),
        np.array([_twelve(behind.of_link[name][1]) for name in links]).reshape(-1, 12),
        np.array([i for chain in chains for i in chain], dtype=np.int64),
        np.cumsum([0, *(len(chain) for chain in chains)]),
        _masses(robot, behind, massive),
    ), frames


def _masses(robot: RobotModel, behind: MotionTree, links: list[str]) -> Annotated[Float64, "N+1 4"]:
    mass = np.zeros((len(behind.steps) + 1, 4))
    for name in links:
        inertial, (motion, T) = robot.inertials[name], behind.of_link[name]
        if inertial.mass > 0.0:
            center = T[:3, :3] @ np.asarray(inertial.center_of_mass) + T[:3, 3]
            mass[motion] += inertial.mass * np.array([1.0, *center])
    total = mass[:, 0].sum()
    return mass / total if total > 0.0 else mass


def _twelve(T: Annotated[Float64, "4 4"]) -> Annotated[Float64, "12"]:
    return np.concatenate([T[:3, :3].reshape(9), T[:3, 3]])
