"""`kinopt view`: the robot in a browser, to drag."""

import argparse
import threading

from kinopt_ros.commands.arguments import robot_of
from kinopt_ros.scene.files import load_scene
from kinopt_ros.scene.scene import EMPTY_SCENE
from kinopt_ros.solvers.registry import AUTO
from kinopt_ros.viewer.server import HOST, PORT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "robot", nargs="?", default="panda", metavar="NAME|FILE", help="URDF file or known name (default panda)"
    )
    parser.add_argument("--srdf", metavar="FILE", help="SRDF file with groups and named states")
    parser.add_argument("--group", help="joints that move (default: the first group with a tip)")
    parser.add_argument(
        "--tip", action="append", default=[], metavar="LINK", help="link with a gizmo; several times for several"
    )
    parser.add_argument("--scene", metavar="FILE", help="scene to begin with, YAML")
    parser.add_argument("--solver", default=AUTO, help="solver plugin (default auto)")
    parser.add_argument(
        "--host",
        default=HOST,
        help=f"address to listen at (default {HOST}: this machine only; whoever reaches it can move what is shown)",
    )
    parser.add_argument("--port", type=int, default=PORT, help=f"(default {PORT}; 0: any that is free)")


def run(args: argparse.Namespace) -> int:
    """Show the page until Ctrl-C; return 0."""
    from kinopt_ros.viewer.looks import looks_of
    from kinopt_ros.viewer.page.page import Page
    from kinopt_ros.viewer.server import require_viser, start_server, url_of
    from kinopt_ros.viewer.session import Session

    require_viser()
    robot = robot_of(args)
    scene = load_scene(args.scene, robot) if args.scene else EMPTY_SCENE
    session = Session(robot, group=args.group, tips=args.tip, solver=args.solver, scene=scene)
    page = Page(start_server(args.host, args.port), session, looks_of(robot), args.robot, args.srdf)
    print(f"{robot.name} at {url_of(page.server)} (Ctrl-C ends it)", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return 0
    finally:
        page.close()
    return 0
