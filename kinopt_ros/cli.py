"""The command line `kinopt`. Each command is a module of kinopt_ros.commands with add_arguments and run."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from kinopt_ros.errors import KinoptError, shown
from kinopt_ros.interrupts import INTERRUPTED, silent_imports

COMMANDS = {
    "demo": "start the node, ask it for a motion, show the verified answer",
    "ik": "joint positions that bring a link to a pose",
    "plan": "a verified motion to a goal, around what is in the way",
    "view": "the robot in a browser: drag it, plan, see what solvers do",
    "objective": "what a file of costs asks for: any number of goals, weighed or kept",
    "fk": "poses of links for given joint positions",
    "replay": "solve recorded problems again and compare",
    "bench": "measure solvers side by side",
    "doctor": "what works here, what does not, and why",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    with silent_imports():
        parser = command_parser(only=given[0] if given and given[0] in COMMANDS else None)
    args = parser.parse_args(given)
    try:
        return int(args.run(args))
    except KinoptError as error:
        print(f"kinopt {args.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `kinopt ... | head`
        sys.stderr.close()
        return 141
    except OSError as error:  # as a full disk behind what it prints to
        which = "" if error.filename is None else f": {shown(error.filename, 1000)}"
        print(f"kinopt {args.command}: {error.strerror or error}{which}", file=sys.stderr)
        return 1


def command_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; with ``only``, just that command is imported, so that each starts quickly."""
    parser = argparse.ArgumentParser(
        prog="kinopt", description="Verified inverse kinematics and joint motion."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        subparser = subparsers.add_parser(
            name, help=summary, description=summary[0].upper() + summary[1:] + "."
        )
        if only in (None, name):
            command = importlib.import_module(f"kinopt_ros.commands.{name}")
            command.add_arguments(subparser)
            subparser.set_defaults(run=command.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
