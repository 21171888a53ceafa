"""``make fuzz``: feeds inputs of every kind, in two processes."""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from fuzz.kinds import NAMES
from fuzz.runner import run


def main() -> int:
    """Exit status 0 if all inputs ended as they must."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="in all, shared by the kinds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each kind")
    parser.add_argument("--kind", choices=NAMES, action="append", help="only this kind (may be repeated)")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    kinds = args.kind or list(NAMES)
    each = -(-args.inputs // len(kinds))
    pieces = [
        (name, first, min(2_000, args.first + each - first))
        for first in range(args.first, args.first + each, 2_000)
        for name in kinds
    ]
    failed = done = 0
    began = time.monotonic()
    with ThreadPoolExecutor(args.processes) as pool:
        for (name, first, count), failures in zip(
            pieces,
            pool.map(lambda piece: list(run(piece[0], args.seed, piece[1], piece[2])), pieces),
            strict=True,
        ):
            done += count
            failed += len(failures)
            for failure in failures:
                print(failure, flush=True)
            print(f"{name} {first} to {first + count - 1}: {len(failures)} failures", flush=True)
    print(f"{done} inputs in {time.monotonic() - began:.0f} s: {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
