"""The compiled client: how it is compiled, and asks a node that runs."""

import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.kinematics.sampling import random_configurations
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.robot.sources import load_robot

TOOLS = ("cc", "nm")
"""What it takes to compile it."""
_SOURCE = Path(__file__).with_name("client.c")
_LIBRARIES = (
    "rcl", "rcutils", "rmw", "rosidl_runtime_c", "std_srvs__rosidl_generator_c", "std_srvs__rosidl_typesupport_c",
    "moveit_msgs__rosidl_generator_c", "moveit_msgs__rosidl_typesupport_c",
)  # fmt: skip
_PLACES = ("panda_arm", "panda_link8", "panda_link0")
"""Group, tip and base link."""


class ClientError(Exception):
    """The client cannot be compiled, or got no answers; the sentence says why."""


def ask(client: Path, calls: int) -> tuple[Float64, Float64]:
    """Ask the node ``kinopt`` of a Panda for both services in turn; return the times of each call, s, (calls, 2), and
    MoveIt's codes, (calls,).

    Raises:
        ClientError: the client says what is wrong.
    """
    requests = client.with_suffix(".requests")
    _write_requests(requests, calls)
    done = subprocess.run(
        [str(client), str(requests), "/kinopt/ready", "/compute_ik"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ClientError(done.stderr.strip())
    table = np.array([line.split() for line in done.stdout.splitlines()], dtype=np.float64)
    return table[:, :2], table[:, 2]


def compiled(folder: Path) -> Path:
    """Compile the client into a folder; return its file.

    Raises:
        ClientError: a tool or a package is missing, or the compiler refuses.
    """
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise ClientError(f"{' and '.join(missing)} must be installed to compile the client")
    prefixes = sorted({_prefix("rclpy"), _prefix("std_srvs"), _prefix("moveit_msgs")})
    headers = [
        include for prefix in prefixes for include in (prefix / "include").iterdir() if include.is_dir()
    ]
    stand_ins = folder / "python.c"
    stand_ins.write_text(
        "".join(f"void *{name};\n" for name in _symbols_of_python(prefixes)), encoding="utf-8"
    )
    command = [
        *("cc", "-O2", "-rdynamic", "-o", str(folder / "client"), str(_SOURCE), str(stand_ins)),
        *(f"-I{include}" for include in headers),
        *(
            option
            for prefix in prefixes
            for option in (f"-L{prefix / 'lib'}", f"-Wl,-rpath,{prefix / 'lib'}")
        ),
        *(f"-l{library}" for library in _LIBRARIES),
        "-Wl,--allow-shlib-undefined",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClientError(f"{shlex.join(command[:7])} ... failed:\n{done.stderr}")
    return folder / "client"


def _prefix(package: str) -> Path:
    """Return the folder that a package is installed in, with its ``lib`` and ``include``."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ClientError(f"{package} is not installed")
    return Path(spec.origin).resolve().parents[4]  # lib/pythonX.Y/site-packages/package/__init__.py


def _symbols_of_python(prefixes: list[Path]) -> list[str]:
    """Return what libraries of messages need of Python: some of ROS's wheels load those for Python, too, which no
    compiled client calls."""
    found: set[str] = set()
    for library in (
        path for prefix in prefixes for path in (prefix / "lib").glob("*__rosidl_generator_py.so")
    ):
        listed = subprocess.run(
            ["nm", "--dynamic", "--undefined-only", str(library)], capture_output=True, text=True, check=True
        )
        names = (line.split()[-1] for line in listed.stdout.splitlines() if line.strip())
        found.update(name for name in names if name.startswith(("Py", "_Py")))
    return sorted(found)


def _write_requests(file: Path, calls: int) -> None:
    """Write reachable poses, and states to begin from, as MoveIt's clients send them."""
    robot = load_robot("panda")
    T = forward_kinematics(robot, random_configurations(robot, calls, 0), links=(_PLACES[1],))[:, 0]
    xyzw = np.roll(matrix_to_quaternion(T[:, :3, :3]), -1, axis=1)  # as messages have them
    numbers: Float64 = np.column_stack([T[:, :3, 3], xyzw, random_configurations(robot, calls, 1)])
    head = [f"{calls} {robot.nq}", " ".join(_PLACES), " ".join(robot.variable_names)]
    rows = (" ".join(map(repr, row)) for row in numbers.tolist())
    file.write_text("\n".join([*head, *rows, ""]), encoding="utf-8")
