"""Brakes for controllers that were told to stop a motion for an emergency, or at the end of the node, and do not.

Some refuse that, or take long, or say that they stop and go on; but they do what comes next.
"""

import time
from collections.abc import Callable, Sequence

from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

from kinopt_ros.ros.context import Context
from kinopt_ros.ros.motion.brakes import brake_of
from kinopt_ros.ros.motion.controllers import SeveralExecutions
from kinopt_ros.ros.motion.output import from_anywhere
from kinopt_ros.ros.motion.own_pace import of_joints
from kinopt_ros.ros.motion.paces import Paces
from kinopt_ros.ros.motion.published import LOOK_SECONDS, Published

STOPS_SECONDS, WATCHED_SECONDS = 0.2, 2.2
"""Time until a controller has to have said that it stops, else it is sent a brake, and for how long it is looked at,
s."""


def brake_unless_it_stops(
    context: Context, execution: SeveralExecutions, running: Published, is_last: Callable[[], bool]
) -> None:
    """Send brakes to controllers that do not stop. Takes as long as they need to end the motion, or to get a brake.

    Where nobody says where the robot is, nobody knows whether it stands already; then nothing is sent.

    Args:
        context: the node's.
        execution: what they make of the motion.
        running: the motion.
        is_last: whether no other motion has taken its place.
    """
    robot = running.robot
    told = time.monotonic()
    paces = Paces(robot, context.joint_states.of(robot), context.now())

    def brake(joints: Sequence[str]) -> TrajectoryMessage | None:
        state, index = context.joint_states.of(robot), [robot.variable_index[name] for name in joints]
        if not state.known[index].all() or state.age[index].max() > context.parameter("servo.state_timeout"):
            return None
        # Joints that stand already would have the others seem to be beside their motion.
        made = brake_of(context, of_joints(running, joints))
        return from_anywhere(made) if made.points else None

    def goes_on(joints: Sequence[str]) -> bool:
        return paces.are_kept(joints, context.joint_states.of(robot), context.now())

    log = context.node.get_logger()

    def ended(done: bool, sentence: str) -> None:
        if not done:
            log.error(f"a brake was not done: {sentence}")

    while not execution.settled and (passed := time.monotonic() - told) <= WATCHED_SECONDS:
        if not is_last() or not running.runs(context.now()):
            return
        paces.look(context.joint_states.of(robot), context.now())
        braked = execution.brake_rest(brake, goes_on, ended) if passed > STOPS_SECONDS else ()
        if braked:
            names = " and ".join(f"the controller {name}" for name in braked)
            log.error(f"{names} did not stop the motion within {passed:.1f} s, and was sent a brake")
        time.sleep(LOOK_SECONDS)
