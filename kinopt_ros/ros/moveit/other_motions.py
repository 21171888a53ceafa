"""Motions that run while another one is planned for other joints: these count as standing where they are measured.

That is what is planned around. Before a motion is sent, it is checked against all that is left of those
(``ros/motion/beside.py``).
"""

from sensor_msgs.msg import JointState

from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.motion.output import MotionOutput


class OtherMotions:
    """Motions that a node has sent."""

    def __init__(self, context: Context, output: MotionOutput) -> None:
        """
        Args:
            context: the node's.
            output: what motions are sent through.
        """
        self._context = context
        self._output = output

    def stand_still(self, state: JointState, group: str) -> None:
        """Complete the state from which a group is to move by the joints of other motions, at rest where they are."""
        robot = self._context.loaded.model
        now = self._context.now()
        joints = robot.group(self._context.group_name(robot, group)).joints
        own = set(one_variable_each(robot, [name for name in joints if robot.joint(name).is_active]))
        measured = self._context.joint_states.of(robot)
        running = [
            name
            for one in self._output.published
            if one.runs(now) and one.robot is robot and own.isdisjoint(one.message.joint_names)
            for name in one.message.joint_names
            if name not in state.name and measured.known[robot.variable_index[name]]
        ]
        if not running:
            return
        still = [0.0] * len(running)
        state.velocity = [*(state.velocity or [0.0] * len(state.name)), *still]
        state.name = [*state.name, *running]
        state.position = [*state.position, *(float(measured.q[robot.variable_index[n]]) for n in running)]
