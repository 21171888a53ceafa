"""A node in a process of its own, on this machine only: for the demonstration, benchmarks and tests."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

_STOP_SECONDS = 5.0


def private_environment() -> dict[str, str]:
    """Variables that keep ROS traffic on this machine and apart from other people's nodes."""
    # 1 to 101 are the domains whose ports are free of the system's ephemeral ones.
    return {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_DOMAIN_ID": str(os.getpid() % 101 + 1)}


class NodeProcess:
    """Runs `kinopt_node` with parameters while the context lasts; its log goes to ``log``."""

    def __init__(
        self,
        parameters: Mapping[str, Any],
        environment: Mapping[str, str],
        log: Path | None = None,
        name: str = "kinopt",
    ) -> None:
        self._parameters = parameters
        self._name = name
        self._environment = {**os.environ, **environment}
        self._log = log
        self._directory = tempfile.TemporaryDirectory(prefix="kinopt_")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id."""
        if self._process is None:
            raise RuntimeError("the node was not started")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> "NodeProcess":
        parameters = Path(self._directory.name, "parameters.yaml")
        parameters.write_text(yaml.safe_dump({"/**": {"ros__parameters": dict(self._parameters)}}))
        log = self._log or Path(self._directory.name, "node.log")
        with log.open("wb") as output:
            arguments = ["--ros-args", "-r", f"__node:={self._name}", "--params-file", str(parameters)]
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kinopt_ros.ros.main", *arguments],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._log = log
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._directory.cleanup()

    def log_text(self) -> str:
        """What the node has printed so far."""
        return self._log.read_text(errors="replace") if self._log is not None and self._log.exists() else ""

    def interrupt(self) -> None:
        """Send what Ctrl-C sends."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self, timeout: float) -> int | None:
        """Exit status, or None if it has not ended within the timeout (s)."""
        if self._process is None:
            return None
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> int | None:
        """End the process, politely first; returns its exit status."""
        self.interrupt()
        if self._process is not None and self.wait(_STOP_SECONDS) is None:
            self._process.kill()
        return self.wait(_STOP_SECONDS)
