"""What is said of a robot whose joint states have stopped."""

import time
from collections.abc import Mapping

from kinopt_ros.errors import shortened


def silence(ages: Mapping[str, float], timeout: float, now: float | None = None) -> str:
    """Say of which joints nothing is heard any more, for how long and since when; nothing if all are heard.

    Args:
        ages: time since each joint was heard of last, s; joints that never were are left out.
        timeout: time for which a joint may be silent, s.
        now: seconds since 1970; None: as the clock says.
    """
    old = {name: age for name, age in ages.items() if age > timeout}
    if not ages:
        return "joint_states has not said yet where the robot is: it is shown in its default configuration"
    if not old:
        return ""
    age = max(old.values())
    since = time.strftime("%H:%M:%S", time.localtime((time.time() if now is None else now) - age))
    whom = "the robot" if len(old) == len(ages) else shortened(list(old), 3)
    return (
        f"joint_states has said nothing of {whom} for {age:.0f} s (since {since}): "
        "what is shown is where it was then"
    )
