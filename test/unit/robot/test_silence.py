"""What is said of a robot whose joint states have stopped."""

import time

from kinopt_ros.robot.silence import silence

NOW = 1_750_000_000.0


def test_a_robot_that_is_heard_has_no_sentence() -> None:
    assert silence({"a": 0.2, "b": 0.99}, 1.0) == ""


def test_it_says_which_joints_for_how_long_and_since_when() -> None:
    since = time.strftime("%H:%M:%S", time.localtime(NOW - 75.0))
    assert silence({"a": 75.0, "b": 0.1}, 1.0, NOW) == (
        f"joint_states has said nothing of a for 75 s (since {since}): what is shown is where it was then"
    )
    assert "nothing of the robot for 75 s" in silence({"a": 75.0, "b": 74.0}, 1.0, NOW)


def test_many_joints_are_counted() -> None:
    ages = {f"j{i}": 5.0 for i in range(50)} | {"wheel": 0.0}
    assert "nothing of j0, j1, j2, ... (50 in all) for 5 s" in silence(ages, 1.0, NOW)


def test_one_that_was_never_heard_is_said_to_be_so() -> None:
    assert "has not said yet where the robot is" in silence({}, 1.0)
