"""Feeds inputs in processes with bounded memory and time, and says which ones failed and how to repeat them."""

import faulthandler
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fuzz.kinds import kind
from fuzz.source import Source
from kinopt_ros.errors import KinoptError

ROOM = 2**30
"""Most memory that an input may add to the process, bytes."""
SECONDS = 10
"""Most CPU time for one input, s."""
_WAITED = 120
"""Seconds by the clock after which an input that does not use the processor hangs: other work may load the machine."""
_LONGEST = 10_000
"""Longest message of an error, characters."""


@dataclass(frozen=True)
class Failure:
    """An input that did not end as it must."""

    kind: str
    seed: int
    index: int
    what: str

    def __str__(self) -> str:
        repeat = f'make fuzz ARGS="--kind {self.kind} --seed {self.seed} --first {self.index} --inputs 1"'
        return f"{self.kind} {self.index} of seed {self.seed}: {self.what}\n  repeat: {repeat}"


def run(name: str, seed: int, first: int, inputs: int) -> Iterator[Failure]:
    """Feed inputs ``first`` to ``first + inputs - 1`` of a kind. A process that dies is followed by another one."""
    end = first + inputs
    while first < end:
        with tempfile.TemporaryDirectory() as folder:
            words = [sys.executable, "-m", "fuzz.runner", name, str(seed), str(first), str(end), folder]
            worker = subprocess.run(words, capture_output=True, check=False, env=_environment())
            at = Path(folder) / "at"
            reached = int(at.read_text()) if at.exists() else None
        for line in worker.stdout.decode().splitlines():
            if line.startswith("{"):
                yield Failure(name, seed, **json.loads(line))
        if worker.returncode == 0:
            return
        said = worker.stderr.decode(errors="replace")[-3000:]
        if reached is None:
            yield Failure(name, seed, first, f"the process did not begin:\n{said}")
            return
        yield Failure(name, seed, reached, f"the process ended with {worker.returncode}:\n{said}")
        first = reached + 1


def _environment() -> dict[str, str]:
    """Return an environment with which a process imports from where this one does."""
    path = [str(Path(__file__).parents[1]), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def _work(name: str, seed: int, first: int, end: int, folder: Path) -> None:
    module = kind(name)
    inputs = folder / "inputs"
    inputs.mkdir()
    module.prepare(inputs)
    faulthandler.register(signal.SIGPROF, chain=True)  # says where it was, then ends
    _bound_memory()
    at = os.open(folder / "at", os.O_WRONLY | os.O_CREAT)
    for index in range(first, end):
        os.pwrite(at, f"{index:20}".encode(), 0)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        faulthandler.dump_traceback_later(_WAITED, exit=True)
        what = _outcome(module, Source(f"{name} {seed} {index}"), inputs)
        if what:
            os.write(1, (json.dumps({"index": index, "what": what}) + "\n").encode())
    signal.setitimer(signal.ITIMER_PROF, 0)
    faulthandler.cancel_dump_traceback_later()


def _outcome(module: object, source: Source, folder: Path) -> str:
    """Return what is wrong; nothing if nothing is."""
    try:
        module.feed(source, folder)  # type: ignore[attr-defined]
    except KinoptError as error:
        sentence = str(error)
        if len(sentence) > _LONGEST:
            return f"a message of {len(sentence)} characters: {sentence[:200]!r}"
        try:
            sentence.encode()
        except UnicodeEncodeError:
            return f"a message that cannot be sent: {sentence[:200]!r}"
        return _memory_ran_out(error)
    except BaseException as error:  # whatever it is, it is reported
        return "".join(traceback.format_exception(error))[-3000:]
    return ""


def _memory_ran_out(error: BaseException | None) -> str:
    """Somebody may have made a sentence of it."""
    while error is not None:
        if isinstance(error, MemoryError):
            return f"more than {ROOM} bytes"
        error = error.__cause__ or error.__context__
    return ""


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM,) * 2)


if __name__ == "__main__":
    _work(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
