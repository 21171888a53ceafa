"""Brakes from where a robot is measured, which a controller gets some time after that."""

import numpy as np
import pytest

from kinopt_ros.planning.servo.brake import brake_on_the_way
from kinopt_ros.planning.servo.setup import servo_setup
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.trajectory.interpolation import evaluate
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory

PANDA = load_robot("panda")
JOINTS = tuple(f"panda_joint{i + 1}" for i in range(7))
READY = np.array([0.0, -0.7, 0.0, -2.0, 0.0, 1.5, 0.7])
SPENT = (0.0, 0.5, 1.0)
"""Shares of the longest way that a brake is on its way."""


@pytest.mark.parametrize("speed", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("way", [0.0, 0.03, 0.1])
def test_a_brake_keeps_the_limits_whenever_it_comes(speed: float, way: float) -> None:
    setup = servo_setup(PANDA, PANDA.root_link, PANDA.root_link, JOINTS)
    velocity = np.zeros(7)
    velocity[0] = speed
    brake = brake_on_the_way(setup, READY, velocity, way)
    end, still = brake.position[-1], np.zeros(7)
    for spent in SPENT:
        # A controller goes to the end from wherever it has the joints.
        begun = READY + spent * way * velocity
        motion = JointTrajectory(
            JOINTS, brake.time, np.array([begun, end]), np.array([velocity, still]), np.array([still, still])
        )
        _, velocities, accelerations = evaluate(motion, np.linspace(0.0, brake.duration, 401))
        assert (np.abs(velocities) <= 1.02 * setup.unscaled.velocity).all()
        assert (np.abs(accelerations) <= 1.02 * setup.unscaled.acceleration).all()
