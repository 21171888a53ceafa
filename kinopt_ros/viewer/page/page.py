"""The page: parts put together, and what happens when somebody drags."""

import time
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.viewer.looks import Looks
from kinopt_ros.viewer.newest import Newest
from kinopt_ros.viewer.page.actions import Actions
from kinopt_ros.viewer.page.drawn_robot import DrawnRobot, Ghosts
from kinopt_ros.viewer.page.gizmos import Gizmos
from kinopt_ros.viewer.page.joints_panel import JointsPanel
from kinopt_ros.viewer.page.obstacles_panel import ObstaclesPanel
from kinopt_ros.viewer.page.plan_panel import PlanPanel
from kinopt_ros.viewer.page.request_panel import RequestPanel
from kinopt_ros.viewer.page.servo_runner import ServoRunner
from kinopt_ros.viewer.page.settings_panel import SettingsPanel
from kinopt_ros.viewer.servo import ServoState
from kinopt_ros.viewer.session import ALL_SOLUTIONS, Session
from kinopt_ros.viewer.settings import NEAREST, PLANNING, SOLVING
from kinopt_ros.viewer.words import of_servo, of_solution, plain

FOLLOW, GOAL, SERVO = "moves the robot", "sets a goal", "leads servo"
SEND = "asks the node"
_SAY_SECONDS = 0.1
"""Least time between two texts: people read no faster, and browsers draw robots meanwhile."""


class Page:
    """A session in a browser."""

    def __init__(
        self, server: Any, session: Session, looks: Looks, source: str, srdf: str | None = None
    ) -> None:
        """
        Args:
            server: viser's.
            session: what is shown.
            looks: what the robot looks like.
            source: name or file of the robot, for programs to copy.
            srdf: file of its SRDF, if one was named.
        """
        self.server, self.session = server, session
        self._said_at = 0.0
        self._all = False
        self._set_stage(looks)
        size = self._reach()
        self._robot = DrawnRobot(server, session.robot, looks)
        self._wrong = Ghosts(server, session.robot, looks, "/no_solution", (0.9, 0.1, 0.1), 0.35)
        self._goal = Ghosts(server, session.robot, looks, "/goal", (0.15, 0.65, 0.3), 0.4)
        self._others = Ghosts(server, session.robot, looks, "/solutions", (0.25, 0.45, 0.9), 0.14)
        self._cloud: Any = None
        self._gizmos = Gizmos(server, 0.25 * size, self._dragged, lambda tip: self.released(tip))
        self.released: Callable[[str], None] = lambda tip: None
        """Is told the tip whose gizmo was let go, on viser's thread; must be quick."""
        gui = server.gui
        self.status = gui.add_markdown("preparing ...")
        self.actions = Actions(self._say_failure)
        self._worker = Newest("solve", self.actions.failed)
        self._writer = Newest("say", self.actions.failed)
        self.servo = ServoRunner(session, self._servo_state, self.actions.failed)
        tabs = gui.add_tab_group()
        with tabs.add_tab("Solve", icon="target"):
            self._solve_controls(gui)
            self._joints = JointsPanel(server, session, self.actions, self._moved_by_hand)
        with tabs.add_tab("Scene", icon="box"):
            self.obstacles = ObstaclesPanel(server, session, self.actions, self._scene_changed)
        with tabs.add_tab("Plan", icon="route"):
            self.plan = PlanPanel(server, session, self.actions, self._robot.show, self._moved_by_hand)
        with tabs.add_tab("Weights", icon="adjustments"):
            folders = (SOLVING, NEAREST, PLANNING)
            self.settings = SettingsPanel(
                server, session.settings, self.actions, self._settings_changed, folders
            )
        with tabs.add_tab("Copy", icon="clipboard"):
            RequestPanel(server, session, self.actions, source, srdf)
        for sentence in looks.missing[:5]:
            gui.add_markdown(f"*{plain(sentence)}*")
        self._draw()
        self._worker.ask("prepare", self._prepare)

    def wait(self, timeout: float) -> bool:
        """Wait until what was asked is answered and drawn, at most so long (s)."""
        return self._worker.wait(timeout) and self._writer.wait(timeout)

    def close(self) -> None:
        """End the page's threads, and the server."""
        self.servo.stop()
        self.plan.close()
        self._worker.close()
        self._writer.close()
        self.session.close()
        self.server.stop()

    def offer_modes(self, modes: tuple[str, ...]) -> None:
        """Offer other things that dragging a gizmo does; the first is chosen."""
        self.mode.options = modes
        self.mode.value = modes[0]
        self.set_mode(modes[0])

    def draw_robot(self) -> None:
        """Draw the robot where it is, unless a plan is played."""
        if not self.plan.is_playing:
            self._robot.show(self.session.q)

    def solve(self) -> None:
        """Answer the gizmos' poses, if servo does not."""
        if not self.servo.on:
            self._worker.ask("solve", self._solve)

    # The stage.

    def _reach(self) -> float:
        """Return about how large the robot is, m."""
        poses = forward_kinematics(self.session.robot, self.session.q)
        return float(np.clip(np.ptp(poses[:, :3, 3], axis=0).max(), 0.2, 3.0))

    def _set_stage(self, looks: Looks) -> None:
        server, size = self.server, self._reach()
        poses = forward_kinematics(self.session.robot, self.session.q, links=tuple(looks.parts) or None)
        lowest = float(poses[:, 2, 3].min(initial=0.0))
        middle = 0.5 * (poses[:, :3, 3].min(axis=0) + poses[:, :3, 3].max(axis=0))
        server.gui.configure_theme(
            control_width="large", show_logo=False, show_share_button=False, brand_color=(40, 95, 170)
        )
        server.gui.main_panel.dock_right()
        server.scene.set_background_image(np.full((1, 1, 3), 226, dtype=np.uint8), format="png")
        server.scene.configure_default_lights(cast_shadow=False)  # laptops without a graphics card draw, too
        server.scene.add_grid(
            "/ground",
            width=20.0,
            height=20.0,
            cell_size=0.25,
            section_size=1.0,
            cell_color=(205, 208, 212),
            section_color=(165, 170, 178),
            fade_distance=8.0,
            position=(0.0, 0.0, min(lowest, 0.0)),
        )
        server.initial_camera.look_at = tuple(middle)
        server.initial_camera.position = tuple(middle + size * np.array([1.3, -1.1, 0.55]))

    def _solve_controls(self, gui: Any) -> None:
        session, guarded = self.session, self.actions.guarded
        self.mode = gui.add_dropdown("Dragging a gizmo", (FOLLOW, GOAL, SERVO), initial_value=FOLLOW)
        self.mode.on_update(guarded(lambda event: self.set_mode(event.target.value)))
        solver = gui.add_dropdown("Solver", session.solver_choices(), initial_value=session.solver_name)
        solver.on_update(
            guarded(lambda event: self._worker.ask("solver", lambda: self._set_solver(event.target.value)))
        )
        if len(session.groups) > 1 and session.group is not None:
            group = gui.add_dropdown("Group", session.groups, initial_value=session.group)
            group.on_update(guarded(lambda event: self._set_group(event.target.value)))
        nearest = gui.add_checkbox(
            "As near as possible", session.nearest, hint="where a pose cannot be reached"
        )
        nearest.on_update(guarded(lambda event: self._set("nearest", bool(event.target.value))))
        every = gui.add_checkbox("Show all solutions", self._all)
        every.on_update(guarded(lambda event: self._set_all(bool(event.target.value))))
        cloud = gui.add_checkbox("Show where the tip can be", False, hint="collisions are not looked at")
        cloud.on_update(guarded(lambda event: self._show_cloud(bool(event.target.value))))
        gui.add_button("A random reachable pose", icon="dice-3").on_click(guarded(lambda _: self._random()))
        gui.add_button("Gizmo to the tip", icon="focus-2").on_click(guarded(lambda _: self._home()))

    # What happens.

    def set_mode(self, mode: str) -> None:
        """Say what dragging a gizmo does."""
        if mode != SERVO:
            self.servo.stop()
        self.session.moves_robot = mode == FOLLOW
        self._goal.hide()
        self._wrong.hide()
        if mode == SERVO:
            self.session.targets_to_tips()
            self._gizmos.show(self.session.targets)
            self.servo.start()
        else:
            self.solve()

    def _scene_changed(self) -> None:
        self._robot.carry(self.session.obstacles.scene.attached)
        self.plan.look_again()
        self.solve()

    def _settings_changed(self) -> None:
        if self.servo.on:  # it begins anew, by other limits, once the robot is at rest
            self._worker.ask("servo", self._servo_anew)
        self.solve()

    def _servo_anew(self) -> None:
        if self.servo.on:
            self.servo.stop()
            self.servo.start()

    def _set(self, name: str, value: bool) -> None:
        setattr(self.session, name, value)
        self.solve()

    def _set_all(self, wanted: bool) -> None:
        self._all = wanted
        self.solve()

    def _set_solver(self, name: str) -> None:
        self.status.content = f"{plain(name)} is being prepared ..."
        self.session.choose_solver(name)
        if not self.session.ready:  # the one that was asked for at first cannot serve the robot
            self.session.prepare()
        self._solve()

    def _set_group(self, name: str) -> None:
        led = self.servo.on
        self.servo.stop()
        self.session.choose_group(name)
        self._draw()
        if led:
            self.servo.start()
        self.solve()

    def _random(self) -> None:
        self.session.random_targets()
        self._gizmos.show(self.session.targets)
        self.solve()

    def _home(self) -> None:
        self.session.targets_to_tips()
        self._gizmos.show(self.session.targets)
        self.solve()

    def _show_cloud(self, wanted: bool) -> None:
        if self._cloud is not None:
            self._cloud.remove()
            self._cloud = None
        if wanted:
            points = np.concatenate([self.session.reachable_points(tip) for tip in self.session.tips])
            self._cloud = self.server.scene.add_point_cloud(
                "/reach", points.astype(np.float32), (90, 140, 220), point_size=0.008, point_shape="circle"
            )

    def _dragged(self, tip: str, T_root_tip: Annotated[Float64, "4 4"]) -> None:
        try:
            self.session.set_target(tip, T_root_tip)
        except Exception as error:  # on viser's thread: a bad message says so, and the next one counts
            self.actions.failed(error)
            self._gizmos.show(self.session.targets)
            return
        self.solve()

    def _moved_by_hand(self) -> None:
        """Draw the robot where it was put, and what that means."""
        if self.servo.on:
            self.servo.stop()
            self.servo.start()
        self._draw()
        self.solve()

    def _draw(self) -> None:
        self._robot.carry(self.session.obstacles.scene.attached)
        self._robot.show(self.session.q)
        self._gizmos.show(self.session.targets)

    # On the workers' threads.

    def _prepare(self) -> None:
        self.session.prepare()
        self._solve()

    def _solve(self) -> None:
        session = self.session
        solution = session.solve(ALL_SOLUTIONS if self._all else 1)
        if solution.q is not None and session.moves_robot and not self.plan.is_playing:
            self._robot.show(session.q)
        none = solution.all_q[:0]
        goal = none if solution.q is None or session.moves_robot else solution.q[None]
        q = session.q
        self._goal.show(goal, q)
        self._wrong.show(none if solution.attempt is None else solution.attempt[None], q)
        self._others.show(solution.all_q[1:] if self._all else none, q)
        self._writer.ask("say", self._say)

    def _say(self) -> None:
        """Write what is known of the last answer; while somebody drags, not more often than people read."""
        time.sleep(max(0.0, min(_SAY_SECONDS, self._said_at + _SAY_SECONDS - time.monotonic())))
        self._said_at = time.monotonic()
        solution = self.session.solution
        if solution is not None and not self.servo.on:
            q = solution.q if solution.q is not None else solution.attempt
            self.status.content = of_solution(solution, None if q is None else self.session.nearest_bodies(q))
        self._joints.show(self.session.q)

    def _servo_state(self, state: ServoState) -> None:
        self._robot.show(state.q)
        if time.monotonic() >= self._said_at + _SAY_SECONDS:
            self._said_at = time.monotonic()
            self.status.content = of_servo(state)
            self._joints.show(state.q)

    def _say_failure(self, sentence: str) -> None:
        self.status.content = sentence
