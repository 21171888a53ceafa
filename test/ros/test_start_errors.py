"""Tests that arguments which a node cannot use lead to a sentence, without a stack trace."""

import subprocess
import sys

import pytest

from kinopt_ros.ros.serving.start_errors import argument_error

WRONG = {
    "log level": (["--log-level", "nosuch"], ["--log-level nosuch", "debug, info, warn, error and fatal"]),
    "topic": (["-r", "joint_states:=1/2"], ["joint_states:=1/2", "FROM:=TO"]),
    "number for a text": (["-p", "default_group:=1"], ["default_group takes a text, not 1", "quotes"]),
    "one of rclpy's own": (["-p", "use_sim_time:=3"], ["use_sim_time", "BOOL"]),
    "folder": (["-p", "record_failures:=~nosuchuser/x"], ["record_failures", "existing folder"]),
    "a text that an option does not take": (
        ["-p", "jax_lm.device:=abacus"],
        ["jax_lm.device", "auto, cpu, cuda"],
    ),
}


def refusal(words: list[str]) -> str:
    """The one sentence with which a module of ours ends, with status 1 and without a stack trace."""
    ended = subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, timeout=120.0, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    (said,) = [line for line in ended.stderr.splitlines() if line.startswith("kinopt: ")]
    return said


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_argument_is_named(ros: None, kind: str) -> None:
    arguments, words = WRONG[kind]
    said = refusal(["kinopt_ros.ros.main", "--ros-args", *arguments])
    assert all(word in said for word in words), said
    assert "/project/" not in said


WRONG_OF_SIMULATED_ROBOT = {
    "log level": (["--log-level", "nosuch"], ["--log-level nosuch", "debug, info, warn, error and fatal"]),
    "remap rule": (["-r", "a"], ["-r a", "FROM:=TO"]),
    "text for a number": (["-p", "rate:=fast"], ["rate is 'fast'", "1 to 1000"]),
    "drives that are ahead": (["-p", "drive_lag:=-1"], ["drive_lag is -1", "0 to 1 s"]),
    "a robot that stands": (["-p", "speed_scaling:=none"], ["speed_scaling is 'none'", "a number"]),
    "number for a text": (["-p", "start:=1"], ["'start'", "STRING"]),
    "topic": (["-p", "trajectory_topics:=['1 bad']"], ["'1 bad'", "topic name"]),
    "name of a controller": (["-p", "controllers:=['a b=panda_arm']"], ["'a b'", "topic name"]),
}


@pytest.mark.parametrize("kind", WRONG_OF_SIMULATED_ROBOT)
def test_a_wrong_argument_of_the_simulated_robot_is_named(ros: None, kind: str) -> None:
    arguments, words = WRONG_OF_SIMULATED_ROBOT[kind]
    said = refusal(["kinopt_ros.ros.client.simulated_robot", "panda", "--ros-args", *arguments])
    assert all(word in said for word in words), said


def test_unknown_arguments_are_listed() -> None:
    assert "['--nosuch']" in str(argument_error(RuntimeError("['--nosuch']")))
