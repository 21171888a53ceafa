"""List of all services of the node: what it offers, and what clients and documentation know of."""

from kinopt_ros.ros.services.apply_scene import ApplySceneService
from kinopt_ros.ros.services.check_state import CheckStateService
from kinopt_ros.ros.services.compute_cartesian_path import ComputeCartesianPathService
from kinopt_ros.ros.services.compute_fk import ComputeFkService
from kinopt_ros.ros.services.get_jacobian import GetJacobianService
from kinopt_ros.ros.services.get_scene import GetSceneService
from kinopt_ros.ros.services.list_solvers import ListSolversService
from kinopt_ros.ros.services.plan_trajectory import PlanTrajectoryService
from kinopt_ros.ros.services.ready import ReadyService
from kinopt_ros.ros.services.solve_ik import SolveIkService
from kinopt_ros.ros.services.twist_to_joint_velocity import TwistToJointVelocityService
from kinopt_ros.ros.serving.service import Service

SERVICES: tuple[type[Service], ...] = (
    SolveIkService,
    ComputeFkService,
    GetJacobianService,
    TwistToJointVelocityService,
    ApplySceneService,
    GetSceneService,
    CheckStateService,
    PlanTrajectoryService,
    ComputeCartesianPathService,
    ListSolversService,
    ReadyService,
)
