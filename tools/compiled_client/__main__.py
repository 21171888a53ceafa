"""`make bench-client`: MoveIt's compute_ik beside std_srvs/Trigger, asked by a compiled client.

MoveIt's own clients are compiled. `kinopt bench ros` asks from Python, where a client spends as much on MoveIt's
messages as the node does. Both services are asked in turn, call by call, so that whatever else the machine does falls
on both.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from compiled_client.client import ClientError, ask, compiled
from interface_packages import BuildError, provide

from kinopt_ros.array import Float64
from kinopt_ros.bench.machine import machine
from kinopt_ros.errors import KinoptError
from kinopt_ros.ros.client.client import Client, NodeTimeoutError
from kinopt_ros.ros.client.isolation import isolate
from kinopt_ros.ros.client.process import NodeProcess
from kinopt_ros.ros.robot.bundled import bundled_parameters

_SUCCESS = 1
"""MoveIt's code."""


def main() -> int:
    """Measure and print; return 0 if every target was solved, 2 if not."""
    parser = argparse.ArgumentParser(prog="compiled_client", description=__doc__)
    parser.add_argument("--calls", type=int, default=2000, help="calls of each service (2000)")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    args = parser.parse_args()
    if args.calls < 1:
        parser.error(f"--calls is {args.calls}; allowed is 1 or more")
    try:
        provide()
        with tempfile.TemporaryDirectory(prefix="kinopt_client_") as folder:
            times, codes = _measure(Path(folder), args.calls)
    except (BuildError, ClientError, KinoptError, NodeTimeoutError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    trigger, compute_ik = np.quantile(times, (0.5, 0.99), axis=0).T * 1e3
    solved = int((codes == _SUCCESS).sum())
    ratio = float(compute_ik[0] / trigger[0])
    if args.json:
        record = {
            "machine": machine(),
            "calls": args.calls,
            "solved": solved,
            "trigger_p50_ms": float(trigger[0]),
            "trigger_p99_ms": float(trigger[1]),
            "compute_ik_p50_ms": float(compute_ik[0]),
            "compute_ik_p99_ms": float(compute_ik[1]),
            "p50_over_trigger": ratio,
        }
        print(json.dumps(record, indent=2))
    else:
        print(f"std_srvs/Trigger  p50 {trigger[0]:.2f} ms, p99 {trigger[1]:.2f} ms")
        print(f"compute_ik        p50 {compute_ik[0]:.2f} ms, p99 {compute_ik[1]:.2f} ms, {ratio:.2f} times")
        print(f"{solved} of {args.calls} targets solved")
    return 0 if solved == args.calls else 2


def _measure(folder: Path, calls: int) -> tuple[Float64, Float64]:
    """Start a node and ask it; see ``ask``."""
    import rclpy

    client = compiled(folder)
    isolate()
    with NodeProcess(bundled_parameters("panda")) as process:
        rclpy.init(args=[])
        own = Client()
        try:
            own.wait_until_ready(alive=lambda: process.running)
            return ask(client, calls)
        finally:
            own.close()
            rclpy.try_shutdown()


if __name__ == "__main__":
    sys.exit(main())
