"""Forks nodes: has imported and loaded what all of them need, so that each takes a fifth of the time.

Runs as a program of its own. A line of standard input asks for a process (``Wanted``), a line of standard output has
its number. Processes are left to whoever asks, who must be a child subreaper. The end of the input ends this one.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import runpy
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import TypedDict

sys.path.append(str(Path(__file__).parents[1]))
from support.types_of_kernels import compiled_twice

MESSAGES = (
    *("geometry_msgs.msg", "kinopt_msgs.action", "kinopt_msgs.msg", "kinopt_msgs.srv", "rcl_interfaces.msg"),
    *(
        "rcl_interfaces.srv",
        "sensor_msgs.msg",
        "std_srvs.srv",
        "trajectory_msgs.msg",
        "visualization_msgs.msg",
    ),
)
"""Messages: plain Python, and a library for each that is used."""


class Wanted(TypedDict):
    """A process, as ``python -P -m`` would start it."""

    module: str
    words: list[str]
    """Its arguments."""
    environment: dict[str, str]
    folder: str
    """It is started in."""
    log: str
    """File, which is there, that gets what it prints."""


def load() -> None:
    """Import what the node imports, and load what its solver has compiled.

    ROS itself is left to each of the processes: it has threads, which end with a fork.
    """
    for module in MESSAGES:
        for kind in vars(import_module(module)).values():
            if hasattr(kind, "__import_type_support__"):
                kind.__import_type_support__()
    from kinopt_ros.planning.trajectory_warm_up import warm_up_trajectories
    from kinopt_ros.robot.sources import load_robot
    from kinopt_ros.solvers.readiness import prepare_collisions
    from kinopt_ros.solvers.registry import create_solver

    solver = create_solver("cpu", load_robot("panda"))
    prepare_collisions(solver.robot)
    solver.warm_up()
    solver.warm_up_motions()
    warm_up_trajectories(solver)
    solver.close()
    inspect.getmodule(inspect.currentframe())  # ROS's first line in a log looks through all modules


def asked(output: int) -> Wanted | None:
    """Fork a process for each line; return what is wanted of it in each of them, and None here, at the end."""
    for line in sys.stdin.buffer:
        wanted: Wanted = json.loads(line)
        read, write = os.pipe()
        between = os.fork()
        if not between:
            number = os.fork()
            if not number:
                return wanted
            os.write(write, b"%d\n" % number)
            os._exit(0)  # so that the process is left to the next subreaper
        os.waitpid(between, 0)  # from now on it is
        os.write(output, os.read(read, 100))
        os.close(read)
        os.close(write)
    return None


def become(wanted: Wanted) -> None:
    """Be what is wanted."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])
    log = os.open(wanted["log"], os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, stream in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, stream)
    os.closerange(3, 1 + max(int(name) for name in os.listdir("/proc/self/fd")))
    sys.argv = ["", *wanted["words"]]
    try:
        runpy.run_module(wanted["module"], run_name="__main__", alter_sys=True)
    finally:
        twice = compiled_twice()
        if twice:  # no test passes with these words in the log of a node
            print(
                f"internal error: compiled anew for arrays that are read-only, or not: {twice}",
                file=sys.stderr,
            )


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    answers = os.dup(1)
    os.dup2(2, 1)  # nothing else is printed there
    load()
    gc.collect()
    gc.freeze()
    process = asked(answers)
    if process is not None:
        become(process)
