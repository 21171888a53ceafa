"""What a path's nearness costs, and distances of its spheres, without a Jacobian, compiled."""

import numpy as np

from kinopt_ros.collision.kernels.ball_distances import ball_distance
from kinopt_ros.compiler_options import FAST_INNER, FAST_OUTER
from kinopt_ros.numba_cache import njit
from kinopt_ros.solvers.cpu.paths.kernels.frames import set_frames
from kinopt_ros.solvers.cpu.paths.kernels.nearness import self_rows, world_rows
from kinopt_ros.solvers.cpu.paths.kernels.spheres import (
    COST,
    SLACK,
    balls_apart,
    distance,
    place_resting,
    place_spheres,
)


@njit(**FAST_INNER)
def depth_cost(tree, around, anchors, sticking, path, demand, work, found):
    """Compute the mean over a path's points of the squared distances that are missing, without places between points.

    ``sticking`` as for ``add_at_points``, but of one point, for all.
    """
    node, centers, mask, resting = around.node, around.centers, around.mask, around.resting[0]
    gaps, places, floor = anchors
    less, pair_less, pair_gap = sticking
    row, _, frames, positions, balls, _, known, pushed, f, W, _, slope, H = work
    found[COST], found[SLACK] = 0.0, np.inf
    for t in range(path.shape[0]):
        set_frames(tree, path[t], frames)
        place_spheres(node, centers, frames, positions, resting, node.shape[0])
        for s in range(resting, node.shape[0]):
            known[s] = -np.inf if mask[s] >= 0 else np.inf
        world_rows(around, gaps, places, less[0], demand[0], demand[1], positions, known, found, pushed, f, W)
        pushed[:] = False
        self_rows(
            tree,
            around,
            floor,
            pair_less[0],
            pair_gap[0],
            frames,
            positions,
            demand[0],
            demand[1],
            row,
            balls,
            found,
            slope,
            H,
        )
    return found[COST] / path.shape[0]


@njit(**FAST_OUTER)
def sphere_distances(tree, around, path, wanted, work, gaps, obstacles, pair_gaps):
    """Compute distances of spheres at every point of a path.

    Writes the distance of every sphere from obstacles (T, S), which obstacle that is (T, S), and the least distance of
    the spheres of every pair of bodies (T, P). Where a distance is not below ``wanted``, infinity and -1 stand instead.
    """
    node, centers, radii, padded, mask, skipped = (
        around.node,
        around.centers,
        around.radii,
        around.padded,
        around.mask,
        around.skipped,
    )
    body_node, first, ball, pairs, resting = (
        around.body_node,
        around.body_first,
        around.body_ball,
        around.pairs,
        around.resting,
    )
    frames, positions, balls = work[2], work[3], work[4]
    place_resting(around, positions, balls)
    for t in range(path.shape[0]):
        set_frames(tree, path[t], frames)
        place_spheres(node, centers, frames, positions, resting[0], node.shape[0])
        place_spheres(body_node, ball, frames, balls, resting[1], body_node.shape[0])
        for s in range(node.shape[0]):
            gaps[t, s], obstacles[t, s] = np.inf, -1
            if mask[s] >= 0:
                x, y, z = positions[s, 0], positions[s, 1], positions[s, 2]
                found = ball_distance(
                    around.numbers, around.integers, skipped[mask[s]], x, y, z, padded[s], wanted
                )
                if found[0] < wanted:
                    gaps[t, s], obstacles[t, s] = found[0], found[4]
        for k in range(pairs.shape[0]):
            one, two = pairs[k, 0], pairs[k, 1]
            pair_gaps[t, k] = np.inf
            if balls_apart(ball, balls, one, two, wanted):
                continue
            for a in range(first[one], first[one + 1]):
                for b in range(first[two], first[two + 1]):
                    d = distance(positions, a, positions, b) - radii[a] - radii[b]
                    if d < wanted:
                        pair_gaps[t, k] = min(pair_gaps[t, k], d)
