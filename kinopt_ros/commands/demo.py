"""`kinopt demo`: the node at work, in one command."""

import argparse

from kinopt_ros.commands.arguments import require_ros


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--once", action="store_true", help="show one motion and exit, on a terminal too")


def run(args: argparse.Namespace) -> int:
    """Run the command; return 0 if the motion was published and verified."""
    require_ros()
    from kinopt_ros.ros.client.demo import run as run_demo

    return run_demo(once=args.once)
