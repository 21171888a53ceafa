"""Arguments and output that several commands share."""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from kinopt_ros.errors import InvalidRequestError, RobotDescriptionError, SolverUnavailableError, quoted
from kinopt_ros.files import is_file
from kinopt_ros.robot.model import RobotModel
from kinopt_ros.robot.sources import load_robot


def add_robot(parser: argparse.ArgumentParser) -> None:
    """Add the options --robot and --srdf."""
    parser.add_argument(
        "--robot", default="panda", metavar="NAME|FILE", help="URDF file or known name (default panda)"
    )
    parser.add_argument("--srdf", metavar="FILE", help="SRDF file with groups and named states")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option --json."""
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")


def robot_of(args: argparse.Namespace) -> RobotModel:
    """Load the robot that the arguments name."""
    if args.srdf is not None and not is_file(args.srdf):
        raise RobotDescriptionError(f"there is no SRDF file {quoted(args.srdf)}")
    return load_robot(args.robot, srdf=args.srdf)


def require_ros() -> None:
    """Raise SolverUnavailableError, which says what to install or build, where the node cannot run."""
    from kinopt_ros.ros.main import missing

    remedy = missing()
    if remedy is not None:
        raise SolverUnavailableError(remedy)


def joint_values(option: str, given: Sequence[str]) -> dict[str, float]:
    """Return the values that an option gives to joints or their variables by NAME=VALUE, rad or m.

    Raises:
        InvalidRequestError: one is no such pair, or its value is no finite number.
    """
    values = {}
    for pair in given:
        name, separator, text = pair.rpartition("=")
        if not separator:
            raise InvalidRequestError(f"{option} takes NAME=VALUE, not {quoted(pair)}")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InvalidRequestError(
                f"{option}: the value of {quoted(name)} is {quoted(text)}; allowed is a finite number"
            )
        if name in values:
            raise InvalidRequestError(f"{option} names {quoted(name)} twice")
        values[name] = value
    return values


def check_timeout(seconds: float) -> None:
    """Raise InvalidRequestError unless --timeout is one."""
    if not 0.0 < seconds < math.inf:
        raise InvalidRequestError(f"--timeout is {seconds}; allowed is a number of seconds above 0")


def print_json(value: Mapping[str, Any]) -> None:
    """Print JSON; numbers that JSON cannot say (NaN, infinity) become null."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value with None for every number that JSON cannot say (NaN, infinity)."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
