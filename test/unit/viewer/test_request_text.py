"""Requests to paste: they ask what the page asks."""

import contextlib
import io
import json
import shlex

import numpy as np

from kinopt_ros.viewer.request_text import as_python, as_service_call
from kinopt_ros.viewer.session import Session


def test_the_program_finds_the_same_solution(session: Session) -> None:
    T = session.targets["panda_link8"].copy()
    T[:3, 3] += 0.05, -0.1, 0.1
    session.set_target("panda_link8", T)
    session.moves_robot = False
    text = as_python(session, "panda")
    printed = io.StringIO()
    space: dict[str, object] = {}
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "pasted", "exec"), space)
    solution = session.solve()
    assert solution.q is not None
    result = space["result"]
    assert np.allclose(result.q[0, 0], solution.q[session.variables], atol=1e-6)  # type: ignore[attr-defined]
    assert "panda_joint1" in printed.getvalue()


def test_the_service_call_says_all_that_was_set(session: Session) -> None:
    session.settings.set("clearance", 0.02)
    session.settings.set("position_tolerance", 1e-3)
    words = shlex.split(as_service_call(session))
    assert words[:5] == ["ros2", "service", "call", "/kinopt/solve_ik", "kinopt_msgs/srv/SolveIK"]
    request = json.loads(words[5])
    assert request["clearance"] == 0.02
    assert request["position_tolerance"] == 1e-3
    assert request["tip_link"] == "panda_link8"
    assert len(request["state"]["name"]) == session.robot.nq
    session.nearest = True
    request = json.loads(shlex.split(as_service_call(session))[5])
    assert request["nearest"]
    assert "prefer" not in request
