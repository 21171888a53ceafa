"""The load test: its judges must be able to find fault, and the node must give them no reason."""

import json
import math
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from support.thorough import times

from kinopt_msgs.msg import Status as StatusMsg
from kinopt_msgs.srv import ApplyScene, ComputeFK, SolveIK
from kinopt_ros.bench.node.kinds import Batch, ForwardKinematics, Outcome, Single, Unreachable
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.robot.sources import load_robot
from kinopt_ros.status import Status

SEED = 4
Q = random_configurations(load_robot("panda"), 100, SEED)[:, :7]
"""Configurations from which the targets of Single of that seed were made."""


def answer(positions: Any, code: Status = Status.SUCCESS, rows: int = 1) -> Any:
    return SolveIK.Response(
        status=StatusMsg(code=int(code)),
        positions=np.ravel(positions).tolist(),
        codes=[int(code)] * rows,
    )


def judged(response: Any, number: int = 0) -> Outcome:
    return Single("client", SEED).judge(number, response)[0]


def test_the_right_answer_is_right() -> None:
    assert judged(answer(Q[0])) is Outcome.RIGHT
    assert judged(answer(Q[7]), 7) is Outcome.RIGHT


@pytest.mark.parametrize(
    "positions",
    [Q[1], Q[0] + 1e-3, Q[0] + 2.0 * math.pi * np.eye(7)[6], np.full(7, np.nan), Q[:2], []],
    ids=["of another request", "a little off", "beyond a limit", "not finite", "too many", "none"],
)
def test_a_success_that_is_none_is_wrong(positions: Any) -> None:
    assert judged(answer(positions)) is Outcome.WRONG


def test_refusals_and_failures_are_told_apart() -> None:
    assert judged(answer([], Status.QUEUE_FULL, 0)) is Outcome.REFUSED
    assert judged(answer([], Status.TIMED_OUT)) is Outcome.REFUSED
    assert judged(answer([], Status.NO_IK_SOLUTION)) is Outcome.UNSOLVED
    assert judged(answer([], Status.INVALID_GROUP_NAME, 0)) is Outcome.WRONG
    assert judged(answer(Q[0], Status.NO_IK_SOLUTION)) is Outcome.WRONG


def test_one_wrong_solution_among_a_thousand_is_found() -> None:
    batch = Batch("client", SEED)
    q = random_configurations(load_robot("panda"), 3000, SEED)[:1000, :7]
    assert batch.judge(0, answer(q, rows=1000))[0] is Outcome.RIGHT
    q[500, 3] += 0.01
    assert batch.judge(0, answer(q, rows=1000))[0] is Outcome.WRONG


def test_what_cannot_be_reached_must_fail() -> None:
    unreachable = Unreachable("client", SEED)
    assert unreachable.judge(0, answer([], Status.NO_IK_SOLUTION, 5))[0] is Outcome.RIGHT
    assert unreachable.judge(0, answer(Q[:5], rows=5))[0] is Outcome.WRONG
    assert unreachable.judge(0, answer([], Status.FAILURE, 0))[0] is Outcome.WRONG


def test_poses_of_forward_kinematics_are_compared() -> None:
    fk = ForwardKinematics("client", SEED)
    empty = ComputeFK.Response(status=StatusMsg(code=int(Status.SUCCESS)))
    assert fk.judge(0, empty)[0] is Outcome.WRONG


QUIET = {"single", "batch", "unreachable", "fk"}
DISTURBING = {"scene", "motion", "move_action", "description", "parameters", "target_pose"}
"""Kinds of requests; the latter need Pinocchio, by which they are judged."""


def test_the_node_under_load_and_disturbed(moveit: object) -> None:
    """Where Pinocchio is missing, without disturbances."""
    seconds = str(times(2, 4))
    command = [
        sys.executable,
        "-m",
        "kinopt_ros.cli",
        "bench",
        "load",
        "--clients",
        "6",
        "--duration",
        seconds,
    ]
    disturbed = find_spec("pinocchio") is not None
    command += [*(["--disturb"] if disturbed else []), "--rate", "5", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert set(result["kinds"]) >= (QUIET | DISTURBING if disturbed else QUIET)
    for kind, row in result["kinds"].items():
        assert row["requests"] > 0, kind
        assert row["outcomes"].get("wrong", 0) == row["outcomes"].get("lost", 0) == 0, row
    assert result["kinds"]["single"]["outcomes"]["right"] >= 10
    assert result["health"]["p50_ms"] > 0.0
    assert result["memory"]["max_mib"] > 10.0
    assert result["threads"]["max"] > 1
    assert result["file_descriptors"]["max"] > 1
    assert result["node_alive"]


def test_a_load_that_makes_no_sense_is_refused() -> None:
    command = [sys.executable, "-m", "kinopt_ros.cli", "bench", "load", "--clients", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "--clients is 1" in done.stdout + done.stderr


def test_a_scene_that_a_description_left_as_it_was_is_no_fault() -> None:
    from kinopt_ros.bench.node.disturbances import MovingScene

    scene = MovingScene.__new__(MovingScene)
    scene._version, scene.known = 7, {}

    def judged(code: Status, version: int) -> Outcome:
        answer = ApplyScene.Response(status=StatusMsg(code=int(code)), version=version)
        return scene._judge(answer)[0]

    assert judged(Status.ENVIRONMENT_CHANGED, 7) is Outcome.REFUSED
    assert judged(Status.QUEUE_FULL, 0) is Outcome.REFUSED
    assert judged(Status.SUCCESS, 8) is Outcome.RIGHT
    assert judged(Status.ENVIRONMENT_CHANGED, 9) is Outcome.WRONG
    assert judged(Status.SUCCESS, 9) is Outcome.WRONG
