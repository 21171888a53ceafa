"""The names of `import kinopt_ros`: what the library offers to everybody."""

from kinopt_ros.errors import KinoptError
from kinopt_ros.kinematics.center_of_mass import center_of_mass, center_of_mass_jacobian
from kinopt_ros.kinematics.differential import frame_jacobian, joint_velocity
from kinopt_ros.kinematics.error_frames import pose_error_jacobian, pose_error_twist
from kinopt_ros.kinematics.forward import chain_pose, forward_kinematics
from kinopt_ros.kinematics.free_joint import with_free_joint
from kinopt_ros.kinematics.jacobian import geometric_jacobian
from kinopt_ros.objectives.objective import Objective
from kinopt_ros.objectives.problem import ObjectiveProblem, objective_problem, with_objectives
from kinopt_ros.objectives.result import ObjectiveResult
from kinopt_ros.planning.objective_motion import objective_motion
from kinopt_ros.planning.objectives import solve_objective
from kinopt_ros.planning.problem_files import load_problem
from kinopt_ros.planning.trajectories import plan_trajectory
from kinopt_ros.planning.turning import configurations_along
from kinopt_ros.problems.builder import ik_problem
from kinopt_ros.problems.constraints.joint_range import JointRange
from kinopt_ros.problems.constraints.pose_along import PoseAlong, upright
from kinopt_ros.problems.constraints.straight_line import StraightLine
from kinopt_ros.problems.ik import IkProblem, PoseTarget
from kinopt_ros.problems.pose_weights import PoseWeights
from kinopt_ros.problems.trajectory import (
    CostWeights,
    JointGoal,
    PoseGoal,
    TrajectoryProblem,
)
from kinopt_ros.problems.trajectory_builder import trajectory_problem
from kinopt_ros.robot.base_joint import with_base
from kinopt_ros.robot.chain import KinematicChain, build_chain
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.robot.urdf import robot_from_urdf
from kinopt_ros.scene.files import load_scene
from kinopt_ros.scene.scene import EMPTY_SCENE, AttachedObject, Scene, SceneObject
from kinopt_ros.solvers.base import Solver
from kinopt_ros.solvers.readiness import prepare_collisions
from kinopt_ros.solvers.registry import create_solver, list_solvers
from kinopt_ros.solvers.result import IkResult
from kinopt_ros.solvers.trajectory_result import TrajectoryResult
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.verification.collision import check_collisions, clearance_of

__all__ = [
    "EMPTY_SCENE",
    "AttachedObject",
    "CostWeights",
    "IkProblem",
    "IkResult",
    "JointGoal",
    "JointRange",
    "JointTrajectory",
    "KinematicChain",
    "KinoptError",
    "Objective",
    "ObjectiveProblem",
    "ObjectiveResult",
    "PoseAlong",
    "PoseGoal",
    "PoseTarget",
    "PoseWeights",
    "RobotModel",
    "Scene",
    "SceneObject",
    "Solver",
    "Status",
    "StraightLine",
    "TrajectoryProblem",
    "TrajectoryResult",
    "build_chain",
    "center_of_mass",
    "center_of_mass_jacobian",
    "chain_pose",
    "check_collisions",
    "clearance_of",
    "configurations_along",
    "create_solver",
    "forward_kinematics",
    "frame_jacobian",
    "geometric_jacobian",
    "ik_problem",
    "joint_velocity",
    "list_solvers",
    "load_problem",
    "load_robot",
    "load_scene",
    "objective_motion",
    "objective_problem",
    "plan_trajectory",
    "pose_error_jacobian",
    "pose_error_twist",
    "prepare_collisions",
    "robot_from_urdf",
    "solve_objective",
    "trajectory_problem",
    "upright",
    "with_base",
    "with_free_joint",
    "with_objectives",
]
