"""A client of MoveIt's interfaces in rclpy: inverse kinematics for a pose, and a motion to what it found.

python examples/moveit_client.py 0.4 0.1 0.5       # x y z of the tip, m; it points down

It finds move_group, or kinopt_ros in its place: nothing here knows which.
"""

import sys

import rclpy
from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import Constraints, JointConstraint
from moveit_msgs.srv import GetPositionIK
from rclpy.action import ActionClient

GROUP, FRAME = "panda_arm", "panda_link0"
JOINTS = [f"panda_joint{i}" for i in range(1, 8)]
"""The group's: answers of compute_ik name all joints of the robot, a goal may name these alone."""
SECONDS = 60.0
"""Longest time to wait for a server, s."""


def main(place: list[float]) -> int:
    """Ask, move, say what came of it."""
    rclpy.init()
    node = rclpy.create_node("moveit_client")
    ik = node.create_client(GetPositionIK, "compute_ik")
    move = ActionClient(node, MoveGroup, "move_action")
    try:
        if not (ik.wait_for_service(SECONDS) and move.wait_for_server(SECONDS)):
            print("compute_ik or move_action is not there", file=sys.stderr)
            return 1

        request = GetPositionIK.Request()
        asked = request.ik_request
        asked.group_name, asked.avoid_collisions = GROUP, True
        asked.timeout.sec = 5  # without one, that of kinematics.yaml counts, often 0.05 s
        asked.pose_stamped.header.frame_id = FRAME
        pose = asked.pose_stamped.pose
        pose.position.x, pose.position.y, pose.position.z = place
        pose.orientation.x, pose.orientation.w = 1.0, 0.0
        answer = waited_for(node, ik.call_async(request))
        if answer.error_code.val != answer.error_code.SUCCESS:
            print(f"{answer.error_code.val}: {answer.error_code.message}", file=sys.stderr)
            return 1

        state = answer.solution.joint_state
        found = dict(zip(state.name, state.position, strict=True))
        goal = MoveGroup.Goal()
        plan = goal.request
        plan.group_name, plan.allowed_planning_time = GROUP, 10.0
        plan.max_velocity_scaling_factor = plan.max_acceleration_scaling_factor = 0.3
        constraints = [
            JointConstraint(
                joint_name=name, position=found[name], tolerance_above=1e-3, tolerance_below=1e-3, weight=1.0
            )
            for name in JOINTS
        ]
        plan.goal_constraints = [Constraints(joint_constraints=constraints)]
        handle = waited_for(node, move.send_goal_async(goal))
        result = waited_for(node, handle.get_result_async()).result
        print(f"{result.error_code.val}: {result.error_code.message or 'done'}")
        return 0 if result.error_code.val == result.error_code.SUCCESS else 1
    finally:
        move.destroy()
        node.destroy_node()
        rclpy.try_shutdown()


def waited_for(node, future):
    """Return what comes of a future."""
    rclpy.spin_until_future_complete(node, future)
    return future.result()


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main([float(word) for word in sys.argv[1:]]))
