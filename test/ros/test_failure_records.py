"""Failed requests become records that can be solved again."""

import time
from pathlib import Path

from support.ros_requests import StartNode, ik, pose

from kinopt_ros.cli import main
from kinopt_ros.problems.record import load_record
from kinopt_ros.ros.client.client import Client
from kinopt_ros.status import Status


def records(folder: Path, count: int, client: Client) -> list[Path]:
    end = time.monotonic() + 60.0
    while len(list(folder.glob("*.yaml"))) < count and time.monotonic() < end:
        client.spin(0.1)
    client.spin(0.2)  # a half-written one would show
    return sorted(folder.glob("*.yaml"))


def test_failures_are_kept_and_successes_are_not(
    start_node: StartNode, panda_parameters: dict[str, object], tmp_path: Path
) -> None:
    _, client = start_node(
        "recorder", {**panda_parameters, "record_failures": str(tmp_path), "cpu.max_restarts": 7}
    )
    assert client.call("solve_ik", ik(pose())).status.code == Status.SUCCESS
    assert client.call("solve_ik", ik(pose(9.0), nearest=True)).status.code == Status.NEAREST
    assert client.call("solve_ik", ik(pose(9.0), pose(), pose(8.0))).status.code == Status.NO_IK_SOLUTION
    (file,) = records(tmp_path, 1, client)
    record = load_record(file)
    assert record.robot == "panda"
    assert record.status == (Status.NO_IK_SOLUTION,) * 2  # the two that failed
    assert all("out of reach" in message for message in record.messages)
    assert record.options["max_restarts"] == 7  # else another effort would be replayed
    assert main(["replay", str(file)]) == 0


def test_a_folder_that_cannot_be_used_ends_the_start(
    start_node: StartNode, panda_parameters: dict[str, object], tmp_path: Path
) -> None:
    process, _ = start_node(
        "recorder", {**panda_parameters, "record_failures": str(tmp_path / "nowhere")}, ready=False
    )
    end = time.monotonic() + 60.0
    while process.running and time.monotonic() < end:
        time.sleep(0.1)
    assert not process.running
    assert "record_failures" in process.log_text()
