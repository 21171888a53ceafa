"""``make stops``: stops motions of robots with faults, and says how they come to rest."""

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np

from stops.judge import MEASURES
from stops.plant import PLANTS
from stops.scenarios import SCENARIOS
from stops.trials import ROBOTS, Trial, tried

_SHARES = (50, 95, 100)


def _row(trial: Trial) -> dict[str, object]:
    found, world = tried(trial)
    return {**asdict(trial), **asdict(found), "said": world.said[-3:]}


def _percentiles(values: list[float]) -> str:
    return "/".join(f"{value:.3g}" for value in np.percentile(values, _SHARES))


def _print(rows: list[dict[str, object]], before: dict[tuple[object, ...], dict[str, object]]) -> None:
    print(f"each: {'/'.join(map(str, _SHARES))} % of {', '.join(MEASURES)}")
    for robot, plant, scenario in sorted(
        {(row["robot"], row["plant"], row["scenario"]) for row in rows}, key=str
    ):
        some = [r for r in rows if (r["robot"], r["plant"], r["scenario"]) == (robot, plant, scenario)]
        said = []
        for measure in MEASURES:
            text = f"{measure} {_percentiles([float(str(row[measure])) for row in some])}"
            pairs = [(row, before[_key(row)]) for row in some if _key(row) in before]
            if pairs:
                text += f" was {_percentiles([float(str(old[measure])) for _, old in pairs])}"
            said.append(text)
        print(f"{robot} {plant} {scenario} {len(some)}: {'; '.join(said)}")


def _key(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[name] for name in ("robot", "plant", "scenario", "seed", "number"))


def main() -> int:
    """Exit status 0 if all robots came to rest."""
    parser = argparse.ArgumentParser(prog="make stops", description=__doc__)
    parser.add_argument("--trials", type=int, default=20, help="of each plant and scenario")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--robot", choices=list(ROBOTS), action="append", help="panda unless given (may be repeated)"
    )
    parser.add_argument(
        "--plant", choices=list(PLANTS), action="append", help="only this one (may be repeated)"
    )
    parser.add_argument(
        "--scenario", choices=list(SCENARIOS), action="append", help="only this one (repeated)"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--save", type=Path, help="file for all that was found, to compare another state with"
    )
    parser.add_argument(
        "--against", type=Path, help="such a file, of the same trials with another state of the code"
    )
    args = parser.parse_args()
    trials = [
        Trial(robot, plant, scenario, args.seed, number)
        for robot in args.robot or ["panda"]
        for plant in args.plant or PLANTS
        for scenario in args.scenario or SCENARIOS
        for number in range(args.trials)
    ]
    began = time.monotonic()
    with ProcessPoolExecutor(args.processes) as pool:
        rows = list(pool.map(_row, trials, chunksize=5))
    before = {} if args.against is None else {_key(row): row for row in json.loads(args.against.read_text())}
    if args.save is not None:
        args.save.write_text(json.dumps(rows))
    _print(rows, before)
    print(f"{len(rows)} trials in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
