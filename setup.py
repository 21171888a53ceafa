"""Package description for ROS (colcon, ament_python) and for pip alike."""

import os
import re
from glob import glob
from pathlib import Path

from setuptools import find_packages, setup

package_name = "kinopt_ros"
here = Path(__file__).parent

# The version stands in the package alone; importing that here would need its dependencies.
version = re.search(
    r'^__version__ = "(.+)"$', (here / package_name / "__init__.py").read_text("utf-8"), re.MULTILINE
)[1]

# ROS 2 Kilted as Python wheels, for machines without a ROS installation.
ros_wheels = [
    "ros-rclpy[fastrtps]==9.1.2",
    "ros-ament-index-python",
    "ros-diagnostic-msgs==5.5.1",
    "ros-geometry-msgs==5.5.1",
    "ros-rcl-interfaces==2.3.0",
    "ros-rosidl-default-runtime==1.7.1",
    "ros-sensor-msgs==5.5.1",
    "ros-shape-msgs==5.5.1",
    "ros-std-msgs==5.5.1",
    "ros-std-srvs==5.5.1",
    "ros-trajectory-msgs==5.5.1",
    "ros-visualization-msgs==5.5.1",
]

# ROS 2 Jazzy as Python wheels.
ros_jazzy_wheels = [
    "ros-rclpy[fastrtps]==7.1.6",
    "ros-ament-index-python==1.8.1",
    "ros-diagnostic-msgs==5.3.6",
    "ros-geometry-msgs==5.3.6",
    "ros-rcl-interfaces==2.0.3",
    "ros-rosidl-default-runtime==1.6.0",
    "ros-sensor-msgs==5.3.6",
    "ros-shape-msgs==5.3.6",
    "ros-std-msgs==5.3.6",
    "ros-std-srvs==5.3.6",
    "ros-trajectory-msgs==5.3.6",
    "ros-visualization-msgs==5.3.6",
]

# The plugin analytic.
analytic = ["eaik"]

# The plugin jax_lm and kinopt_ros.differentiable.
jax = ["jax>=0.8", "jaxlie>=1.5", "almond-jaxls>=0.1"]

# The plugin hjcd.
warp = ["warp-lang"]

# Collision checks: the judge, and meshes (COLLADA ones by pycollada, convex hulls by scipy).
collision = ["coal", "pycollada", "scipy", "trimesh"]

# Paths by sampling, where no optimization from straight lines gets through.
sampling = ["ompl"]

# The page of `kinopt view`.
view = ["viser>=1.0", *collision]

# What the tests need beyond pytest itself.
judges = ["example-robot-data", "pin", *collision]


def files_below(folder, pattern="*"):
    """Files that are installed with the package, if the folder exists."""
    return sorted(path for path in glob(os.path.join(folder, pattern)) if os.path.isfile(path))


setup(
    name=package_name,
    version=version,
    description=(
        "Turns poses into verified joint motion for any URDF robot: "
        "inverse kinematics and trajectories behind interchangeable solvers."
    ),
    long_description=(here / "README.md").read_text("utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    maintainer="kinopt_ros maintainers",
    maintainer_email="maintainers@kinopt.invalid",
    python_requires=">=3.11",
    packages=find_packages(include=[package_name, f"{package_name}.*"]),
    package_data={package_name: ["py.typed", "assets/*", "assets/**/*", "ros/client/this_machine/*.xml"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{package_name}"]),
        (f"share/{package_name}", ["package.xml"]),
        (f"share/{package_name}/launch", files_below("launch", "*.py")),
        (f"share/{package_name}/config", files_below("config", "*.yaml") + files_below("config", "*.rviz")),
    ],
    zip_safe=True,
    install_requires=[
        "numba",
        "numpy",
        "pyyaml",
        "rich",
        "ruckig",
        "transforms3d",
        "urdf-parser-py",
    ],
    extras_require={
        "ros": ros_wheels,
        "ros-jazzy": ros_jazzy_wheels,
        "plot": ["matplotlib"],
        "analytic": analytic,
        "jax": jax,
        "warp": warp,
        "collision": collision,
        "sampling": sampling,
        "view": view,
        "browser": ["pillow", "playwright"],
        "test": [
            "hypothesis",
            "matplotlib",
            "pytest",
            "pytest-timeout",
            "pytest-xdist",
            "setuptools",
            *analytic,
            *jax,
            *judges,
            *sampling,
            *view,
            *warp,
        ],
        "lint": ["mypy", "ruff", "types-PyYAML"],
        "docs": ["furo", "myst-parser", "sphinx"],
        "release": ["build", "twine"],
        "bench": [
            "matplotlib",
            *analytic,
            *jax,
            "pytracik",
            "roboticstoolbox-python",
            "rtb-data==2.0.0",
            *judges,
            *sampling,
            *warp,
        ],
    },
    entry_points={
        "console_scripts": [
            "kinopt = kinopt_ros.cli:main",
            "kinopt_node = kinopt_ros.ros.main:main",
            "kinopt_circles = kinopt_ros.ros.main:circles",
            "kinopt_simulated_robot = kinopt_ros.ros.main:simulated_robot",
        ],
        "kinopt_ros.costs": [
            "acceleration_limits = kinopt_ros.costs.acceleration_limits:AccelerationLimits",
            "alignment = kinopt_ros.costs.alignment:Alignment",
            "center_of_mass = kinopt_ros.costs.center_of_mass:CenterOfMass",
            "jerk_limits = kinopt_ros.costs.jerk_limits:JerkLimits",
            "least_acceleration = kinopt_ros.costs.smoothness:LeastAcceleration",
            "least_jerk = kinopt_ros.costs.smoothness:LeastJerk",
            "link_pose = kinopt_ros.costs.link_pose:LinkPose",
            "look_at = kinopt_ros.costs.look_at:LookAt",
            "manipulability = kinopt_ros.costs.manipulability:Manipulability",
            "position_limits = kinopt_ros.costs.position_limits:PositionLimits",
            "reference = kinopt_ros.costs.reference:Reference",
            "relative_pose = kinopt_ros.costs.relative_pose:RelativePose",
            "rest = kinopt_ros.costs.rest:Rest",
            "smoothness = kinopt_ros.costs.smoothness:Smoothness",
            "self_collision = kinopt_ros.costs.self_collision:SelfCollision",
            "swept_collision = kinopt_ros.costs.swept_collision:SweptCollision",
            "velocity_limits = kinopt_ros.costs.velocity_limits:VelocityLimits",
            "world_collision = kinopt_ros.costs.world_collision:WorldCollision",
        ],
        "kinopt_ros.solvers": [
            "analytic = kinopt_ros.solvers.analytic.plugin:AnalyticSolver",
            "cpu = kinopt_ros.solvers.cpu.plugin:CpuSolver",
            "hjcd = kinopt_ros.solvers.hjcd.plugin:HjcdSolver",
            "jax_lm = kinopt_ros.solvers.jax_lm.plugin:JaxLmSolver",
        ],
    },
)
