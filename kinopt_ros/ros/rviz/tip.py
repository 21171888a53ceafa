"""The marker of one tip: a target that is dragged, the ghost that reaches it, the plan to the ghost."""

import textwrap
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

import numpy as np
from geometry_msgs.msg import Pose
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import InteractiveMarker, Marker, MenuEntry

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_msgs.srv import PlanTrajectory, SolveIK
from kinopt_ros.array import Float64
from kinopt_ros.errors import InvalidRequestError, cut, quoted
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.problems.chains import resolve_joints
from kinopt_ros.problems.validation import variables_of_joints
from kinopt_ros.robot.variables import one_variable_each
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import poses_from_matrices, trajectory_from_message
from kinopt_ros.ros.messages.marker_shapes import color
from kinopt_ros.ros.messages.robot_markers import (
    RobotDrawing,
    carried_markers,
    manipulability_marker,
    text_marker,
    way_markers,
)
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.ros.robot.marker_tips import Mode
from kinopt_ros.ros.robot.tips import tip_of
from kinopt_ros.ros.rviz.asking import Asking
from kinopt_ros.ros.rviz.controls import tip_marker
from kinopt_ros.ros.rviz.display import Display
from kinopt_ros.ros.rviz.drawing import Drawing
from kinopt_ros.ros.rviz.execution import ShownMotion
from kinopt_ros.status import Status

PERIOD = 0.015
"""Least time between two solves of one tip, s: poses come at 30 to 60 Hz, and faster from programs."""
TRIES = 100
"""Random configurations that are looked at for one that is free of collisions."""
FOLLOWED = 1e-3
"""Movement of a joint after which a target that nobody has touched is put where the robot has the tip, rad or m."""
SNAPSHOTS = 6
"""Configurations of a plan in which the robot is drawn."""
LINE = 60
"""Longest line of a text, characters."""
GHOST, STATE, NONE = color(0.25, 0.8, 0.35, 0.5), color(0.3, 0.55, 0.95, 0.5), color(0.9, 0.15, 0.1, 0.45)
TARGET, WAY, ON_THE_WAY = color(1.0, 0.6, 0.1, 0.6), color(1.0, 0.85, 0.1, 1.0), color(1.0, 0.85, 0.3, 0.15)
ELLIPSOID = color(0.2, 0.6, 1.0, 0.35)
SAID, WRONG = color(1.0, 1.0, 1.0, 1.0), color(1.0, 0.3, 0.2, 1.0)
PLAN = ("way", "on_the_way")
ALL = ("ghost", "text", "manipulability", *PLAN)
"""Kinds of markers that are drawn of a plan, and of a tip in all."""


@dataclass
class Settings:
    """What all markers of the node have in common."""

    avoid: bool
    """Whether solutions and plans are to be free of collisions."""
    solver: str = ""
    """Solver for inverse kinematics; empty: as the parameters say."""


@dataclass(frozen=True, eq=False)
class Bench:
    """What markers of tips work with."""

    context: Context
    settings: Settings
    drawing: Drawing
    solving: Asking
    planning: Asking
    display: Display
    """Shows a plan as MoveIt's users know it."""
    say: Callable[[str], None]
    """Logs a sentence, not too often."""


class TipMarker:
    """One tip. Dragging it moves nothing but the ghost. Thread-safe."""

    def __init__(
        self, bench: Bench, loaded: LoadedRobot, name: str, group: str, mode: Mode, look: RobotDrawing
    ) -> None:
        """
        Args:
            bench: what it works with.
            loaded: the robot.
            name: of the tip: a link, a tool frame or an attached object.
            group: whose joints move it; empty: all joints between the root link and it.
            mode: what of its pose counts.
            look: draws the robot.

        Raises:
            KinoptError: there is no such tip, or no joint moves it.
        """
        self._bench = bench
        self.loaded = loaded
        self.name, self.group, self.mode = name, group, mode
        self._look = look
        robot = loaded.model
        self._tip = tip_of(bench.context, robot, name)
        links = (self._tip.link,)
        self._base, _, joints = resolve_joints(robot, group or None, None, links, (), (), ())
        self.joints = one_variable_each(robot, joints)
        q = bench.context.joint_states.of(robot).q
        self._body = carried_markers(robot, self._tip, q, TARGET)
        # Held while something is drawn, too: an answer that does not matter any more must not be drawn afterwards.
        self._lock = threading.Lock()
        self._pose = self._pose_at(q)
        self._wanted = self._solving = self._plan_wanted = self._planning = self._closed = False
        self._outdated = False
        """Whether scene or settings have changed since the plan was asked for that is being made."""
        self._began = -PERIOD
        self._ghost: Annotated[Float64, "nq"] | None = None
        """Configuration that reaches the target; None: there is none, or it is not known yet."""
        self._seed: list[float] = []
        self._followed: Annotated[Float64, "nq"] | None = None
        """Configuration of the robot when the target was put where that has the tip."""
        self._touched = self._exact = False
        """Whether somebody has asked for a ghost, and whether its configuration was chosen, not solved for."""
        self._chosen = 0
        """Number of times that ghost or target were put elsewhere: what was asked before does not matter."""
        self.changes = 0
        """Number of times that somebody put the target elsewhere: what takes longer must not undo it."""
        self._draws = 0
        self.motion: ShownMotion | None = None
        """The plan that is shown."""

    def message(self, menu: Sequence[MenuEntry], scale: float) -> InteractiveMarker:
        """Return its interactive marker with a menu."""
        frame, kept = self.loaded.model.root_link, self._pose
        return tip_marker(f"tip/{self.name}", self.name, frame, kept, self.mode, scale, self._body, menu)

    @property
    def states(self) -> list[str]:
        """Names of the states that the description gives its group."""
        return list(self.loaded.model.groups[self.group].states) if self.group else []

    @property
    def pose(self) -> Pose:
        """Where its target is, in the frame of the root link."""
        return self._pose

    def close(self) -> None:
        """Ask nothing and draw nothing any more."""
        with self._lock:
            self._wanted = self._plan_wanted = False
            self._draw(dict.fromkeys(ALL, ()))
            self._closed = True

    # On the executor's thread.

    def move(self, pose: Pose) -> None:
        """Solve for another target; of those that come meanwhile the newest counts."""
        with self._lock:
            self._pose = pose
            self._drop_plan("solving ...")
            self._plan_wanted = False
            self.changes += 1
        self.solve()

    def solve(self) -> None:
        """Solve for the target anew."""
        with self._lock:
            self._ghost = None
            self._touched, self._wanted, self._exact = True, True, False
        self.go_on()

    def go_on_later(self, look: RobotDrawing | None = None) -> None:
        """Solve anew if a target was set, and plan anew if there is a plan, when ``go_on`` is called next: the scene
        has changed, or what is wanted. A configuration that was chosen stays, and is planned to anew. On any thread.

        Args:
            look: draws the robot from now on; None: as before.
        """
        with self._lock:
            self._look = look or self._look
            if not self._touched or self._closed:
                return
            self._outdated = True
            self._plan_wanted |= self._drop_plan("another scene, or another setting: planning again ...")
            self._plan_wanted |= self._planning
            if not self._exact:
                self._ghost, self._wanted = None, True

    def follow(self) -> bool:
        """Put a target that nobody has touched yet where the robot has the tip; return whether it is elsewhere now."""
        with self._lock:
            if self._touched:
                return False
            q = self._measured()
            if self._followed is not None and np.abs(q - self._followed).max() < FOLLOWED:
                return False
            self._pose, self._followed = self._pose_at(q), q
        return True

    def plan(self) -> None:
        """Plan to the ghost, as soon as there is one."""
        with self._lock:
            first = not self._touched
            if not (first or self._wanted or self._solving or self._ghost is not None):
                raise InvalidRequestError(
                    f"the target of {quoted(self.name)} has no solution: drag it, and plan when the ghost is green"
                )
            self._plan_wanted = True
            ghost = self._to_plan_to()
        if ghost is not None:
            self._plan(ghost)
        elif first:
            self.solve()

    def go_on(self) -> bool:
        """Solve, or plan, if that is wanted and it is time; return whether it is still wanted, or being solved."""
        with self._lock:
            now = time.monotonic()
            begin = self._wanted and not self._solving and now >= self._began + PERIOD and not self._closed
            again = self._to_plan_to()
            if begin:
                self._wanted, self._solving, self._began = False, True, now
            pose, seed, chosen = self._pose, list(self._seed), self._chosen
        if begin:
            settings = self._bench.settings
            request = SolveIK.Request(
                group=self.group,
                tip_link=self.name,
                poses=[pose],
                free_axes=self.mode.free_axes,
                avoid_collisions=settings.avoid,
                solver=settings.solver,
                seeds=seed,
            )
            request.header.frame_id = self.loaded.model.root_link
            self._bench.solving.ask(request, lambda answer, asked: self._solved(answer, asked, chosen))
        if again is not None:
            self._plan(again)
        return self._wanted or self._solving or self._plan_wanted

    def go_to_state(self, word: str) -> None:
        """Put ghost and target where a named state has them.

        Raises:
            KinoptError: there is no such state.
        """
        if word not in self.states:
            raise InvalidRequestError(f"unknown state {quoted(word)} of group {self.group!r}")
        robot = self.loaded.model
        q = self._measured()
        for name, value in robot.groups[self.group].states[word].items():
            q[robot.variable_index[name]] = value
        self._show(q, STATE, word)

    def reset(self) -> None:
        """Put the target where the robot has the tip, and take ghost and plan away."""
        with self._lock:
            self._pose = self._pose_at(self._measured())
            self._touched = self._wanted = self._plan_wanted = self._exact = False
            self._chosen += 1
            self.changes += 1
            self._ghost, self._seed, self.motion, self._followed = None, [], None, None
            self._draw(dict.fromkeys(ALL, ()))

    # On any thread.

    def go_anywhere(self, changes: int) -> None:
        """Put ghost and target where a random configuration has them, one that is free of collisions if these matter.

        Args:
            changes: ``self.changes`` when this was asked for; nothing is done if the target was put elsewhere since.

        Raises:
            KinoptError: none was found, or nobody can say.
        """
        from kinopt_ros.verification.collision import check_collisions

        context, robot, avoid = self._bench.context, self.loaded.model, self._bench.settings.avoid
        if avoid:
            self.loaded.pool.check_prepared(True, False)
        own = variables_of_joints(robot, self.joints)
        self._draws += 1
        for random in random_configurations(robot, TRIES, self._draws):
            q = self._measured()
            q[own] = random[own]
            clearance = context.parameter("ik.clearance")
            scene = context.scene.of(robot)
            if not avoid or check_collisions(robot, scene, q[None], clearance, contacts=False).free[0]:
                self._show(q, STATE, "a random configuration", changes)
                return
        raise InvalidRequestError(
            f"none of {TRIES} random configurations is free of collisions: is the robot, or what it stands on, in one?"
        )

    def take_motion(self) -> ShownMotion | None:
        """Return the plan that is shown, to be executed; it is shown, but executed only once."""
        with self._lock:
            taken, self.motion = self.motion, None
        return taken

    def show_text(self, sentence: str, good: bool) -> None:
        """Show a sentence at the target."""
        with self._lock:
            self._draw({"text": self._text(sentence, SAID if good else WRONG)})

    def _solved(self, answer: Any, asked: Any, chosen: int) -> None:
        """Draw an answer, unless it does not matter any more; ``go_on`` plans, if that was wanted."""
        try:
            self._take_solution(answer, asked, chosen)
        except Exception:  # the next one counts
            with self._lock:
                self._solving = False
            raise

    def _take_solution(self, answer: Any, asked: Any, chosen: int) -> None:
        good = answer.status.code == Status.SUCCESS
        q: Annotated[Float64, "nq"] | None = None
        numbers = answer.positions if good else answer.attempts
        if asked is not None and len(numbers) and np.isfinite(numbers).all():
            q = asked.problem.state[0].copy()
            q[asked.problem.variables] = numbers
        sentence = "" if good else f"{Status(answer.status.code).name}: {answer.status.message}"
        drawn = (
            self._ghost_drawn(q, GHOST, self._measure(answer), SAID)
            if good
            else self._ghost_drawn(q, NONE, sentence, WRONG)
        )
        with self._lock:
            self._solving = False
            if chosen != self._chosen:
                return
            newest = not self._wanted
            if good:
                self._seed = list(answer.positions)
                self._ghost = q if newest else None
            elif newest:
                self._plan_wanted = False
            self.motion = None  # it led to another one
            self._draw(drawn)
        if not good:
            self._bench.say(f"{self.name}: {sentence}")

    @staticmethod
    def _measure(answer: Any) -> str:
        """Return the figures of a solution in a line."""
        p, r = answer.position_errors[0], answer.orientation_errors[0]
        return f"{answer.solver_used}, {1e3 * answer.solve_time:.1f} ms, {p:.1e} m, {r:.1e} rad"

    def _show(
        self, q: Annotated[Float64, "nq"], painted: ColorRGBA, title: str, changes: int | None = None
    ) -> None:
        """Make a configuration the ghost, and its tip's pose the target, unless there were other changes since."""
        pose = self._pose_at(q)
        drawn = self._ghost_drawn(q, painted, title, SAID, pose)
        with self._lock:
            if changes not in (None, self.changes):
                return
            self._pose = pose
            self.changes += 1
            self._ghost, self._touched, self._wanted, self._plan_wanted = q, True, False, False
            self._exact, self._chosen = True, self._chosen + 1
            self._seed = q[variables_of_joints(self.loaded.model, self.joints)].tolist()
            self.motion = None  # it led to another one
            self._draw(drawn)

    def _ghost_drawn(
        self,
        q: Annotated[Float64, "nq"] | None,
        painted: ColorRGBA,
        sentence: str,
        of_text: ColorRGBA,
        pose: Pose | None = None,
    ) -> dict[str, Sequence[Marker]]:
        """Return all that is drawn of a target: a ghost, if there is one, a sentence, and no plan."""
        drawn = dict.fromkeys(ALL, cast(Sequence[Marker], ()))
        if q is not None:
            drawn["ghost"] = self._look.markers(q, painted)
            robot = self.loaded.model
            drawn["manipulability"] = [manipulability_marker(robot, self._base, self._tip, q, ELLIPSOID)]
        drawn["text"] = self._text(sentence, of_text, pose)
        return drawn

    def _text(self, sentence: str, painted: ColorRGBA, pose: Pose | None = None) -> list[Marker]:
        p = (pose or self._pose).position
        at = np.array([p.x, p.y, p.z + 0.15])
        return [text_marker(self.loaded.model.root_link, at, folded(sentence), 0.03, painted)]

    def _to_plan_to(self) -> Annotated[Float64, "nq"] | None:
        """Return the ghost, if it is to be planned to now. The lock is held."""
        busy = self._wanted or self._solving or self._planning or self._closed
        return self._ghost if self._plan_wanted and not busy else None

    def _plan(self, ghost: Annotated[Float64, "nq"]) -> None:
        """Ask for a motion from where the robot is to the ghost."""
        robot, state = self.loaded.model, self._bench.context.joint_states.of(self.loaded.model)
        with self._lock:
            if self._planning or self._ghost is not ghost:
                return
            self._planning, self._plan_wanted, self._outdated = True, False, False
            self._draw({"text": self._text("planning ...", SAID)})
        avoid = self._bench.settings.avoid
        index = [robot.variable_index[name] for name in self.joints]
        request = PlanTrajectory.Request(
            group=self.group,
            tip_link="" if self.group else self.name,
            joint_goals=[JointState(name=list(self.joints), position=ghost[index].tolist())],
            ignore_collisions=not avoid,
        )
        known = [i for i in index if state.known[i]]
        # At rest: what is measured of joints that stand is never quite 0, and a motion that begins otherwise is not
        # sent.
        request.state = JointState(
            name=[robot.variable_names[i] for i in known],
            position=state.q[known].tolist(),
            velocity=[0.0] * len(known),
        )

        def planned(answer: Any, asked: Any) -> None:
            try:
                self._take_plan(answer, asked, ghost)
            except Exception:  # as above
                with self._lock:
                    self._planning = False
                raise

        self._bench.planning.ask(request, planned)

    def _take_plan(self, answer: Any, asked: Any, ghost: Annotated[Float64, "nq"]) -> None:
        """Draw a plan to a ghost, unless it does not matter any more; ``go_on`` plans anew, if that is wanted."""
        motion: ShownMotion | None = None
        if answer.status.code == Status.SUCCESS:
            motion = ShownMotion(answer.trajectory, asked)
            sentence, drawn = "", self._plan_drawn(motion)
        else:
            sentence = f"no plan: {Status(answer.status.code).name}: {answer.status.message}"
            drawn = {**dict.fromkeys(PLAN, ()), "text": self._text(sentence, WRONG)}  # nor the one before
        with self._lock:
            self._planning = False
            if self._ghost is not ghost or self._outdated or self._closed:
                return  # another target by now, another scene, or the menu asks for another kind of plan
            self.motion, self._plan_wanted = motion, False
            self._draw(drawn)
        if motion is None:
            self._bench.say(f"{self.name}: {sentence}")
        else:
            self._bench.display(self.loaded.model, motion.message, motion.asked.problem.start)

    def _plan_drawn(self, motion: ShownMotion) -> dict[str, Sequence[Marker]]:
        """Return what is drawn of a plan."""
        robot, start = self.loaded.model, motion.asked.problem.start
        trajectory = trajectory_from_message(motion.message)
        q = np.repeat(start[None], len(trajectory.time), axis=0)
        q[:, [robot.variable_index[name] for name in trajectory.joint_names]] = trajectory.position
        some = np.unique(np.linspace(0, len(q) - 1, SNAPSHOTS + 2).astype(int))[1:-1]
        return {
            "way": way_markers(robot, self._tip, q, WAY),
            "on_the_way": [marker for row in q[some] for marker in self._look.markers(row, ON_THE_WAY)],
            "text": self._text(f"planned: {trajectory.duration:.2f} s; the menu executes it", SAID),
        }

    def ended(self, status: StatusMsg) -> None:
        """Show how the execution ended."""
        good = status.code == Status.SUCCESS
        said = self._text(
            "done" if good else f"{Status(status.code).name}: {status.message}", SAID if good else WRONG
        )
        with self._lock:
            # A plan that was made meanwhile stays.
            self._draw(
                {"text": said} if self.motion is not None else {**dict.fromkeys(PLAN, ()), "text": said}
            )

    def _drop_plan(self, sentence: str) -> bool:
        """Take the plan away, if there is one, with its way, and say something in the place of what offers it; return
        whether there was one. The lock is held."""
        if self.motion is None:
            return False
        self.motion = None
        self._draw({**dict.fromkeys(PLAN, ()), "text": self._text(sentence, SAID)})
        return True

    def _draw(self, drawn: Mapping[str, Sequence[Marker]]) -> None:
        """Draw some kinds. The lock is held."""
        if not self._closed:
            self._bench.drawing.draw({f"{kind}/{self.name}": markers for kind, markers in drawn.items()})

    def _measured(self) -> Annotated[Float64, "nq"]:
        return self._bench.context.joint_states.of(self.loaded.model).q.copy()

    def _pose_at(self, q: Annotated[Float64, "nq"]) -> Pose:
        T = forward_kinematics(self.loaded.model, q, links=(self._tip.link,))
        return poses_from_matrices(T if self._tip.T_link_tip is None else T @ self._tip.T_link_tip)[0]


def folded(sentence: str) -> str:
    """Return a sentence in lines that can be read, cut if it is long."""
    return textwrap.fill(cut(sentence, 5 * LINE), LINE)
