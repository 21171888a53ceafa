"""What may be done to a motion that runs. Each returns the time of the order from which on the robot has to stop."""

from collections.abc import Callable

import numpy as np

from kinopt_ros.ros.motion.run import MotionRun
from stops.world import World

Scenario = Callable[[World, MotionRun, np.random.Generator], int]


def _emergency(world: World, running: MotionRun, random: np.random.Generator) -> int:
    del running, random
    world.emergency(True)
    return world.time.now


def _cancel(world: World, running: MotionRun, random: np.random.Generator) -> int:
    del random
    world.cancel(running)
    return world.time.now


def _emergency_in_a_brake(world: World, running: MotionRun, random: np.random.Generator) -> int:
    world.cancel(running)
    world.pass_ms(random.choice([6.0, 12.0, 25.0, random.uniform(0.0, 400.0)]))
    world.emergency(True)
    return world.time.now


def _bounce(world: World, running: MotionRun, random: np.random.Generator) -> int:
    """A button that bounces, in a motion or in a brake."""
    if random.random() < 0.5:
        world.cancel(running)
        world.pass_ms(random.uniform(0.0, 100.0))
    began = world.time.now
    for _ in range(int(random.integers(1, 4))):
        world.emergency(True)
        world.pass_ms(random.uniform(1.0, 80.0))
        world.emergency(False)
        world.pass_ms(random.uniform(1.0, 30.0))
    world.emergency(True)
    return began


def _deactivate(world: World, running: MotionRun, random: np.random.Generator) -> int:
    del running, random
    world.deactivate()
    return world.time.now


def _second_stop(world: World, running: MotionRun, random: np.random.Generator) -> int:
    """An emergency stop after a deactivation."""
    del running
    began = world.time.now
    world.deactivate()
    world.pass_ms(random.uniform(1.0, 200.0))
    world.emergency(True)
    return began


def _in_the_next(world: World, running: MotionRun, random: np.random.Generator) -> int:
    """An emergency stop in the next motion, of other joints, soon after this one has ended."""
    del running
    first = world.output.published[-1]
    seconds = (first.end - first.start) / 1e9 / world.plant.speed_scaling
    world.time.pass_until(first.start + world.plant.late + round(1e9 * seconds))
    world.pass_ms(random.uniform(100.0, 400.0))
    motion = world.onward(random)
    world.move(motion)
    begin = world.output.published[-1].start + world.plant.late
    after = min(random.uniform(0.05, 0.4), 0.97 * motion.duration / world.plant.speed_scaling)
    world.time.pass_until(begin + round(1e9 * after))
    world.emergency(True)
    return world.time.now


SCENARIOS: dict[str, Scenario] = {
    "emergency": _emergency,
    "cancel": _cancel,
    "emergency_in_a_brake": _emergency_in_a_brake,
    "bounce": _bounce,
    "deactivate": _deactivate,
    "second_stop": _second_stop,
    "in_the_next": _in_the_next,
}
"""By the names that ``make stops`` takes."""
