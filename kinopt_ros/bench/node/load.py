"""``kinopt bench load``: many clients at once, every answer judged, beside the cheapest service there is."""

import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from std_srvs.srv import Trigger

from kinopt_ros.array import Float64
from kinopt_ros.bench.node.clients import LOST, NODE, ClientSpec, Tally, run_clients
from kinopt_ros.bench.node.defects import defects_in
from kinopt_ros.bench.node.kinds import Single
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.ros.client.client import Client, NodeTimeoutError
from kinopt_ros.ros.client.isolation import isolate
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.robot.bundled import bundled_parameters

_LIGHT_PROCESSES = 2
_IDLE_CALLS = 200
_HEALTH_PERIOD = 0.05
"""Time between two calls of ~/ready, s."""
_CONNECT_SECONDS = 60.0
_USED = (("memory", "_mib"), ("threads", ""), ("file_descriptors", ""))
"""Names of what ``used`` gives, and its units in the names of figures."""
_SETTLED = 0.2
"""Share of the test after which the node's memory should not grow any more."""


@dataclass
class _Watched:
    """Observations from outside while the load runs."""

    health: list[float] = field(default_factory=list)
    """Times of ~/ready, s."""
    health_lost: int = 0
    diagnostics: list[float] = field(default_factory=list)
    """Times when messages on /diagnostics came, s."""
    used: list[tuple[float, ...]] = field(default_factory=list)
    """Time (s), and what the node uses then: resident memory (MiB), threads, file descriptors."""
    node_cpu: float = 0.0
    """Processor time of the node, s."""
    clients_cpu: float = 0.0


def measure(
    clients: int,
    duration: float,
    rate: float,
    heavy_rate: float,
    unreachable: bool,
    disturbed: bool,
    report: Callable[[float], object],
) -> dict[str, Any]:
    """Measure one node for the Panda, with clients in other processes.

    Args:
        clients: how many. One in 32 sends 1,000 targets per request, as many send unreachable ones, one in 10 asks
            for forward kinematics, the others send single targets.
        duration: s.
        rate: requests per second of each client with small requests; 0: the next one follows the answer.
        heavy_rate: likewise of those with 1,000 or with unreachable targets.
        unreachable: whether some clients send unreachable targets.
        disturbed: whether meanwhile the scene changes ten times a second, descriptions come every minute, motions are
            asked for and cancelled, and parameters are set. Needs Pinocchio and coal, which judge the motions.
        report: is told the share of the time that has passed.

    Raises:
        InvalidRequestError: too few clients, or a negative number.
        NodeTimeoutError: the node or a client did not start.
    """
    if clients < 4 or not duration > 0.0 or not rate >= 0.0 or not heavy_rate >= 0.0:
        raise InvalidRequestError(
            f"--clients is {clients}, --duration {duration:g}, --rate {rate:g} and --heavy-rate {heavy_rate:g}; "
            "allowed are 4 or more clients, a duration above 0, and rates of 0 or more"
        )
    isolate()
    rclpy.init(args=[])
    observer = Client("kinopt_load_observer")
    try:
        start = time.monotonic()
        with NodeProcess(bundled_parameters("panda")) as process:
            first = _first_answer(observer, process, start)
            idle = _idle_times(observer)
            groups = _groups(clients, rate, heavy_rate, unreachable)
            tallies, watched = _under_load(observer, process, groups, disturbed, duration, report)
            alive = process.running
            log = process.log_text()
    finally:
        observer.close()
        rclpy.try_shutdown()
    return {
        "clients": clients,
        "duration_s": duration,
        "rate_hz": rate,
        "heavy_rate_hz": heavy_rate,
        "start_to_first_answer_s": first,
        "idle": {name: _times(times) for name, times in idle.items()},
        "kinds": {kind: _record(tally, duration) for kind, tally in sorted(tallies.items())},
        "health": {"lost": watched.health_lost, **_times(np.array(watched.health))},
        "diagnostics": _periods(watched.diagnostics),
        "cpu_cores": {"node": watched.node_cpu / duration, "clients": watched.clients_cpu / duration},
        **growth_of(watched.used),
        "node_alive": alive,
        **defects_in(log),
    }


def faultless(result: dict[str, Any]) -> bool:
    """Whether no answer was lost or wrong and the node lives."""
    bad = sum(row["outcomes"].get(name, 0) for row in result["kinds"].values() for name in (LOST, "wrong"))
    return bool(
        bad == 0 and result["health"]["lost"] == 0 and result["node_alive"] and not result["internal_errors"]
    )


def _groups(clients: int, rate: float, heavy_rate: float, unreachable: bool) -> list[list[ClientSpec]]:
    """Clients by process. The heavy ones keep to themselves: taking in their answers must not delay other clients."""
    heavy, fk = max(1, clients // 32), max(1, clients // 10)
    kinds = ["batch"] * heavy + ["unreachable"] * (heavy * unreachable)
    heavy = len(kinds)
    kinds += ["fk"] * fk
    kinds += ["single"] * (clients - len(kinds))
    specs = [
        ClientSpec(kind, f"{kind}_{i}", i, heavy_rate if i < heavy else rate) for i, kind in enumerate(kinds)
    ]
    light = specs[heavy:]
    return [specs[:heavy], *(light[i::_LIGHT_PROCESSES] for i in range(_LIGHT_PROCESSES))]


def _first_answer(observer: Client, process: NodeProcess, start: float) -> float:
    """Seconds from the start of the process to the first solved request."""
    observer.wait_until_ready(alive=lambda: process.running)
    kind = Single("first", 0)
    answer = observer.ask_while_stale(
        lambda: observer.call("solve_ik", kind.request(0)), lambda response: int(response.status.code)
    )
    elapsed = time.monotonic() - start
    outcome, sentence = kind.judge(0, answer)
    if outcome.value != "right":
        raise NodeTimeoutError(f"the first answer is {outcome.value}: {sentence}")
    return elapsed


def _idle_times(observer: Client) -> dict[str, Float64]:
    """Calls in turn, without any load: what the load is to be compared with."""
    kind = Single("idle", 1)
    trigger, single = np.empty(_IDLE_CALLS), np.empty(_IDLE_CALLS)
    for i in range(-20, _IDLE_CALLS):
        start = time.perf_counter()
        observer.call("ready", Trigger.Request())
        middle = time.perf_counter()
        observer.call("solve_ik", kind.request(i))
        end = time.perf_counter()
        trigger[max(i, 0)], single[max(i, 0)] = middle - start, end - middle
    return {"ready": trigger, "single": single}


def _under_load(
    observer: Client,
    process: NodeProcess,
    groups: Sequence[Sequence[ClientSpec]],
    disturbed: bool,
    duration: float,
    report: Callable[[float], object],
) -> tuple[dict[str, Tally], _Watched]:
    context = multiprocessing.get_context("spawn")
    connections, workers = [], []
    try:
        bodies: list[tuple[Any, tuple[Any, ...]]] = [
            (run_clients, (group, number, duration)) for number, group in enumerate(groups)
        ]
        if disturbed:
            from kinopt_ros.bench.node.disturbances import run_disturbances  # needs Pinocchio

            bodies.append((run_disturbances, (NODE, duration)))
        for body, arguments in bodies:
            ours, theirs = context.Pipe()
            worker = context.Process(target=body, args=(*arguments, theirs), daemon=True)
            with _nothing_from_here():
                worker.start()
            theirs.close()
            connections.append(ours)
            workers.append(worker)
        for connection in connections:
            if not connection.poll(_CONNECT_SECONDS):
                raise NodeTimeoutError(f"clients did not find the node within {_CONNECT_SECONDS:g} s")
            connection.recv()
        for connection in connections:
            connection.send("go")
        watched = _watch(observer, process, duration, report)
        tallies: dict[str, Tally] = {}
        for connection in connections:
            while not connection.poll(0.0):
                observer.spin(0.1)
            group_tallies, used = connection.recv()
            watched.clients_cpu += used
            for kind, tally in group_tallies.items():
                tallies.setdefault(kind, Tally()).add(tally)
        return tallies, watched
    finally:
        for worker in workers:
            worker.join(5.0)
            if worker.is_alive():
                worker.kill()


@contextmanager
def _nothing_from_here() -> Iterator[None]:
    """Let processes that are started meanwhile import nothing from the current folder, into which others may have put
    something: multiprocessing's first words to them come from there."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before


def _watch(
    observer: Client, process: NodeProcess, duration: float, report: Callable[[float], object]
) -> _Watched:
    watched = _Watched()
    subscription = _watch_diagnostics(observer, watched)
    begin, computed = time.monotonic(), processor_time(process.pid)
    while (elapsed := time.monotonic() - begin) < duration and process.running:
        report(elapsed / duration)
        start = time.perf_counter()
        try:
            observer.call("ready", Trigger.Request(), timeout=5.0)
            watched.health.append(time.perf_counter() - start)
        except NodeTimeoutError:
            watched.health_lost += 1
        if not watched.used or elapsed - watched.used[-1][0] >= max(0.5, duration / 1000):
            watched.used.append((elapsed, *used(process.pid)))
        observer.spin(_HEALTH_PERIOD)
    report(1.0)
    watched.node_cpu = processor_time(process.pid) - computed
    if subscription is not None:
        observer.node.destroy_subscription(subscription)
    return watched


def _watch_diagnostics(observer: Client, watched: _Watched) -> Any:
    try:
        from diagnostic_msgs.msg import DiagnosticArray
    except ImportError:
        return None
    return observer.node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda message: watched.diagnostics.append(time.monotonic()), 10
    )


def used(pid: int) -> tuple[float, float, float]:
    """Resident memory (MiB), threads and file descriptors of a process; NaN where /proc does not tell."""
    folder = Path("/proc", str(pid))
    try:
        pages = int((folder / "statm").read_text().split()[1])
        threads = len(list((folder / "task").iterdir()))
        descriptors = len(list((folder / "fd").iterdir()))
    except OSError:
        return float("nan"), float("nan"), float("nan")
    return pages * resource.getpagesize() / 2**20, threads, descriptors


def processor_time(pid: int) -> float:
    """Return user and system time of a process, s; NaN where /proc does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _record(tally: Tally, duration: float) -> dict[str, Any]:
    return {
        "requests": sum(tally.outcomes.values()),
        "per_second": sum(tally.outcomes.values()) / duration,
        "outcomes": dict(tally.outcomes),
        **_times(np.array(tally.times)),
        "batched": tally.batched,
        "queue_time_max_ms": tally.queue_time * 1e3,
        "examples": tally.examples,
    }


def _times(seconds: Float64) -> dict[str, float]:
    if not len(seconds):
        return {}
    p50, p95, p99 = np.percentile(seconds, (50, 95, 99)) * 1e3
    return {
        "p50_ms": float(p50),
        "p95_ms": float(p95),
        "p99_ms": float(p99),
        "max_ms": float(seconds.max()) * 1e3,
    }


def _periods(times: Sequence[float]) -> dict[str, Any]:
    """Messages, and how far their period is from its median (ms)."""
    if len(times) < 3:
        return {"messages": len(times)}
    periods = np.diff(times)
    middle = float(np.median(periods))
    return {
        "messages": len(times),
        "period_s": middle,
        "jitter_max_ms": float(np.abs(periods - middle).max()) * 1e3,
    }


def growth_of(samples: Sequence[tuple[float, ...]]) -> dict[str, dict[str, float]]:
    """Return for memory, threads and file descriptors how they grew.

    Args:
        samples: time, s, and what ``used`` gives.
    """
    return {
        name: _growth([(sample[0], sample[column]) for sample in samples], unit)
        for column, (name, unit) in enumerate(_USED, start=1)
    }


def _growth(samples: Sequence[tuple[float, float]], unit: str) -> dict[str, float]:
    """Return first, settled, last and largest amount, and the growth per hour.

    The growth is the slope of a line through the samples (time, amount) that follow the first fifth.
    """
    if len(samples) < 3:
        return {}
    times, used = np.array(samples).T
    settled = times >= _SETTLED * times[-1]
    slope = np.polyfit(times[settled], used[settled], 1)[0] if settled.sum() > 2 else float("nan")
    return {
        f"first{unit}": float(used[0]),
        f"settled{unit}": float(used[settled][0]),
        f"last{unit}": float(used[-1]),
        f"max{unit}": float(used.max()),
        f"growth{unit}_per_hour": float(slope) * 3600.0,
    }
