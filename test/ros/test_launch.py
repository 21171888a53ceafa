"""The launch files, where ROS launch is there: it is no part of the ROS wheels."""

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from kinopt_ros.ros.client.client import Client

pytestmark = [pytest.mark.launch, pytest.mark.slow]

_STOP_SECONDS = 20.0
_ARGUMENTS = {
    "kinopt.launch.py": {
        "namespace",
        "config",
        "default_group",
        "trajectory_topic",
        "use_sim_time",
        "log_level",
        "simulated",
    },
    "panda.launch.py": {"simulated", "use_sim_time"},
    "moveit.launch.py": {"robot", "package", "simulated", "use_sim_time"},
    "four_robots.launch.py": {"robots", "track", "use_sim_time"},
}


def _missing() -> str | None:
    """Return why the launch files cannot be tried here; None if they can."""
    if find_spec("launch") is None or find_spec("launch_ros") is None:
        return "ROS launch (launch, launch_ros) is not installed; the ROS wheels lack it"
    try:
        # Another package of the name launch is on the Python package index.
        importlib.import_module("launch.launch_description_sources")
        importlib.import_module("launch_ros.actions")
        packages = importlib.import_module("ament_index_python.packages")
    except ImportError as error:
        return f"ROS launch cannot be imported: {error}"
    try:
        prefix = Path(packages.get_package_prefix("kinopt_ros"))
    except (LookupError, OSError):
        return "kinopt_ros is not in the ament index: colcon build, and source install/setup.bash"
    if not (prefix / "lib" / "kinopt_ros" / "kinopt_node").is_file():
        return f"no kinopt_node below {prefix}/lib/kinopt_ros, where `ros2 launch` looks for it"
    return None


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    reason = _missing()
    if reason is not None:
        pytest.skip(reason)


def _installed_file(name: str) -> Path:
    from ament_index_python.packages import get_package_share_directory

    return Path(get_package_share_directory("kinopt_ros"), "launch", name)


@contextmanager
def _launched(name: str, log: Path, arguments: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[bytes]]:
    """Launch a file as `ros2 launch` does; afterwards Ctrl-C, which must end it without an error."""
    program = (
        "import sys\n"
        "from launch import LaunchDescription, LaunchService\n"
        "from launch.actions import IncludeLaunchDescription\n"
        "from launch.launch_description_sources import PythonLaunchDescriptionSource\n"
        "given = [tuple(word.split(':=', 1)) for word in sys.argv[2:]]\n"
        "service = LaunchService(argv=sys.argv[2:], noninteractive=True)\n"
        "source = PythonLaunchDescriptionSource(sys.argv[1])\n"
        "included = IncludeLaunchDescription(source, launch_arguments=given)\n"
        "service.include_launch_description(LaunchDescription([included]))\n"
        "sys.exit(service.run())\n"
    )
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", program, str(_installed_file(name)), *arguments],
            env={**os.environ, "ROS_LOG_DIR": str(log.parent), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
        assert process.poll() is None, f"launch ended by itself:\n{log.read_text()}"
    finally:
        process.send_signal(signal.SIGINT)  # launch stops its node; after SIGTERM it would leave it behind
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    text = log.read_text()
    assert "process has finished cleanly" in text, text
    assert "Traceback" not in text, text


@pytest.mark.parametrize("name", _ARGUMENTS)
def test_a_launch_file_loads_and_every_argument_is_described(name: str) -> None:
    from launch.launch_description_sources import get_launch_description_from_python_launch_file

    description = get_launch_description_from_python_launch_file(str(_installed_file(name)))
    arguments = description.get_launch_arguments()
    assert all(argument.description for argument in arguments)
    assert {argument.name for argument in arguments} == _ARGUMENTS[name]


def test_the_panda_without_a_robot(ros: None, tmp_path: Path) -> None:
    log = tmp_path / "launch.log"
    with _launched("panda.launch.py", log) as process:
        client = Client("launch_client")
        try:
            assert "panda" in client.wait_until_ready(600.0, lambda: process.poll() is None)
        finally:
            client.close()


def test_several_robots_in_one_process(ros: None, tmp_path: Path) -> None:
    log = tmp_path / "launch.log"
    arguments = ("robots:=left=panda right=panda", "track:=false")
    with _launched("four_robots.launch.py", log, arguments) as process:
        for namespace in ("left", "right"):
            client = Client(f"launch_client_{namespace}", node=f"/{namespace}/kinopt")
            try:
                assert "panda" in client.wait_until_ready(600.0, lambda: process.poll() is None)
            finally:
                client.close()


def test_beside_a_robot_in_a_namespace(ros: None, panda_texts: tuple[str, str], tmp_path: Path) -> None:
    """The description comes from latched topics of the namespace, motions go where trajectory_topic says."""
    log = tmp_path / "launch.log"
    topic = "/arm_controller/joint_trajectory"
    arguments = ("namespace:=left", "default_group:=hand", f"trajectory_topic:={topic}")
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    with _launched("kinopt.launch.py", log, arguments) as process:
        client = Client("launch_client", node="/left/kinopt")
        publishers = [
            client.node.create_publisher(String, f"/left/{name}", latched)
            for name in ("robot_description", "robot_description_semantic")
        ]
        try:
            for publisher, text in zip(publishers, panda_texts, strict=True):
                publisher.publish(String(data=text))
            assert "panda" in client.wait_until_ready(600.0, lambda: process.poll() is None)
            client.spin_until(lambda: client.node.count_publishers(topic) > 0, 5.0)
            nodes = client.node.get_publishers_info_by_topic(topic)
            assert [(node.node_namespace, node.node_name) for node in nodes] == [("/left", "kinopt")]
        finally:
            client.close()
