"""Plan of the elementary motions that lead to the links asked for (``robot.chain.joint_motions``), as one tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from kinopt_ros.robot.chain import JointMotion, joint_motions, joints_between
from kinopt_ros.robot.model import Joint, RobotModel


@dataclass(frozen=True)
class Step:
    """Step from one frame to the next: a joint's origin, unless it came before, and one elementary motion of it."""

    parent: int
    """Number of the frame that it starts from."""
    joint: Joint
    index: int
    """Index of the joint in ``robot.joints``."""
    part: int
    """Which of the joint's motions this is; the origin comes before the first one."""
    motion: JointMotion | None
    """Motion of the step; None for a fixed joint."""


@dataclass(frozen=True)
class FramePlan:
    """Tree of frames. Frame 0 is that of the link where all paths meet; frame k + 1 is the one behind step k."""

    steps: tuple[Step, ...]
    links: tuple[int, ...]
    """Frames of the links asked for."""
    base: int
    """Frame of the base link."""
    num_joints: int
    nq: int

    def path(self, frame: int) -> list[int]:
        """Return the steps from frame 0 to a frame."""
        steps = []
        while frame:
            steps.append(frame - 1)
            frame = self.steps[frame - 1].parent
        return steps[::-1]


def plan_frames(robot: RobotModel, links: Sequence[str], base_link: str) -> FramePlan:
    """Plan the frames of some links and a base link.

    Raises:
        UnknownLinkError: a link that the robot does not have.
    """
    above = [joints_between(robot, robot.root_link, link)[1] for link in (base_link, *links)]
    common = 0
    while all(len(path) > common and path[common] is above[0][common] for path in above):
        common += 1
    needed = {joint.name for path in above for joint in path[common:]}
    frame = {above[0][common - 1].child_link if common else robot.root_link: 0}
    steps: list[Step] = []
    for index, joint in enumerate(robot.joints):
        if joint.name not in needed:
            continue
        parent = frame[joint.parent_link]
        for part, motion in enumerate(joint_motions(joint) or (None,)):
            steps.append(Step(parent, joint, index, part, motion))
            parent = len(steps)
        frame[joint.child_link] = parent
    return FramePlan(
        steps=tuple(steps),
        links=tuple(frame[link] for link in links),
        base=frame[base_link],
        num_joints=len(robot.joints),
        nq=robot.nq,
    )
