"""Tests that arguments which a node cannot use lead to a sentence, without a stack trace."""

from pathlib import Path

import pytest
from support.forked_nodes import ForkedNode

from kinopt_ros.ros.client.process import NodeProcess
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


def refusal(log: Path, module: str, words: list[str], forked: bool) -> str:
    """The one sentence with which a module of ours ends, with status 1 and without a stack trace."""
    with (ForkedNode if forked else NodeProcess)({}, log, module=module, words=words) as process:
        ended, text = process.wait(120.0), process.log_text()
    assert ended == 1, text
    assert "Traceback" not in text
    (said,) = [line for line in text.splitlines() if line.startswith("kinopt: ")]
    return said


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_argument_is_named(ros: None, kind: str, tmp_path: Path) -> None:
    """The first one by a program that is started as users start it, as below."""
    arguments, words = WRONG[kind]
    forked = kind != next(iter(WRONG))
    said = refusal(tmp_path / "log", "kinopt_ros.ros.main", ["--ros-args", *arguments], forked)
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
def test_a_wrong_argument_of_the_simulated_robot_is_named(ros: None, kind: str, tmp_path: Path) -> None:
    arguments, words = WRONG_OF_SIMULATED_ROBOT[kind]
    forked = kind != next(iter(WRONG_OF_SIMULATED_ROBOT))
    module = "kinopt_ros.ros.client.simulated_robot"
    said = refusal(tmp_path / "log", module, ["panda", "--ros-args", *arguments], forked)
    assert all(word in said for word in words), said


def test_unknown_arguments_are_listed() -> None:
    assert "['--nosuch']" in str(argument_error(RuntimeError("['--nosuch']")))
