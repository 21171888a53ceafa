"""A hand goes over a wall: PyRoki's trajectory example (07_trajopt) as an objective, and a verified motion out of it.

    python over_a_wall.py

Run it in a clone's environment with ``pip install '.[jax]'``. The first run compiles the objective, which takes a
minute or more. The costs are PyRoki's, with its weights, but ends and distances have to hold here, and the arm must not
hit itself. Its row of capsules is a box, and the ground is 0.1 m lower: spheres around the base reach below it. It
begins from a motion that ``cpu`` plans, not from the straight line through the wall.
"""

import sys

import numpy as np

import kinopt_ros as ko
from kinopt_ros.costs.link_pose import LinkPose
from kinopt_ros.costs.rest import Rest
from kinopt_ros.costs.self_collision import SelfCollision
from kinopt_ros.costs.smoothness import LeastAcceleration, LeastJerk, Smoothness
from kinopt_ros.costs.swept_collision import SweptCollision
from kinopt_ros.costs.velocity_limits import VelocityLimits
from kinopt_ros.geometry.shapes import Box, PlacedShape
from kinopt_ros.trajectory.interpolation import evaluate

ROBOT, HAND = "panda", "panda_hand"
POINTS, STEP = 25, 0.02
"""Points of the path, and time between them, s."""
HELD = 1e-5
"""What has to hold may be off by so much, m or rad."""
MARGIN = 0.005
"""Distance that bodies keep, m."""


def scene() -> ko.Scene:
    """Return the wall and the ground."""
    objects = {}
    for name, size, center in (
        ("wall", (0.4, 0.1, 0.4), (0.5, 0.0, 0.2)),
        ("ground", (2.0, 2.0, 0.1), (0.0, 0.0, -0.15)),
    ):
        T = np.eye(4)
        T[:3, 3] = center
        objects[name] = ko.SceneObject(name, (PlacedShape(Box(*size), np.eye(4)),), T)
    return ko.Scene(objects=objects)


def ends() -> tuple[np.ndarray, np.ndarray]:
    """Return where the hand begins and ends: on either side of the wall, downwards."""
    down = np.diag([-1.0, 1.0, -1.0, 1.0])
    first, last = down.copy(), down.copy()
    first[:3, 3], last[:3, 3] = (0.5, -0.3, 0.2), (0.5, 0.3, 0.2)
    return first, last


def objective() -> ko.Objective:
    """Return the costs: what has a tolerance has to hold, the rest is weighed."""
    first, last = ends()
    exact = (HELD, HELD)
    return ko.Objective(
        [
            LinkPose(link=HAND, T_base_target=first, points=(0, 1), tolerance=exact, label="begin"),
            LinkPose(link=HAND, T_base_target=last, points=(-2, -1), tolerance=exact, label="end"),
            SweptCollision(margin=MARGIN, tolerance=HELD),
            SelfCollision(margin=MARGIN, tolerance=HELD),
            Rest(weight=0.01),
            Smoothness(weight=0.1),
            VelocityLimits(weight=10.0),
            LeastAcceleration(weight=0.1),
            LeastJerk(weight=0.1),
        ]
    )


def planned(robot: ko.RobotModel, around: ko.Scene, solver: ko.Solver, points: int) -> np.ndarray:
    """Return points of a motion between configurations at both ends that touch nothing: where the search begins."""
    q = np.array(robot.default_q)
    found = []
    for T in ends():
        asked = ko.ik_problem(robot, T, tip_link=HAND, state=q, prefer="closest", scene=around)
        answer = solver.solve_ik(asked)
        if not answer.success[0]:
            raise SystemExit(f"no configuration at an end: {answer.messages[0]}")
        q = q.copy()
        q[asked.variables] = answer.q[0, 0]
        found.append(q)
    goal = ko.JointGoal(found[1][asked.variables])
    motion = ko.plan_trajectory(
        solver,
        ko.trajectory_problem(robot, goal, joints=asked.joints, start=found[0], scene=around, clearance=0.01),
    )
    if motion.trajectory is None:
        raise SystemExit(f"no motion to begin from: {motion.message}")
    path = np.repeat(found[0][None], points, axis=0)
    path[:, asked.variables] = evaluate(
        motion.trajectory, np.linspace(0.0, motion.trajectory.duration, points)
    )[0]
    return path


def solved(
    points: int = POINTS,
) -> tuple[ko.ObjectiveProblem, ko.ObjectiveResult, ko.TrajectoryResult | None]:
    """Return what is asked, what was found, and the motion along it, if all holds that has to."""
    robot, around = ko.load_robot(ROBOT), scene()
    cpu, solver = ko.create_solver("cpu", robot), ko.create_solver("jax_lm", robot, {"groups": ""})
    path = planned(robot, around, cpu, points)
    problem = ko.objective_problem(
        robot,
        objective(),
        state=path[0],
        seeds=path[None],
        num_points=points,
        dt=STEP,
        num_starts=0,
        scene=around,
    )
    result = solver.solve_objective(problem)
    return problem, result, ko.objective_motion(robot, problem, result) if result.success[0] else None


def main() -> int:
    """Show what became of each cost, and the motion; return 0 if there is one."""
    _, result, motion = solved()
    for term in result.terms[0]:
        off = (
            ""
            if term.tolerance is None
            else f", off by {term.magnitude.max():.1e} of {term.tolerance.max():.0e}"
        )
        print(f"{term.title}: {term.value:.3g}{off}")
    print(f"{ko.Status(result.status[0]).name} in {result.solve_time:.1f} s {result.messages[0]}")
    if motion is None:
        return 2
    if motion.trajectory is None:
        print(f"no motion: {motion.message}")
        return 2
    print(
        f"a verified motion of {motion.trajectory.duration:.2f} s, clear of everything by {motion.clearance:.4f} m"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
