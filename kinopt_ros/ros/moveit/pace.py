"""Speed of motions that MoveIt's clients ask for."""

from typing import Any

from kinopt_ros.errors import UnsupportedFeatureError, quoted


def scaling(request: Any) -> dict[str, float]:
    """Return scaling factors, as fields of our requests; 0 for the node's default, also where there are no such
    fields."""
    return {
        "velocity_scaling": getattr(request, "max_velocity_scaling_factor", 0.0),
        "acceleration_scaling": getattr(request, "max_acceleration_scaling_factor", 0.0),
    }


def refuse_speed_limit(request: Any) -> None:
    """Raise UnsupportedFeatureError if the speed of a link shall be limited.

    A speed of 0 or less limits nothing, as in MoveIt; clients such as pymoveit2 always name a link with it.
    """
    link = getattr(request, "cartesian_speed_limited_link", "")
    speed = getattr(request, "max_cartesian_speed", 0.0)
    if not speed <= 0.0:  # or no number
        raise UnsupportedFeatureError(
            f"max_cartesian_speed is {speed:g} for link {quoted(link)}: the speed of links cannot be limited here; use "
            "max_velocity_scaling_factor"
        )
