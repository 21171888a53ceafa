"""What the page says."""

import math
from dataclasses import replace

import numpy as np

from kinopt_ros.status import Status
from kinopt_ros.viewer.servo import ServoState
from kinopt_ros.viewer.session import Near, Session
from kinopt_ros.viewer.words import of_near, of_servo, of_solution, plain


def test_names_of_others_are_no_markup() -> None:
    assert plain("a_b*c [x](http://y) <script>\n# z") == "a\\_b\\*c \\[x\\](http://y) \\<script\\> \\# z"


def test_solutions_and_failures_are_said(session: Session) -> None:
    solved = session.solve()
    said = of_solution(solved, session.nearest_bodies(session.q))
    assert said.startswith("**Solved** by cpu in ")
    assert "error: position 0.0" in said
    assert "clearance: " in said
    T = session.targets["panda_link8"].copy()
    T[0, 3] += 3.0
    session.set_target("panda_link8", T)
    said = of_solution(session.solve(), None)
    assert said.startswith("**No solution** (")
    assert "out of reach" in said
    assert "best attempt: off by position" in said


def test_what_was_not_checked_is_said(session: Session) -> None:
    solution = replace(session.solve(), not_checked=("self-collision: no shapes",))
    assert "not checked: self-collision: no shapes" in of_solution(solution, None)


def test_collisions_are_said() -> None:
    assert "**in collision**: a and b, 12.0 mm deep" in of_near(Near(-0.012, "a", "b"))
    assert of_near(Near(math.inf, "", "")) == "clearance: nothing to compare"


def test_what_stops_servo_is_said() -> None:
    q = np.zeros(7)
    stopped = ServoState(q, Status.SERVO_INFEASIBLE, "the wall is in the way", 0.1, 0.0, True)
    assert of_servo(stopped).startswith("**Servo stopped** (SERVO_INFEASIBLE): the wall is in the way")
    assert "at rest" in of_servo(ServoState(q, Status.SUCCESS, "", math.nan, math.nan, True))
    slow = ServoState(q, Status.SUCCESS, "slowed down", 0.1, 0.0, False)
    assert "following, slowed down" in of_servo(slow)
