"""Translation of our status codes to MoveIt's error codes."""

from typing import Any

from kinopt_ros.status import Status

SOURCE = "kinopt"

MOVEIT_CODES = {
    Status.SUCCESS: 1,
    Status.FAILURE: 99999,
    Status.PLANNING_FAILED: -1,
    Status.VERIFICATION_FAILED: -2,  # INVALID_MOTION_PLAN
    Status.ENVIRONMENT_CHANGED: -3,  # MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE
    Status.CONTROL_FAILED: -4,
    Status.TIMED_OUT: -6,
    Status.PREEMPTED: -7,
    Status.START_STATE_IN_COLLISION: -10,
    Status.START_STATE_VIOLATES_PATH_CONSTRAINTS: -11,
    Status.GOAL_IN_COLLISION: -12,
    Status.GOAL_VIOLATES_PATH_CONSTRAINTS: -13,
    Status.INVALID_GROUP_NAME: -15,
    Status.INVALID_GOAL_CONSTRAINTS: -16,
    Status.INVALID_ROBOT_STATE: -17,
    Status.INVALID_JOINT_NAME: -17,  # a state that names such a joint
    Status.INVALID_LINK_NAME: -18,
    Status.INVALID_OBJECT_NAME: -19,
    Status.FRAME_TRANSFORM_FAILURE: -21,
    Status.ROBOT_STATE_STALE: -23,
    Status.START_STATE_INVALID: -26,
    Status.NO_IK_SOLUTION: -31,
}
"""Values of moveit_msgs/MoveItErrorCodes by ours. What is not listed has no counterpart there and is a FAILURE."""


def fill_error_code(message: Any, status: Any) -> None:
    """Write a kinopt_msgs/Status into moveit_msgs/MoveItErrorCodes: a sentence, too, where the distribution has room
    for it. It begins with the name of our code if MoveIt has none for it."""
    code = Status(status.code)
    sentence = status.message if code in MOVEIT_CODES else f"{code.name}: {status.message}"
    say(message, MOVEIT_CODES.get(code, MOVEIT_CODES[Status.FAILURE]), sentence)


def say(message: Any, code: int, sentence: str) -> None:
    """Write a code and a sentence into moveit_msgs/MoveItErrorCodes."""
    message.val = code
    if hasattr(message, "message"):  # not in Humble
        message.message, message.source = sentence, SOURCE
