"""Node in a process of its own, on this machine only, for the demonstration, benchmarks and tests."""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from kinopt_ros.ros.client.isolation import isolate

__all__ = ["NodeProcess", "isolate"]

_DUMPER = yaml.CSafeDumper if yaml.__with_libyaml__ else yaml.SafeDumper
_STOP_SECONDS = 30.0
"""Time until a node is killed, s: nodes end within a second or two, on a busy machine later."""


class NodeProcess:
    """Runs the node with parameters while the context lasts, in this process's environment; its log goes to ``log``.

    Call ``isolate`` before.
    """

    def __init__(
        self,
        parameters: Mapping[str, Any],
        log: Path | None = None,
        name: str = "kinopt",
        namespaces: Mapping[str, Mapping[str, Any]] | None = None,
        module: str = "kinopt_ros.ros.main",
        words: Sequence[str] = (),
    ) -> None:
        """With ``namespaces``, several nodes, one in each, with further parameters of its own. ``module`` has the
        program, which gets ``words`` as its arguments."""
        self._module = module
        self._words = tuple(words)
        self._parameters = parameters
        self._name = name
        self._namespaces = dict(namespaces or {})
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
        by_node = {"/**": self._parameters}
        by_node |= {f"/{namespace}/{self._name}": own for namespace, own in self._namespaces.items()}
        said = {node: {"ros__parameters": dict(own)} for node, own in by_node.items()}
        parameters.write_text(yaml.dump(said, Dumper=_DUMPER))
        log = self._log or Path(self._directory.name, "node.log")
        log.write_bytes(b"")
        arguments = ["--ros-args", "-r", f"__node:={self._name}", "--params-file", str(parameters)]
        self._process = self._start(self._module, [*self._words, *self._namespaces, *arguments], log)
        self._log = log
        return self

    def _start(self, module: str, words: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """Start a module as a program, which writes to the end of a file."""
        with log.open("ab") as output:
            return subprocess.Popen(
                # -P: nothing is imported from the current folder, into which others may have put something.
                [sys.executable, "-P", "-m", module, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._directory.cleanup()

    def log_text(self) -> str:
        """Return what the node has printed so far."""
        return self._log.read_text(errors="replace") if self._log is not None and self._log.exists() else ""

    def interrupt(self) -> None:
        """Send what Ctrl-C sends."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self, timeout: float) -> int | None:
        """Return the exit status, or None if it has not ended within the timeout (s)."""
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
