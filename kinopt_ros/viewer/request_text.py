"""The request that the gizmos pose, to be pasted: as `ros2 service call` and as a program."""

import json
from typing import Annotated, Any

import numpy as np

from kinopt_ros.array import Float64
from kinopt_ros.kinematics.se3 import matrix_to_quaternion
from kinopt_ros.viewer.session import Session


def as_service_call(session: Session, node: str = "/kinopt") -> str:
    """Return a command for a shell. The scene is the node's: `ros2 service call` of apply_scene is another request."""
    settings = session.settings
    request: dict[str, Any] = {
        "header": {"frame_id": session.robot.root_link},
        "poses": [_pose(T) for T in session.targets.values()],
        "base_link": session.robot.root_link,
        "position_tolerance": settings["position_tolerance"],
        "orientation_tolerance": settings["orientation_tolerance"],
        "state": {
            "name": list(session.robot.variable_names),
            "position": [round(v, 9) for v in session.q.tolist()],
        },
        "timeout": settings["timeout"],
    }
    if session.group is not None:
        request["group"] = session.group
    if len(session.tips) == 1:
        request["tip_link"] = session.tips[0]
    else:
        request["tip_links"] = list(session.tips)
    if session.avoid_collisions:
        request |= {"avoid_collisions": True, "clearance": settings["clearance"]}
    if session.nearest:
        request |= {
            "nearest": True,
            "position_weights": [settings["position_weight"]],
            "orientation_weights": [settings["orientation_weight"]],
        }
    else:
        if session.prefers_closest:
            request["prefer"] = "closest"
        else:
            request["seeds"] = [round(v, 9) for v in session.q[session.variables].tolist()]
        if settings["manipulability_weight"] > 0.0:
            request["manipulability_weight"] = settings["manipulability_weight"]
    if session.solver_name != "auto":
        request["solver"] = session.solver_name
    text = json.dumps(request).replace("'", "'\\''")
    return f"ros2 service call {node}/solve_ik kinopt_msgs/srv/SolveIK '{text}'"


def as_python(session: Session, source: str, scene_file: str | None = None, srdf: str | None = None) -> str:
    """Return a program that asks the same.

    Args:
        session: what is asked.
        source: name or file of the robot.
        scene_file: file that the scene was saved to; None: a scene of obstacles is left out, and the program says so.
        srdf: file of the SRDF, if one was named.
    """
    settings = session.settings
    tips = list(session.tips)
    targets = [np.round(T, 9).tolist() for T in session.targets.values()]
    lines = ["import numpy as np", "", "import kinopt_ros as ko", ""]
    named = repr(source) if srdf is None else f"{source!r}, srdf={srdf!r}"
    lines += [f"robot = ko.load_robot({named})", f"solver = ko.create_solver({session.solver_name!r}, robot)"]
    if session.avoid_collisions:
        if scene_file is not None:
            lines.append(f"scene = ko.load_scene({scene_file!r}, robot)")
        else:
            left_out = (
                "  # obstacles of the page are left out: save the scene"
                if session.obstacles.scene.objects
                else ""
            )
            lines.append(f"scene = ko.EMPTY_SCENE{left_out}")
    lines.append(f"T_root_tip = np.array({targets[0] if len(tips) == 1 else targets})")
    arguments = {
        "group": repr(session.group),
        "base_link": repr(session.robot.root_link),
        "tip_link": repr(tips[0] if len(tips) == 1 else tips),
        "state": f"np.array({session.q.tolist()})",
        "position_tolerance": repr(settings["position_tolerance"]),
        "orientation_tolerance": repr(settings["orientation_tolerance"]),
    }
    if session.avoid_collisions:
        arguments |= {"scene": "scene", "clearance": repr(settings["clearance"])}
    if session.nearest:
        arguments["nearest"] = (
            f"ko.PoseWeights(position={settings['position_weight']!r}, "
            f"orientation={settings['orientation_weight']!r})"
        )
    else:
        if session.prefers_closest:
            arguments["prefer"] = "'closest'"
        else:
            arguments["seeds"] = f"np.array({session.q[session.variables].tolist()})"
        if settings["manipulability_weight"] > 0.0:
            arguments["manipulability_weight"] = repr(settings["manipulability_weight"])
    lines += ["problem = ko.ik_problem(", "    robot,", "    T_root_tip,"]
    lines += [f"    {name}={value}," for name, value in arguments.items()]
    lines += [
        ")",
        "result = solver.solve_ik(problem)",
        "print(result.messages[0] or dict(zip(result.joint_names, result.q[0, 0])))",
        "",
    ]
    return "\n".join(lines)


def _pose(T: Annotated[Float64, "4 4"]) -> dict[str, dict[str, float]]:
    w, x, y, z = matrix_to_quaternion(T[:3, :3]).tolist()
    p = T[:3, 3].tolist()
    return {
        "position": {axis: round(value, 9) for axis, value in zip("xyz", p, strict=True)},
        "orientation": {axis: round(value, 9) for axis, value in zip("xyzw", (x, y, z, w), strict=True)},
    }
