"""The demonstration and the tests cannot be reached from elsewhere. A plain node can: we would notice."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rclpy.utilities import get_rmw_implementation_identifier

from kinopt_ros.ros.client import isolation as isolation_module
from kinopt_ros.ros.client.client import Client
from kinopt_ros.ros.client.isolation import MIDDLEWARE, elsewhere, isolate
from kinopt_ros.ros.client.process import NodeProcess

SUPPORT = Path(__file__).parents[1] / "support"
SERVE = """
import os, subprocess, sys, time
{isolation}
import rclpy
from kinopt_ros.ros.client.client import Client
program = [sys.executable, "-m", "kinopt_ros.ros.main"]
with open(os.devnull, "w") as nothing:
    node = subprocess.Popen(program, stdout=nothing, stderr=nothing)
try:
    rclpy.init(args=[])
    client = Client()
    assert client.node.create_client(Trigger, "/kinopt/ready").wait_for_service(60.0)
    print(os.environ["ROS_DOMAIN_ID"], flush=True)
    time.sleep(60.0)
finally:
    node.kill()
""".replace("import rclpy", "import rclpy\nfrom std_srvs.srv import Trigger")
ISOLATED = "from kinopt_ros.ros.client.isolation import isolate; isolate()"
LOCALHOST = 'os.environ.update(ROS_DOMAIN_ID="77", ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")'
ASK = """
import os, sys
os.environ.update(ROS_DOMAIN_ID=sys.argv[1], ROS_STATIC_PEERS=sys.argv[2], ROS_AUTOMATIC_DISCOVERY_RANGE="SUBNET")
import rclpy
from std_srvs.srv import Trigger
rclpy.init(args=[])
node = rclpy.create_node("elsewhere")
client = node.create_client(Trigger, "/kinopt/ready")
if not client.wait_for_service({seconds}):
    print("not heard of")
else:
    future = client.call_async(Trigger.Request())
    rclpy.spin_until_future_complete(node, future, timeout_sec={seconds})
    print("answered" if future.done() else "not answered")
"""


def test_nothing_is_imported_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`kinopt demo` in /tmp ran what anybody had put there."""
    for module in ("yaml", "numpy", "rclpy"):
        (tmp_path / f"{module}.py").write_text(f"raise SystemExit('{module} of the current folder was run')")
    monkeypatch.chdir(tmp_path)
    with NodeProcess({}, tmp_path / "node.log", words=["--nonsense"]) as process:
        assert process.wait(60.0) == 1, process.log_text()
        assert "unknown argument '--nonsense'" in process.log_text()


def test_nobody_listens_to_other_networks(process: NodeProcess, client: Client) -> None:
    assert get_rmw_implementation_identifier() == MIDDLEWARE
    assert elsewhere(process.pid) == []
    assert elsewhere(os.getpid()) == []
    assert client.call("ready", _trigger()).success


def test_a_socket_that_others_reach_is_found() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as local,
        socket.socket(type=socket.SOCK_DGRAM) as open_,
    ):
        local.bind(("127.0.0.1", 0))
        assert elsewhere(os.getpid()) == []
        open_.bind(("0.0.0.0", 0))
        assert elsewhere(os.getpid()) == [f"udp 0.0.0.0:{open_.getsockname()[1]}"]
    with socket.socket() as listening:
        listening.bind(("", 0))
        listening.listen()
        assert elsewhere(os.getpid()) == [f"tcp 0.0.0.0:{listening.getsockname()[1]}"]


@pytest.mark.skipif(not socket.has_ipv6, reason="Python has no IPv6 here")
def test_a_socket_of_the_other_protocol_is_found() -> None:
    with (
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as local,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as open_,
    ):
        try:
            local.bind(("::1", 0))
        except OSError as error:
            pytest.skip(f"no IPv6 here: {error}")
        assert elsewhere(os.getpid()) == []
        open_.bind(("::", 0))
        assert elsewhere(os.getpid()) == [f"udp6 :::{open_.getsockname()[1]}"]


def test_nothing_of_the_caller_opens_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables by which a shell sends ROS elsewhere are gone, and the domain is another one."""
    before = os.environ.copy()
    try:
        for name in (
            "ROS_STATIC_PEERS",
            "ROS_DISCOVERY_SERVER",
            "FASTDDS_BUILTIN_TRANSPORTS",
            "ROS_LOCALHOST_ONLY",
        ):
            os.environ[name] = "1"
        os.environ["ROS_DOMAIN_ID"] = before.get("ROS_DOMAIN_ID", "0")
        assert isolate() != before.get("ROS_DOMAIN_ID", "0")
        for name in (
            "ROS_STATIC_PEERS",
            "ROS_DISCOVERY_SERVER",
            "FASTDDS_BUILTIN_TRANSPORTS",
            "ROS_LOCALHOST_ONLY",
        ):
            assert name not in os.environ
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_no_two_processes_have_the_same_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Process ids alone chose them: a node of one test run heard the robot of another."""
    monkeypatch.setattr(isolation_module, "_taken", [])
    own = {isolation_module._free_domain("7") for _ in range(5)}
    assert len(own) == 5
    assert "7" not in own
    first = int(min(own, key=int)) - 1
    monkeypatch.setattr(os, "getpid", lambda: first)  # a process that begins to look at the same place
    assert isolation_module._free_domain("7") not in own


@pytest.mark.slow
@pytest.mark.parametrize(
    ("isolation", "seconds", "heard"),
    [(LOCALHOST, 30.0, "answered"), (ISOLATED, 10.0, "not heard of")],
    ids=["discovery range LOCALHOST alone", "isolated"],
)
def test_who_is_on_another_network(isolation: str, seconds: float, heard: str) -> None:
    """Discovery range LOCALHOST alone lets anybody in who knows the address: the test would notice."""
    reason = _no_networks()
    if reason is not None:
        pytest.skip(reason)
    plain = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("ROS_", "FAST", "SKIP_", "RMW_"))
    }
    arguments = [SERVE.format(isolation=isolation), ASK.format(seconds=seconds)]
    result = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, str(SUPPORT / "two_networks.py"), *arguments],
        env=plain,
        capture_output=True,
        text=True,
        timeout=200.0,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == heard, result.stdout + result.stderr


def _no_networks() -> str | None:
    """Return why no networks can be made here; None if they can."""
    missing = [tool for tool in ("ip", "unshare", "nsenter", "mount") if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} not installed: no second network can be made here"
    made = subprocess.run(
        [
            "unshare",
            "--net",
            "--mount",
            "ip",
            "link",
            "add",
            "name",
            "cable",
            "type",
            "veth",
            "peer",
            "name",
            "end",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if made.returncode == 0 else f"no second network can be made here: {made.stderr.strip()}"


def _trigger() -> object:
    from std_srvs.srv import Trigger

    return Trigger.Request()
