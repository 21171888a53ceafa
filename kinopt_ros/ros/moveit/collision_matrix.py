"""moveit_msgs/AllowedCollisionMatrix as allowed pairs of the scene, and back.

A matrix says of each two of its names whether they may touch, and by its defaults which names may touch whatever it
does not say. Pairs that the SRDF disables are allowed always, here and in every matrix that is written.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from moveit_msgs.msg import AllowedCollisionEntry, AllowedCollisionMatrix

from kinopt_ros.array import Bool
from kinopt_ros.collision.adjacency import adjacent_pairs, rigid_pairs
from kinopt_ros.errors import InvalidRequestError, UnsupportedFeatureError, quoted, shortened
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.scene.checks import MAX_ALLOWED
from kinopt_ros.scene.parts import ANY
from kinopt_ros.scene.scene import Scene

Remark: TypeAlias = Callable[[str], None]
"""Takes a sentence about what a message says and what is not kept of it."""
_MOST_READ = 10 * MAX_ALLOWED
"""Most pairs that defaults may allow one by one before those that need not be kept are left out."""


def is_empty(message: Any) -> bool:
    """Check whether a matrix says nothing."""
    return not (message.entry_names or message.default_entry_names)


def read_pairs(message: Any, scene: Scene, robot: RobotModel, remark: Remark) -> frozenset[frozenset[str]]:
    """Return the pairs that may touch by a matrix, for a scene's ``allowed``.

    What it allows to names that nothing has is not kept, nor what one with exceptions may touch later on; that is
    remarked.

    Raises:
        InvalidRequestError: it is no matrix: sizes that do not fit, names twice, or not symmetric.
        UnsupportedFeatureError: it forbids a pair that the SRDF allows.
    """
    matrix = _matrix(message)
    names = list(message.entry_names)
    defaults = _defaults(message)
    _check_forbidden(names, matrix, robot)
    by_design = _by_design(robot)
    bodies = {*scene.objects, *scene.attached, *robot.link_names}
    index = {name: i for i, name in enumerate(names)}
    # Of names that nothing has there may be any number.
    never = {name for name, may in defaults.items() if not may and name in bodies}
    lost = {name for name, may in defaults.items() if may and name not in bodies}
    allowed: set[frozenset[str]] = set()
    for name in sorted(name for name, may in defaults.items() if may and name in bodies):
        row = matrix[index[name]].tolist() if name in index else []
        forbidden = {other for other, may in zip(names, row, strict=bool(row)) if not may} | never
        forbidden.discard(name)
        if not forbidden:
            allowed.add(frozenset((name, ANY)))
            continue
        allowed.update(frozenset((name, other)) for other in bodies - forbidden - {name})
        if len(allowed) > _MOST_READ:
            raise InvalidRequestError(
                f"allowed_collision_matrix allows more than {_MOST_READ} pairs to touch; at most {MAX_ALLOWED} may be "
                "that the SRDF does not allow"
            )
        remark(
            f"allowed_collision_matrix allows {quoted(name)} everything by default but {shortened(sorted(forbidden))}: "
            "that is kept for what is in the scene now, not for what comes"
        )
    rows, columns = np.nonzero(np.triu(matrix, 1))
    allowed.update(
        frozenset((names[i], names[j])) for i, j in zip(rows.tolist(), columns.tolist(), strict=True)
    )
    lost |= {name for pair in allowed for name in pair} - bodies - {ANY}
    if lost:
        remark(
            f"what allowed_collision_matrix allows to {shortened(sorted(lost))} is not kept: nothing is called so"
        )
    there = bodies | {ANY}
    kept = frozenset(pair for pair in allowed if pair <= there) - by_design
    free = {name for pair in kept if ANY in pair for name in pair - {ANY}}
    return frozenset(pair for pair in kept if ANY in pair or not pair & free)


def write_matrix(scene: Scene, robot: RobotModel) -> Any:
    """Return the matrix of a scene: of all links, and of the objects that it allows something."""
    named = {name for pair in scene.allowed for name in pair} - {ANY, *robot.link_names}
    names = [*robot.link_names, *sorted(named)]
    index = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), dtype=np.bool_)
    always = []
    for pair in (*scene.allowed, *_by_design(robot)):
        if ANY in pair:
            (name,) = pair - {ANY}
            always.append(name)
            matrix[index[name], :] = matrix[:, index[name]] = True
            continue
        first, second = (index[name] for name in pair)
        matrix[first, second] = matrix[second, first] = True
    np.fill_diagonal(matrix, False)
    return AllowedCollisionMatrix(
        entry_names=names,
        entry_values=[AllowedCollisionEntry(enabled=row) for row in matrix.tolist()],
        default_entry_names=sorted(always),
        default_entry_values=[True] * len(always),
    )


def _by_design(robot: RobotModel) -> frozenset[frozenset[str]]:
    """Return the pairs of links that are never checked."""
    pairs = (frozenset(pair) for pair in (*adjacent_pairs(robot), *rigid_pairs(robot)))
    return robot.disabled_collisions | frozenset(pairs)


def _matrix(message: Any) -> Bool:
    names, rows = message.entry_names, message.entry_values
    if len(rows) != len(names) or any(len(row.enabled) != len(names) for row in rows):
        raise InvalidRequestError(
            f"allowed_collision_matrix has {len(names)} names and {len(rows)} rows of "
            f"{shortened(sorted({str(len(row.enabled)) for row in rows})) or 'no'} entries; all must be equal"
        )
    if len(set(names)) != len(names):
        raise InvalidRequestError("allowed_collision_matrix has a name twice in entry_names")
    matrix = np.array([row.enabled for row in rows], dtype=np.bool_).reshape(len(names), len(names))
    if not np.array_equal(matrix, matrix.T):
        i, j = np.argwhere(matrix != matrix.T)[0]
        raise InvalidRequestError(
            f"allowed_collision_matrix says both {quoted(names[i])} and {quoted(names[j])} may touch and that "
            "they may not: it must be symmetric"
        )
    return matrix


def _defaults(message: Any) -> dict[str, bool]:
    names, values = message.default_entry_names, message.default_entry_values
    if len(names) != len(values) or len(set(names)) != len(names):
        raise InvalidRequestError(
            f"allowed_collision_matrix has {len(names)} default_entry_names and {len(values)} default_entry_values; "
            "they must be equal, and no name may be there twice"
        )
    return dict(zip(names, values, strict=True))


def _check_forbidden(names: list[str], matrix: Bool, robot: RobotModel) -> None:
    index = {name: i for i, name in enumerate(names)}
    forbidden = [
        sorted(pair)
        for pair in robot.disabled_collisions
        if pair <= index.keys() and not matrix[*(index[name] for name in pair)]
    ]
    if forbidden:
        first, second = min(forbidden)
        raise UnsupportedFeatureError(
            f"allowed_collision_matrix forbids {quoted(first)} and {quoted(second)} to touch, which the SRDF allows "
            f"({len(forbidden)} such pairs): take that out of the SRDF instead"
        )
