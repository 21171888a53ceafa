"""`kinopt view`: the robot in a browser, to drag."""

import argparse
import os
import signal
import sys
import threading
from contextlib import ExitStack

from kinopt_ros.commands.arguments import require_ros, robot_of
from kinopt_ros.errors import InvalidRequestError
from kinopt_ros.scene.files import load_scene
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.registry import AUTO
from kinopt_ros.viewer.server import HOST, PORT

_SWITCH_SECONDS = 5e-4
"""Time after which a thread lets another one run: whoever drags must not wait for a plan."""
_DEFAULT = "panda"
_NICE = 5
"""How much other processes go before the page where a node runs: the robot does not wait for what is drawn."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "robot",
        nargs="?",
        metavar="NAME|FILE",
        help=f"URDF file or known name (default {_DEFAULT}; with --node what robot_description says)",
    )
    parser.add_argument("--srdf", metavar="FILE", help="SRDF file with groups and named states")
    parser.add_argument("--group", help="joints that move (default: the first group with a tip)")
    parser.add_argument(
        "--tip",
        action="append",
        default=[],
        metavar="LINK",
        help="link with a gizmo; several times for several",
    )
    parser.add_argument("--scene", metavar="FILE", help="scene to begin with, YAML")
    parser.add_argument("--solver", default=AUTO, help="solver plugin (default auto)")
    beside = parser.add_mutually_exclusive_group()
    beside.add_argument(
        "--node",
        nargs="?",
        const="kinopt",
        metavar="NAME",
        help="beside a running node (default kinopt): its robot is drawn, and moves where a gizmo is let go",
    )
    beside.add_argument(
        "--simulate",
        action="store_true",
        help="start a node and a simulated robot, and show the page beside them",
    )
    parser.add_argument(
        "--host",
        default=HOST,
        help=f"address to listen at (default {HOST}: this machine only; whoever reaches it can move what is shown)",
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"(default {PORT}; 0: any that is free)")


def run(args: argparse.Namespace) -> int:
    """Show the page until Ctrl-C or SIGTERM; return 0."""
    from kinopt_ros.viewer.looks import looks_of
    from kinopt_ros.viewer.page.beside_node import BesideNode
    from kinopt_ros.viewer.page.page import Page
    from kinopt_ros.viewer.server import require_viser, start_server, url_of
    from kinopt_ros.viewer.session import Session

    require_viser()
    ended = threading.Event()
    with ExitStack() as stack:
        stack.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(_SWITCH_SECONDS)
        if threading.current_thread() is threading.main_thread():  # what was started ends, too
            stack.callback(signal.signal, signal.SIGTERM, signal.getsignal(signal.SIGTERM))
            signal.signal(signal.SIGTERM, lambda *_: ended.set())
        link, text = None, None
        if args.node is not None or args.simulate:
            require_ros()
            from kinopt_ros.ros.client.view import beside, simulated

            if args.simulate and args.srdf is not None:
                raise InvalidRequestError("--srdf does not go with --simulate: bundled robots bring theirs")
            robot, text, link = stack.enter_context(
                simulated(args.robot or _DEFAULT, args.group, next(iter(args.tip), None), print)
                if args.simulate
                else beside(args.robot, args.srdf, args.node)
            )
        else:
            args.robot = args.robot or _DEFAULT
            robot = robot_of(args)
        scene = load_scene(args.scene, robot) if args.scene else EMPTY_SCENE
        if link is not None:
            # On Linux of this thread and those that it starts: the link's go on as before.
            os.nice(_NICE)
        session = Session(robot, group=args.group, tips=args.tip, solver=args.solver, scene=scene)
        server = start_server(args.host, args.port)
        page = Page(server, session, looks_of(robot, text), args.robot or robot.name, args.srdf)
        stack.callback(page.close)
        if link is not None:
            BesideNode(page, link)
        print(f"{robot.name} at {url_of(server)} (Ctrl-C ends it)", flush=True)
        try:
            ended.wait()
        except KeyboardInterrupt:
            return 0
    return 0
