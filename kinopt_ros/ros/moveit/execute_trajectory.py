"""execute_trajectory: a trajectory in, checked and then done by the controllers."""

from __future__ import annotations  # rclpy of Jazzy has classes that are not generic at run time

from typing import Any

from moveit_msgs.action import ExecuteTrajectory
from moveit_msgs.msg import MoveItErrorCodes, RobotTrajectory

from kinopt_ros.ros.moveit.given_trajectory import check_begin, check_numbers, given_joints
from kinopt_ros.ros.moveit.moving_goals import MoveItActions, MovingGoal, error_code
from kinopt_ros.ros.serving.kept_goals import KeptGoals

NAME = "execute_trajectory"


def offer_execute_trajectory(actions: MoveItActions) -> None:
    """Offer the action."""

    def make(goals: KeptGoals[MovingGoal], handle: Any) -> ExecuteTrajectoryGoal:
        return ExecuteTrajectoryGoal(actions, goals, handle, ExecuteTrajectory)

    actions.add(ExecuteTrajectory, NAME, make)


class ExecuteTrajectoryGoal(MovingGoal):
    """A goal of moveit_msgs/ExecuteTrajectory. It ends when the motion does; one that is cancelled brakes."""

    def read(self) -> None:
        """Refuse what is no motion."""
        self._joints = given_joints(self.handle.request.trajectory, self.context.loaded.model)

    def work(self) -> MoveItErrorCodes:
        """Check the trajectory as it is, and have it done."""
        request = self.handle.request
        # Who watches the motion needs it longer than the goal, whose request is emptied at its end.
        motion, request.trajectory = request.trajectory.joint_trajectory, RobotTrajectory()
        names = getattr(request, "controller_names", ())  # Humble's goals name none
        check_numbers(self.context, motion)  # before a motion that runs is ended for it
        claim = self.claim(self._joints, names, lambda: check_begin(self.context, motion))
        try:
            return error_code(self.execute(claim, motion, names))
        finally:
            claim.give_up()
