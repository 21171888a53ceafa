"""Outcome codes. Values from 1 to -31 and 99999 are those of moveit_msgs/MoveItErrorCodes."""

from enum import IntEnum


class Status(IntEnum):
    """Outcome of a request or of one target of it; kinopt_msgs/Status carries the same numbers."""

    SUCCESS = 1
    FAILURE = 99999
    PLANNING_FAILED = -1
    ENVIRONMENT_CHANGED = -3
    TIMED_OUT = -6
    PREEMPTED = -7
    START_STATE_IN_COLLISION = -10
    GOAL_IN_COLLISION = -12
    INVALID_GROUP_NAME = -15
    INVALID_GOAL_CONSTRAINTS = -16
    INVALID_ROBOT_STATE = -17
    INVALID_LINK_NAME = -18
    INVALID_OBJECT_NAME = -20
    FRAME_TRANSFORM_FAILURE = -21
    ROBOT_STATE_STALE = -23
    START_STATE_INVALID = -26
    NO_IK_SOLUTION = -31
    INVALID_REQUEST = -1001
    INVALID_JOINT_NAME = -1002
    INVALID_ROBOT_DESCRIPTION = -1003
    UNKNOWN_SOLVER = -1004
    SOLVER_UNAVAILABLE = -1005
    UNSUPPORTED_FEATURE = -1006
    NOT_READY = -1007
    VERIFICATION_FAILED = -1008
    QUEUE_FULL = -1009
    INVALID_SCENE = -1010
