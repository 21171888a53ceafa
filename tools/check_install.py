"""Checks what colcon installed, in a shell that has sourced install/setup.bash: files, imports, a running node.

Usage: python tools/check_install.py INSTALL_FOLDER
"""

import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path

NODE_TIMEOUT_S = 60.0


def check_files(install: Path) -> None:
    """Everything `ros2 run`, `ros2 launch` and `import` need lies below the install folder."""
    from ament_index_python.packages import get_package_share_directory

    import kinopt_msgs.srv
    import kinopt_ros

    for module in (kinopt_ros, kinopt_msgs.srv):
        assert Path(str(module.__file__)).is_relative_to(install), f"{module.__name__}: {module.__file__}"
    for package in ("kinopt_ros", "kinopt_msgs", "kinopt_ruckig"):
        share = Path(get_package_share_directory(package))
        assert share.is_relative_to(install), share
        assert (share / "package.xml").is_file()
    for name in ("kinopt", "kinopt_node"):
        program = install / "kinopt_ros" / "lib" / "kinopt_ros" / name
        assert os.access(program, os.X_OK), f"missing: {program}"
    solvers = {entry.name for entry in entry_points(group="kinopt_ros.solvers")}
    assert "cpu" in solvers, solvers


def check_node(install: Path) -> None:
    """The installed node starts and answers a request with the message package built beside it."""
    import rclpy

    from kinopt_msgs.srv import ListSolvers
    from kinopt_ros.ros.client.isolation import elsewhere, isolate

    isolate()
    node = subprocess.Popen([install / "kinopt_ros" / "lib" / "kinopt_ros" / "kinopt_node"])
    rclpy.init()
    client_node = rclpy.create_node("check_install")
    try:
        client = client_node.create_client(ListSolvers, "/kinopt/list_solvers")
        deadline = time.monotonic() + NODE_TIMEOUT_S
        while not client.wait_for_service(timeout_sec=1.0):
            assert node.poll() is None, f"kinopt_node ended with {node.returncode}"
            assert time.monotonic() < deadline, "kinopt_node offers no /kinopt/list_solvers"
        future = client.call_async(ListSolvers.Request())
        rclpy.spin_until_future_complete(client_node, future, timeout_sec=10.0)
        answer = future.result()
        assert answer is not None, "kinopt_node did not answer"
        assert not elsewhere(node.pid), elsewhere(node.pid)
        print("solvers of the installed node:", ", ".join(solver.name for solver in answer.solvers))
    finally:
        client_node.destroy_node()
        rclpy.try_shutdown()
        node.terminate()
        node.wait(timeout=20.0)


def main() -> None:
    """Run the checks."""
    install = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as elsewhere:
        os.chdir(elsewhere)  # nothing is imported from the source folder
        sys.path[:] = [path for path in sys.path if path not in ("", str(Path(__file__).resolve().parent))]
        check_files(install)
        check_node(install)
        os.chdir("/")
    print("installed files, imports and node: good")


if __name__ == "__main__":
    main()
