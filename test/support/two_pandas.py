"""The robot of two arms in examples/plan/, and where its tests begin."""

from pathlib import Path

from kinopt_ros.robot.urdf import robot_from_urdf

_FOLDER = Path(__file__).parents[2] / "examples" / "plan"
TEXTS = tuple((_FOLDER / f"two_pandas.{kind}").read_text(encoding="utf-8") for kind in ("urdf", "srdf"))
"""URDF and SRDF."""
PANDAS = robot_from_urdf(*TEXTS)
LEFT, RIGHT = (tuple(f"{side}_joint{i + 1}" for i in range(7)) for side in ("left", "right"))
START = {
    f"{side}_{name}": value
    for side in ("left", "right")
    for name, value in {
        "joint1": 0.0,
        "joint2": 0.2,
        "joint3": 0.0,
        "joint4": -2.0,
        "joint5": 0.0,
        "joint6": 2.2,
        "joint7": 0.785,
        "finger_joint1": 0.02,
    }.items()
}
"""Both arms ahead, beside each other."""
