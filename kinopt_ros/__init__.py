"""Verified inverse kinematics and joint motion for any URDF robot.

    import kinopt_ros as ko

    robot = ko.load_robot("panda")                        # or a URDF file
    solver = ko.create_solver("cpu", robot)
    result = solver.solve_ik(ko.ik_problem(robot, T_base_target))
    result.q[0, 0], result.success[0], result.messages[0]

    problem = ko.trajectory_problem(robot, q_goal, scene=ko.load_scene("scene.yaml", robot))
    result = ko.plan_trajectory(solver, problem)
    result.trajectory, result.message

Conventions (units, frames, ``T_a_b``): kinopt_ros.robot.model. Nothing here needs ROS.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinopt_ros.public import *  # noqa: F403

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    """Import a name of ``kinopt_ros.public`` when it is first asked for.

    Programs of this package begin here, too, and must hear Ctrl-C before anything is imported that takes time.
    """
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = import_module("kinopt_ros.public")
    value = globals().get(name, getattr(public, name, None))  # modules, too, once they are imported
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return value


def __dir__() -> list[str]:
    public = import_module("kinopt_ros.public")
    return sorted({*globals(), *public.__all__})
