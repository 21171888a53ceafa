"""Ctrl-C while a program is being imported or begins: it ends without a stack trace, wherever it is."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from kinopt_ros.interrupts import INTERRUPTED, end_silently, heard_at_once, raise_again, silent_imports

PROGRAM = """
import os, signal, sys

class Interrupts:
    "Sends Ctrl-C when a module is asked for; then looks whether it was heard within the import."

    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):
                pass
        return None

sys.meta_path.insert(0, Interrupts())
sys.argv = {arguments!r}
{start}
print("not interrupted")
"""
NODE = "import runpy; runpy.run_module('kinopt_ros.ros.main', run_name='__main__', alter_sys=True)"
SCRIPT = "from kinopt_ros.ros.main import {name}; sys.exit({name}())"
COMMAND = "import runpy; runpy.run_module('kinopt_ros.cli', run_name='__main__', alter_sys=True)"
CASES = {
    "node, numpy": (NODE, ["kinopt_node"], "numpy"),
    "node, rclpy": (NODE, ["kinopt_node"], "rclpy"),
    "node, messages": (NODE, ["kinopt_node"], "kinopt_msgs.srv"),
    "node, its own": (NODE, ["kinopt_node"], "kinopt_ros.ros.topics.servo"),
    "script": (SCRIPT.format(name="main"), ["kinopt_node"], "kinopt_ros.ros.node"),
    "circles": (SCRIPT.format(name="circles"), ["kinopt_circles"], "numpy"),
    "simulated robot": (SCRIPT.format(name="simulated_robot"), ["kinopt_simulated_robot"], "numpy"),
    "command": (COMMAND, ["kinopt", "ik", "--help"], "numpy"),
    "a command at work": (COMMAND, ["kinopt", "fk", "--robot", "panda"], "kinopt_ros.kinematics.forward"),
    "demo": (COMMAND, ["kinopt", "demo"], "kinopt_ros.ros.client.demo"),
}
NEEDS_ROS = {"node, messages", "node, its own", "script", "circles", "simulated robot", "demo"}


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_import_ends_the_program_without_a_word(case: str) -> None:
    if case in NEEDS_ROS:
        pytest.importorskip("rclpy")
        pytest.importorskip("kinopt_msgs.msg", reason="kinopt_msgs is not built")
    start, arguments, module = CASES[case]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(start=start, arguments=arguments, module=module)],
        capture_output=True,
        text=True,
        timeout=120.0,
        check=False,
    )
    assert result.stderr == ""
    assert result.stdout == ""
    assert result.returncode == INTERRUPTED


BEGINNINGS = {
    "rclpy.init": "rclpy.init = first(rclpy.init)",
    "making the node": "Node.__init__ = first(Node.__init__)",
    "declaring parameters": "Node.declare_parameter = first(Node.declare_parameter)",
    "the first turn": "Executor.wait_for_ready_callbacks = first(Executor.wait_for_ready_callbacks)",
}


@pytest.mark.ros
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", BEGINNINGS)
def test_a_node_that_begins_is_interrupted(where: str, number: signal.Signals) -> None:
    pytest.importorskip("rclpy")
    pytest.importorskip("kinopt_msgs.msg", reason="kinopt_msgs is not built")
    program = (
        "import os, sys\n"
        "from kinopt_ros.ros.client.isolation import isolate\n"
        "isolate()\n"
        "import rclpy\n"
        "from rclpy.node import Node\n"
        "from rclpy.executors import Executor\n"
        "def first(function):\n"
        "    def interrupted(*arguments, **named):\n"
        f"        os.kill(os.getpid(), {int(number)})\n"
        "        return function(*arguments, **named)\n"
        "    return interrupted\n"
        f"{BEGINNINGS[where]}\n"
        "from kinopt_ros.ros.main import main\n"
        "sys.exit(main(['kinopt_node']))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120.0, check=False
    )
    assert "Traceback" not in result.stderr
    assert result.returncode in (0, INTERRUPTED, -signal.SIGTERM)
    if where == "rclpy.init":
        assert result.stderr == ""


WORK = {
    "kinopt_circles": (
        "circles",
        "from kinopt_ros.ros.client.client import Client as Class",
        "wait_until_ready",
    ),
    "kinopt_simulated_robot": (
        "simulated_robot",
        "from kinopt_ros.ros.client.simulated_robot import SimulatedRobotTopics as Class",
        "_advance",
    ),
}


@pytest.mark.ros
@pytest.mark.parametrize("program", WORK)
def test_ctrl_c_is_a_regular_end_of_a_program_at_work(program: str) -> None:
    """Else launch says that the process has died."""
    pytest.importorskip("rclpy")
    pytest.importorskip("kinopt_msgs.msg", reason="kinopt_msgs is not built")
    name, imported, method = WORK[program]
    text = (
        "import os, signal, sys\n"
        "from kinopt_ros.ros.client.isolation import isolate\n"
        "isolate()\n"
        f"{imported}\n"
        "def first(function):\n"
        "    def interrupted(*arguments, **named):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        return function(*arguments, **named)\n"
        "    return interrupted\n"
        f"Class.{method} = first(Class.{method})\n"
        f"sys.argv = [{program!r}, {'left=panda' if name == 'circles' else 'panda'!r}]\n"
        f"from kinopt_ros.ros.main import {name} as main\n"
        "sys.exit(main())\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120.0, check=False
    )
    assert "Traceback" not in result.stderr, result.stderr
    assert result.returncode == 0, result.stderr


def test_who_ignores_ctrl_c_or_has_a_handler_keeps_it() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.SIG_IGN, lambda number, frame: None):
            signal.signal(signal.SIGINT, handler)
            with silent_imports():
                assert signal.getsignal(signal.SIGINT) is handler
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_afterwards_it_raises_as_usual() -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        end_silently()
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        raise_again()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_signals_alone() -> None:
    seen: list[object] = []

    def look() -> None:
        with silent_imports():
            seen.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]


AT_WORK = """
import hashlib, os, signal
from kinopt_ros.interrupts import heard_at_once

with heard_at_once(lambda: os._exit(3), signal.SIGTERM):
    print("at work", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)  # half an hour without a look at signals
"""


def test_signals_are_heard_while_the_main_thread_does_not_come_back_to_python() -> None:
    with subprocess.Popen([sys.executable, "-c", AT_WORK], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(60.0) == 3
        finally:
            process.kill()


def test_only_the_signals_that_are_named_are_heard_and_as_long_as_the_context_lasts() -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    heard = threading.Semaphore(0)
    others: list[int] = []
    open_files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    try:
        signal.signal(signal.SIGUSR2, lambda number, frame: others.append(number))
        for _ in range(3):
            with heard_at_once(heard.release, signal.SIGUSR1):
                os.kill(os.getpid(), signal.SIGUSR2)
                os.kill(os.getpid(), signal.SIGUSR1)
                assert heard.acquire(timeout=60.0)
            os.kill(os.getpid(), signal.SIGUSR1)  # ends nothing
        assert not heard.acquire(blocking=False)
        assert others == [signal.SIGUSR2] * 3
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert signal.set_wakeup_fd(-1) == -1
    if open_files is not None:
        assert len(os.listdir("/proc/self/fd")) == open_files
