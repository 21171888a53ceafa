"""The node's parts that stop motions, a robot with faults, and a time of their own: nothing depends on the machine."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from support.looks import Trusting

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.planning.motion import plan_joint_motion
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.ros.client.simulated_actions import given
from kinopt_ros.ros.messages.conversions import trajectory_message
from kinopt_ros.ros.motion import published_end, stop_watch
from kinopt_ros.ros.motion import run as motion_run
from kinopt_ros.ros.motion.output import InactiveError, MotionOutput
from kinopt_ros.ros.motion.published import begin_of
from kinopt_ros.ros.motion.run import MotionRun
from kinopt_ros.ros.robot import joint_states, motion_clock
from kinopt_ros.ros.robot.joint_states import JointStates
from kinopt_ros.ros.robot.motion_clock import MotionClock
from kinopt_ros.ros.topics.emergency_stop import EmergencyStop
from kinopt_ros.status import Status
from kinopt_ros.trajectory.joint_trajectory import JointTrajectory
from kinopt_ros.trajectory.simulated_controller import SimulatedController
from stops.plant import MS, Plant

BEGIN = 10**15
"""When it begins, ns."""
_REPEATED = 1000 * MS
"""Time for which a driver repeats where joints were, ns."""
PARAMETERS = {
    "servo.avoid_collisions": False,
    "ik.avoid_collisions": False,
    "ik.clearance": 0.0,
    "start_state_tolerance": 0.01,
    "servo.state_timeout": 0.25,
    "servo.tracking_tolerance": 0.05,
    "state_timeout": 1.0,
    "controller_joints": [],
    "arrival_tolerance": 0.1,
}
NO_STAMP = 0


class VirtualTime:
    """A clock, what is to happen at which time, and threads that sleep by it: one of them runs at a time."""

    def __init__(self) -> None:
        self.now = BEGIN
        """ns."""
        self._coming: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count()
        self._threads: dict[threading.Thread, VirtualThread] = {}

    def at(self, time: int, call: Callable[[], None]) -> None:
        """Have something happen at a time, ns."""
        heapq.heappush(self._coming, (max(time, self.now), next(self._numbers), call))

    def pass_until(self, time: int) -> None:
        """Let time pass, ns."""
        while self._coming and self._coming[0][0] <= time:
            self.now, _, call = heapq.heappop(self._coming)
            call()
        self.now = max(self.now, time)

    def sleep(self, seconds: float) -> None:
        """Stand-in for ``time.sleep``, of threads of this time."""
        self._threads[threading.current_thread()].sleep(seconds)

    def thread(self, target: Callable[..., None], args: Sequence[Any] = (), **names: Any) -> VirtualThread:
        """Stand-in for ``threading.Thread``."""
        del names
        one = VirtualThread(self, target, args)
        self._threads[one.real] = one
        return one

    @property
    def busy(self) -> bool:
        """Whether a thread is not over."""
        return any(one.is_alive() for one in self._threads.values())

    def modules(self) -> tuple[SimpleNamespace, SimpleNamespace]:
        """Return stand-ins for the modules ``time`` and ``threading``."""
        time = SimpleNamespace(
            monotonic=lambda: self.now / 1e9, monotonic_ns=lambda: self.now, sleep=self.sleep
        )
        return time, SimpleNamespace(
            Thread=self.thread, Lock=threading.Lock, Event=lambda: VirtualEvent(self)
        )


def _closed() -> threading.Lock:
    """Return a lock that is taken: as a semaphore of 0, which takes ten times as long to hand a turn over."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class VirtualThread:
    """A thread that runs while nobody else does, until it sleeps."""

    def __init__(self, time: VirtualTime, target: Callable[..., None], args: Sequence[Any]) -> None:
        self._time = time
        self._turn, self._back = _closed(), _closed()
        self._over = False
        self.real = threading.Thread(target=self._run, args=(target, args), daemon=True)

    def start(self) -> None:
        """Begin, and return when it sleeps for the first time."""
        self.real.start()
        self._back.acquire()

    def is_alive(self) -> bool:
        """Whether it is not over."""
        return not self._over

    def sleep(self, seconds: float) -> None:
        """Sleep; on its own thread."""
        self._time.at(self._time.now + round(1e9 * seconds), self._wake)
        self._back.release()
        self._turn.acquire()

    def _wake(self) -> None:
        self._turn.release()
        self._back.acquire()

    def _run(self, target: Callable[..., None], args: Sequence[Any]) -> None:
        try:
            target(*args)
        finally:
            self._over = True
            self._back.release()


class VirtualEvent:
    """An event for which threads of a virtual time wait as long as they say: who polls it finds what is new then."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def clear(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, seconds: float) -> bool:
        self._time.sleep(seconds)
        return self._is_set


class World:
    """A robot with faults and the node's parts."""

    def __init__(
        self, plant: Plant, robot: RobotModel, joints: tuple[str, ...], start: np.ndarray, seed: Sequence[int]
    ) -> None:
        """
        Args:
            plant: what is wrong.
            robot: the robot.
            joints: of its only controller.
            start: where these are.
            seed: of times and noise.
        """
        self.plant, self.robot, self.joints = plant, robot, joints
        self.time = VirtualTime()
        self.said: list[str] = []
        """What the node has logged."""
        self.sent: list[tuple[int, Any]] = []
        """Motions that were published, and when."""
        self.moves: list[JointTrajectory] = []
        """Those that ``move`` was asked for."""
        self.ended: list[StatusMsg] = []
        """How they ended."""
        self._ways, self._noise = (np.random.default_rng([*seed, k]) for k in (1, 2))
        self._controller = SimulatedController(
            joints,
            start,
            np.linspace(plant.drive_lag, plant.longest_lag or plant.drive_lag, len(joints)),
            plant.speed_scaling,
            plant.from_desired,
        )
        self._taken: tuple[Any, int] | None = None
        """What the controller does, and for how long it has done that, ns, or when it began."""
        self._waits = False
        self._lost = self._set = 0
        self._repeats_from: int | None = None
        self._filtered = np.zeros(len(joints))
        """The velocity that the driver says, if it filters them."""
        self._read: np.ndarray | None = None
        """What the driver has read last, if it misses cycles."""
        self._silent_until = 0
        self._repeated: np.ndarray | None = None
        self._message_there = self._state_there = 0
        self._past = [(BEGIN - 1, np.array(start), np.zeros(len(joints)))]
        self._truth: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._recorded = BEGIN
        self._states = JointStates()
        self._clock = MotionClock(lambda: self.time.now + self._set, lambda: False, lambda: self.output.runs)
        log = SimpleNamespace(warning=self.said.append, error=self.said.append, info=self.said.append)
        self.context: Any = SimpleNamespace(
            node=SimpleNamespace(get_logger=lambda: log),
            now=self._clock.now,
            loaded=SimpleNamespace(model=robot),
            parameter=PARAMETERS.__getitem__,
            joint_states=self._states,
            sets_back=lambda: not plant.from_desired,
        )
        self.output = MotionOutput(
            SimpleNamespace(publish=self._publish),
            Trusting(),
            self._clock.now,
            begin=lambda message, model: begin_of(
                message, model, self._states.of(model), self._clock.now(), published=self.output.published
            ),
        )
        self.stop = EmergencyStop(
            self.context, self.output, lambda stopped, sentence: None, list, lambda: None
        )
        self._measure()

    @contextmanager
    def own_time(self) -> Iterator[None]:
        """Have the node's parts live in this world's time; what they watch ends with it."""
        time, threads = self.time.modules()
        with (
            patch.object(joint_states, "time", time),
            patch.object(motion_clock, "time", time),
            patch.object(stop_watch, "time", time),
            patch.object(stop_watch, "threading", threads),
            patch.object(motion_run, "time", time),
            patch.object(published_end, "time", time),
            patch.object(motion_run, "threading", threads),
        ):
            try:
                yield
            finally:
                self.output.release()
                self.output.open()
                while self.time.busy:
                    self.pass_ms(10)

    def pass_ms(self, milliseconds: float) -> None:
        """Let time pass."""
        self.time.pass_until(self.time.now + round(MS * milliseconds))

    def wait(self) -> None:
        """Have the controller wait with what it does, or is sent, as with a speed slider at 0."""
        self._record()
        self._controller.hold(self.time.now)
        self._waits = True
        if self._taken is not None:
            motion, begun = self._taken
            self._taken = motion, self.time.now - begun

    def go_on(self) -> None:
        """Have the controller go on with what it was sent last."""
        self._record()
        self._waits = False
        if self._taken is not None:
            (names, points), done = self._taken
            self._taken = (names, points), self.time.now - done
            self._controller.take(names, points, self._taken[1], self.time.now)

    def move(self, motion: JointTrajectory, judged: bool = False) -> MotionRun:
        """Send a motion, and watch it as the node does."""
        self.moves.append(motion)
        planned: Any = SimpleNamespace(
            loaded=self.context.loaded, goes_on=False, stops=False, scene=None, q=self.robot.default_q
        )
        running = MotionRun(self.context, self.output, None, judged)
        claim = self.output.claim("a client", running.lost)
        assert running.send(claim, trajectory_message(motion, self.robot.root_link), planned, keep=False)
        self.time.thread(lambda: self.ended.append(running.watch())).start()
        return running

    def onward(self, random: np.random.Generator) -> JointTrajectory:
        """Return a motion of some joints from where the last one has ended."""
        index = np.array([self.robot.variable_index[name] for name in self.joints])
        q = self.robot.default_q.copy()
        q[index] = self.sent[-1][1].points[-1].positions
        goal = q.copy()
        some = index[random.choice(len(index), random.integers(1, len(index) + 1), replace=False)]
        limits = self.robot.limits
        far = random.choice([0.2, 0.6]) * random.uniform(-1.0, 1.0, len(some))
        goal[some] = np.clip(goal[some] + far, limits.lower[some], limits.upper[some])
        return plan_joint_motion(
            self.robot, self.joints, q, np.zeros(self.robot.nq), goal, 1.0, 1.0, 0.01, None, 0.0, None
        ).trajectory

    def cancel(self, running: MotionRun) -> None:
        """The client wants the motion no more."""
        running.stop(Status.PREEMPTED, "cancelled")

    def emergency(self, stop: bool) -> None:
        """Tell the node to stop all, or that this is over."""
        self.stop.take(Bool(data=stop))

    def stop_by_marker(self) -> None:
        """Stop as the menu of a marker does: motions are allowed again at once."""
        self.said.append(self.stop.stop_all("a marker", lasting=False))
        self.stop.watch()

    def deactivate(self) -> None:
        """Stop all, as the node does where it is deactivated."""
        self.output.close(InactiveError("the node is not active"))
        if self.stop.stop_all("the deactivation", lasting=False):
            self.stop.watch()

    def set_clock(self, ahead: int) -> None:
        """Set the node's clock ahead by so many ns, and nobody else's."""
        self._set += ahead

    def repeat_from(self, begin: int) -> None:
        """Have the driver repeat where the joints are at a time."""
        self._repeats_from = begin

    def be_silent(self, until: int) -> None:
        """Have nobody hear of the joints until a time."""
        self._silent_until = until

    def truth(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return times (ns), where the joints were told to be by their controller, and where they were, each ms."""
        self._record()
        times, told, there = (np.concatenate(parts) for parts in zip(*self._truth, strict=True))
        return times, told, there

    def _publish(self, message: Any) -> None:
        self.sent.append((self.time.now, message))
        there = self.time.now + int(self._ways.integers(*self.plant.way)) + self.plant.late
        self._message_there = max(there, self._message_there)
        copy = deepcopy(message)
        self.time.at(self._message_there, lambda: self._take(copy))

    def _take(self, message: Any) -> None:
        names, points, start = given(message)
        if start == NO_STAMP and len(self.sent) > 1 and self._lost < self.plant.loses_brakes:
            self._lost += 1
            return
        self._record()
        # The controller's motions have the world's time, so its clock shows where stamps mean something else.
        start = start - self.plant.clock if start != NO_STAMP and self.plant.keeps_stamps else 0
        if self._waits:
            self._taken = (names, points), 0
            return
        try:
            self._controller.take(names, points, start, self.time.now)
        except InvalidRequestError as error:
            self.said.append(f"the controller refuses a motion: {error}")
            return
        self._taken = (names, points), start or self.time.now

    def _measure(self) -> None:
        """Have the driver say where the robot is, and again a period later."""
        plant, now = self.plant, self.time.now
        if plant.drive_lag:
            self._record()
        state = self._controller.measured(now)
        self._past.append((now, state.position.copy(), state.velocity.copy()))
        while len(self._past) > 1 and self._past[1][0] <= now - plant.measured_before:
            self._past.pop(0)
        _, position, velocity = self._past[0]
        if plant.misses:
            read = position
            if self._read is not None:
                read = self._read if self._noise.random() < plant.misses else position
                velocity = (read - self._read) * (1e9 / plant.period)
            position = self._read = read
        if plant.filters_velocities:
            share = min(1.0, plant.period / (1e9 * plant.filters_velocities))
            self._filtered = self._filtered + share * (velocity - self._filtered)
            velocity = self._filtered
        begin = self._repeats_from
        if begin is not None and begin <= now < begin + _REPEATED:
            position = self._repeated = position if self._repeated is None else self._repeated
            velocity = np.zeros(len(position))
        if plant.wraps:
            position = np.remainder(position + np.pi, 2.0 * np.pi) - np.pi
        position = position + plant.noise * self._noise.normal(size=len(position))
        velocity = velocity + plant.velocity_noise * self._noise.normal(size=len(position))
        there = now + int(self._noise.integers(*plant.state_way))
        self._state_there = max(there, self._state_there)
        if self._noise.random() >= plant.loses_states and now >= self._silent_until:
            message = JointState(
                name=self.joints,
                position=position.tolist(),
                velocity=velocity.tolist() if plant.velocities else [],
            )
            stamp = now + plant.clock if plant.stamps else NO_STAMP
            self.time.at(self._state_there, lambda: self._hear(message, stamp))
        self.time.at(now + plant.period, self._measure)

    def _hear(self, message: JointState, stamp: int) -> None:
        self._states.update(message, stamp, self._clock.heard(message.name[0], stamp))

    def _record(self) -> None:
        """Write down where the robot was until now."""
        times = np.arange(self._recorded, self.time.now, MS, dtype=np.int64)
        if not len(times):
            return
        told = self._controller.states(times)[0]
        there = self._controller.drive_on(times) if self.plant.drive_lag else told
        self._truth.append((times, told, there))
        self._recorded = int(times[-1]) + MS
