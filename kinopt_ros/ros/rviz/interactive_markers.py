"""~/interactive_markers: targets and obstacles that are dragged in rviz, with menus to plan and execute.

Dragging solves, and shows a ghost on ~/markers; it moves nothing. "execute" moves the robot along the plan that is
shown, through the gate that all motions go through.
"""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from visualization_msgs.msg import InteractiveMarkerFeedback, InteractiveMarkerUpdate
from visualization_msgs.srv import GetInteractiveMarkers

from kinopt_msgs.msg import MotionReport, ServoStatus
from kinopt_msgs.msg import Status as StatusMsg
from kinopt_msgs.srv import PlanTrajectory, SolveIK
from kinopt_ros.errors import InvalidRequestError, KinoptError, quoted
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.planning.scheduler import CallTask, Scheduler, Task
from kinopt_ros.robot.silence import silence
from kinopt_ros.ros.context import Context
from kinopt_ros.ros.messages.conversions import error_message
from kinopt_ros.ros.messages.robot_markers import robot_drawing, text_marker
from kinopt_ros.ros.messages.stamps import seconds_unread
from kinopt_ros.ros.motion.controllers import Controllers
from kinopt_ros.ros.motion.output import MotionOutput
from kinopt_ros.ros.robot.loader import LoadedRobot
from kinopt_ros.ros.robot.marker_tips import Mode, chosen_tips
from kinopt_ros.ros.rviz.asking import CLIENT, Asking
from kinopt_ros.ros.rviz.display import offered_display
from kinopt_ros.ros.rviz.drawing import Drawing
from kinopt_ros.ros.rviz.execution import Executions
from kinopt_ros.ros.rviz.menu import Action, Asked, Entry, menu_of
from kinopt_ros.ros.rviz.objects import PREFIX, ObjectMarkers
from kinopt_ros.ros.rviz.server import MarkerServer
from kinopt_ros.ros.rviz.tip import WRONG, Bench, Settings, TipMarker, folded
from kinopt_ros.ros.serving.defects import error_status, log_defect
from kinopt_ros.ros.serving.newcomers import listeners_of
from kinopt_ros.ros.serving.reply import Reply
from kinopt_ros.ros.serving.serving import Serving
from kinopt_ros.ros.topics.scene_update import SceneUpdateTopic
from kinopt_ros.scene.scene import Scene
from kinopt_ros.solvers.registry import AUTO, solver_names
from kinopt_ros.status import Status

NAME = "interactive_markers"
LOOK_SECONDS, FLUSH_SECONDS = 0.1, 0.02
"""Time between two looks whether robot or scene are others, and between two updates while markers move, s."""
SAY_SECONDS = 1.0
"""Least time between two lines in the log about what was refused, s."""
DEPTH = 100
"""Messages of feedback, and updates, that wait, as in rviz's client."""
_UPDATES = QoSProfile(depth=DEPTH, reliability=ReliabilityPolicy.RELIABLE)
_LATCHED = QoSProfile(
    depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL, reliability=ReliabilityPolicy.RELIABLE
)
_TIP = "tip/"


class InteractiveMarkers:
    """The markers of one node. Callbacks come on the executor's thread; what takes longer goes to the scheduler."""

    def __init__(
        self,
        context: Context,
        scheduler: Scheduler,
        serving: Serving,
        trajectories: Serving,
        tasks: Mapping[str, Callable[[Any, Reply], Task]],
        updates: SceneUpdateTopic,
        output: MotionOutput,
        controllers: Controllers,
        stop: Callable[[], str],
        markers: Any,
        reports: Any,
    ) -> None:
        """
        Args:
            context: the node's.
            scheduler: works on what is no request.
            serving: for what is quick.
            trajectories: for what takes seconds.
            tasks: of our services, by name.
            updates: makes changes of the scene.
            output: what motions are sent through.
            controllers: who does them.
            stop: stops all that this node moves; returns what was done.
            markers: publisher of ~/markers.
            reports: publisher of ~/report.
        """
        node = context.node
        self._context = context
        self._scheduler = scheduler
        self._stop = stop
        self._reports = reports
        self._refused = 0
        """Times that something was refused since the last line about it."""
        self._clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._said = 0
        self._saying = threading.Lock()
        self._settings = Settings(avoid=context.parameter("ik.avoid_collisions"))
        self._scale = float(context.parameter("markers.scale"))
        self._drawing = Drawing(markers, lambda: listeners_of(node, markers.topic_name))
        self._bench = Bench(
            context,
            self._settings,
            self._drawing,
            Asking(serving, "solve_ik", SolveIK.Response, tasks["solve_ik"]),
            Asking(trajectories, "plan_trajectory", PlanTrajectory.Response, tasks["plan_trajectory"]),
            offered_display(node),
            self._log,
        )
        self._output = output
        self._executions = Executions(context, output, controllers)
        updates_out = node.create_publisher(InteractiveMarkerUpdate, f"~/{NAME}/update", _UPDATES)
        self._server = MarkerServer(updates_out.publish)
        self._objects = ObjectMarkers(context, self._server, updates, self._scale, self._log)
        self._tips: dict[str, TipMarker] = {}
        self._menus: dict[str, dict[int, Asked]] = {}
        """What entries ask for, by tip."""
        self._top = 1.0
        """Height of the text about what goes on, m."""
        self._silence = ""
        """What is shown of joint states that have stopped."""
        self._built: LoadedRobot | None = None
        self._scene: Scene | None = None
        self._busy = threading.Lock()
        """Held while markers are made anew."""
        self._closed = False
        node.create_service(GetInteractiveMarkers, f"~/{NAME}/get_interactive_markers", self._answer)
        node.create_subscription(InteractiveMarkerFeedback, f"~/{NAME}/feedback", self._take, _UPDATES)
        node.create_subscription(MotionReport, "~/report", self._take_report, DEPTH)
        node.create_subscription(ServoStatus, "~/servo/status", self._take_servo, _LATCHED)
        self._look_timer = node.create_timer(LOOK_SECONDS, self._look, clock=self._clock)
        self._flush_timer = node.create_timer(FLUSH_SECONDS, self._flush, clock=self._clock)

    def close(self) -> None:
        """Remove the markers, and stop what they have begun."""
        self._closed = True
        self._look_timer.cancel()
        self._flush_timer.cancel()
        self._executions.close()
        for name in self._server.names():
            self._server.erase(name)
        with suppress(RuntimeError):  # ROS was shut down first: clients notice by themselves
            self._server.apply()
            self._drawing.clear()

    # On the executor's thread.

    def _answer(self, request: Any, response: Any) -> Any:
        del request
        try:
            return self._server.answer(response)
        except Exception as error:  # nothing leaves a callback
            log_defect(self._context.node.get_logger(), f"in {NAME}/get_interactive_markers", error)
            return type(response)()

    def _take(self, feedback: Any, info: Any) -> None:
        """Do what a client has done."""
        try:
            self._server.take(feedback, shared=self._is_stop(feedback))
            if feedback.event_type == feedback.POSE_UPDATE:
                self._moved(feedback.marker_name, feedback.pose)
            elif feedback.event_type == feedback.MENU_SELECT:
                stops = self._output.stops_before(seconds_unread(info))
                self._selected(feedback.marker_name, feedback.menu_entry_id, stops)
        except Exception as error:  # nothing leaves a callback
            self._refuse(error)
        if self._flush_timer.is_canceled():
            self._flush()
            self._flush_timer.reset()

    def _is_stop(self, feedback: Any) -> bool:
        menu = self._menus.get(feedback.marker_name.removeprefix(_TIP), {})
        action, _ = menu.get(feedback.menu_entry_id, (None, ""))
        return feedback.event_type == feedback.MENU_SELECT and action is Action.STOP

    def _moved(self, name: str, pose: Any) -> None:
        if name.startswith(PREFIX):
            loaded = self._context.loaded
            self._objects.move(name.removeprefix(PREFIX), pose, loaded.model.root_link)
        else:
            self._context.gate.check()
            self._tip(name).move(pose)

    def _tip(self, name: str) -> TipMarker:
        tip = self._tips.get(name.removeprefix(_TIP))
        if tip is None:
            raise InvalidRequestError(f"there is no marker {quoted(name)} any more")
        return tip

    def _selected(self, name: str, number: int, stops: int) -> None:
        if name.startswith(PREFIX):
            id = name.removeprefix(PREFIX)
            if not self._objects.has(id, number):
                raise InvalidRequestError(f"the menu of {quoted(name)} has no entry {number}")
            self._objects.do(id, number)
            return
        tip = self._tip(name)
        menu = self._menus[tip.name]
        if number not in menu:
            raise InvalidRequestError(
                f"the menu of {quoted(name)} has no entry {number} that asks for something"
            )
        action, word = menu[number]
        if action is Action.STOP:
            done = self._stop() or "nothing moves by this node"
            self._context.node.get_logger().warning(f"stopped by the menu of a marker: {done}")
            tip.show_text(f"stopped: {done}", True)
            return
        self._context.gate.check()
        try:
            self._do(tip, action, word, stops)
        except KinoptError as error:
            tip.show_text(str(error), False)
            raise

    def _do(self, tip: TipMarker, action: Action, word: str, stops: int) -> None:
        match action:
            case Action.SOLVE:
                tip.solve()
            case Action.PLAN:
                tip.plan()
            case Action.EXECUTE:
                self._execute(tip, stops)
            case Action.RANDOM:
                changes = tip.changes
                self._work(tip, lambda: tip.go_anywhere(changes))
            case Action.STATE:
                tip.go_to_state(word)
                self._server.move(_TIP + tip.name, tip.pose)
            case Action.RESET:
                tip.reset()
                self._server.move(_TIP + tip.name, tip.pose)
            case Action.AVOID:
                self._settings.avoid = not self._settings.avoid
                self._changed()
            case Action.SOLVER:
                self._settings.solver = word
                self._changed()
            case Action.MODE:
                tip.mode = Mode.named(word)
                self._set_tips()
                tip.solve()

    def _changed(self) -> None:
        """Show settings that have changed in all menus, and solve anew."""
        self._set_tips()
        for tip in self._tips.values():
            tip.go_on_later()

    def _execute(self, tip: TipMarker, stops: int) -> None:
        motion = tip.take_motion()
        if motion is None:
            raise InvalidRequestError(
                f"there is no plan of {quoted(tip.name)} to execute: plan first; a plan goes away when its target "
                "moves, and is made again when the scene changes"
            )
        tip.show_text("executing ...", True)

        def ended(status: StatusMsg) -> None:
            tip.ended(status)
            self._report(status, tip.group)

        try:
            self._executions.begin(motion, ended, stops)
        except KinoptError as error:
            tip.ended(error_message(error))  # its way goes, too: there is no plan any more
            raise

    def _set_tips(self) -> None:
        """Give all tips their markers and menus as they are now."""
        for tip in self._tips.values():
            menu, self._menus[tip.name] = menu_of(self._entries(tip))
            self._server.set(tip.message(menu, self._scale))

    def _entries(self, tip: TipMarker) -> list[Entry]:
        settings = self._settings
        solvers = [("as the parameters say", ""), *((name, name) for name in (AUTO, *solver_names()))]
        states = tuple(Entry(name, Action.STATE, name) for name in tip.states)
        return [
            Entry("solve", Action.SOLVE),
            Entry("plan", Action.PLAN),
            Entry("execute the plan", Action.EXECUTE),
            Entry("stop", Action.STOP),
            Entry("random reachable pose", Action.RANDOM),
            *([Entry("go to state", below=states)] if states else []),
            Entry("back to the robot", Action.RESET),
            Entry(
                "what counts",
                below=tuple(
                    Entry(mode.title, Action.MODE, mode.value, checked=mode is tip.mode) for mode in Mode
                ),
            ),
            Entry(
                "solver for inverse kinematics",
                below=tuple(
                    Entry(title, Action.SOLVER, name, checked=name == settings.solver)
                    for title, name in solvers
                ),
            ),
            Entry("avoid collisions", Action.AVOID, checked=settings.avoid),
        ]

    def _look(self) -> None:
        """Look whether there is another robot, or scene, and who has begun to listen."""
        self._drawing.look()
        if self._flush_timer.is_canceled():
            self._flush_timer.reset()  # something may wait that came by another thread
        if not self._context.loader.is_ready:
            return
        self._show_silence()
        for tip in self._tips.values():
            if tip.follow():
                self._server.move(_TIP + tip.name, tip.pose)
        loaded = self._context.loader.loaded
        scene = self._context.scene.of(loaded.model)
        if (loaded is self._built and scene is self._scene and not self._objects.stale) or self._closed:
            return
        if self._busy.acquire(blocking=False):
            self._submit(lambda: self._rebuild(loaded, scene), self._busy.release)

    def _flush(self) -> None:
        """Tell clients what has changed, and solve what waits."""
        try:
            self._server.apply()
            waits = [tip.go_on() for tip in self._tips.values()]
        except Exception as error:  # nothing leaves a callback
            self._refuse(error)
            waits = []
        if not any(waits) and not self._server.changed:
            self._flush_timer.cancel()

    def _take_report(self, report: Any) -> None:
        """Show what became of the last motion that was asked for by topic or menu."""
        good = report.status.code == Status.SUCCESS
        self._show_status("" if good else report.status.message)

    def _take_servo(self, status: Any) -> None:
        """Show what keeps servo from doing what is wanted."""
        good = status.status.code == Status.SUCCESS and status.state != status.EMERGENCY
        self._show_status("" if good else f"servo, {status.state}: {status.status.message}")

    def _show_status(self, sentence: str) -> None:
        """Show a sentence above the robot; an empty one: none."""
        self._draw_above("status", sentence, 0.0)

    def _draw_above(self, kind: str, sentence: str, height: float) -> None:
        built = self._built
        if built is not None:
            at, said = np.array([0.0, 0.0, self._top + height]), folded(sentence)
            text = [text_marker(built.model.root_link, at, said, 0.04, WRONG)] if sentence else []
            self._drawing.draw({kind: text})

    def _show_silence(self) -> None:
        """Show above the robot whether joint states have stopped, of the joints that move a tip."""
        built = self._built
        if built is None or not self._tips:
            return
        robot, state = built.model, self._context.joint_states.of(built.model)
        joints = {name for tip in self._tips.values() for name in tip.joints}
        index = [robot.variable_index[name] for name in sorted(joints) if name in robot.variable_index]
        ages = {robot.variable_names[i]: float(state.age[i]) for i in index if state.known[i]}
        said = silence(ages, self._context.parameter("state_timeout"))
        if said != self._silence:
            self._silence = said
            self._draw_above("silence", said, 0.3)

    # On any thread.

    def _rebuild(self, loaded: LoadedRobot, scene: Scene) -> None:
        """Make the markers those of a robot and a scene."""
        robot, another_robot = loaded.model, loaded is not self._built
        self._built = loaded  # also if it fails: it would again
        if another_robot:
            self._make_tips(loaded, scene)
        held = self._scene is None or scene.attached != self._scene.attached
        another, self._scene = scene is not self._scene, scene
        if another:  # before objects are shown: who sees one may plan, and keeps that plan
            look = robot_drawing(robot, scene) if held else None
            for tip in list(self._tips.values()):
                tip.go_on_later(look)
        self._objects.update(robot, scene)
        self._server.apply()

    def _make_tips(self, loaded: LoadedRobot, scene: Scene) -> None:
        """Make the markers of the tips of a robot."""
        context, robot = self._context, loaded.model
        for tip in self._tips.values():
            tip.close()
            self._server.erase(_TIP + tip.name)
        look, tips = robot_drawing(robot, scene), {}
        names = context.parameter("markers.tips")
        for name, group, mode in chosen_tips(robot, names, context.parameter("default_group")):
            try:
                tips[name] = TipMarker(self._bench, loaded, name, group, mode, look)
            except KinoptError as error:  # the others have theirs
                self._log(f"no marker of {quoted(name)}: {error}")
        self._tips = tips
        T = forward_kinematics(robot, context.joint_states.of(robot).q)
        self._top = float(T[:, 2, 3].max()) + 0.4
        self._set_tips()

    def _work(self, tip: TipMarker, do: Callable[[], None]) -> None:
        """Have something done that takes its time and puts a target elsewhere."""

        def work() -> None:
            try:
                do()
                self._server.move(_TIP + tip.name, tip.pose)
                self._server.apply()
            except KinoptError as error:
                tip.show_text(str(error), False)
                raise

        self._submit(work)

    def _submit(self, work: Callable[[], None], after: Callable[[], None] = lambda: None) -> None:
        """Have something done by a thread of the scheduler, and something after it, whatever comes of it."""

        def call() -> None:
            try:
                work()
            except Exception as error:  # nothing ends a worker
                if not self._closed:  # else what it needs may have gone away in the middle of it
                    self._refuse(error)
            finally:
                after()

        def refuse(error: KinoptError) -> None:
            after()
            self._refuse(error)

        try:
            self._scheduler.submit(CallTask(call, refuse, CLIENT, slow=True))
        except KinoptError as error:
            refuse(error)

    def _report(self, status: StatusMsg, group: str = "") -> None:
        self._reports.publish(MotionReport(status=status, group=group))

    def _refuse(self, error: Exception) -> None:
        """Say what is wrong with what somebody has done, in the log and on ~/report, but not too often."""
        now = self._clock.now().nanoseconds
        with self._saying:
            self._refused += 1
            if now < self._said + SAY_SECONDS * 1e9:
                return
            self._said, count, self._refused = now, self._refused - 1, 0
        status = error_status(self._context.node.get_logger(), f"in {NAME}", error)
        if count:
            status.message += f" ({count} more were refused before)"
        self._log(status.message)
        self._report(status)

    def _log(self, sentence: str) -> None:
        self._context.node.get_logger().warning(f"~/{NAME}: {sentence}", throttle_duration_sec=SAY_SECONDS)


def offer_interactive_markers(context: Context, *parts: Any) -> InteractiveMarkers | None:
    """Offer the markers if parameter markers.interactive says so; ``parts`` are the arguments of InteractiveMarkers."""
    return InteractiveMarkers(context, *parts) if context.parameter("markers.interactive") else None
