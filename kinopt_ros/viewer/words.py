"""What the page says of answers, in Markdown. Pure functions."""

import math

from kinopt_ros.status import Status
from kinopt_ros.viewer.planned import PlannedMotion
from kinopt_ros.viewer.servo import ServoState
from kinopt_ros.viewer.session import Near
from kinopt_ros.viewer.solution import Solution

_MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\`*_{}[]<>#|~$"})


def plain(text: str) -> str:
    """Return a text that Markdown shows as it is: names come from files of others."""
    return text.translate(_MARKDOWN).replace("\n", " ")


def of_solution(solution: Solution, near: Near | None) -> str:
    """Say whether there is a solution, with its errors, or why there is none."""
    errors = of_errors(solution.position_error, solution.orientation_error)
    if solution.status is Status.SUCCESS:
        head = f"**Solved** by {plain(solution.solver)} in {solution.seconds * 1e3:.2f} ms, verified"
    elif solution.found:
        head = f"**As near as possible**, {solution.seconds * 1e3:.2f} ms: {plain(solution.sentence)}"
    else:
        head = f"**No solution** ({solution.status.name}): {plain(solution.sentence)}"
    lines = [head]
    if errors:
        lines.append(f"error: {errors}" if solution.found else f"best attempt: off by {errors}")
    if near is not None:
        lines.append(of_near(near))
    if solution.found and solution.not_checked:
        lines.append(f"not checked: {plain(', '.join(solution.not_checked))}")
    lines += [f"note: {plain(note)}" for note in solution.notes]
    return "  \n".join(lines)


def of_errors(position: float, orientation: float) -> str:
    """Say errors of a pose; nothing where there are none."""
    if math.isnan(position) or math.isnan(orientation):
        return ""
    return f"position {position * 1e3:.4f} mm, angle {orientation * 1e3:.4f} mrad"


def of_near(near: Near) -> str:
    """Say which two bodies are nearest."""
    if math.isinf(near.distance):
        return "clearance: nothing to compare"
    pair = f"{plain(near.a)} and {plain(near.b)}"
    if near.distance < 0.0:
        return f"**in collision**: {pair}, {-near.distance * 1e3:.1f} mm deep"
    return f"clearance: {near.distance * 1e3:.1f} mm ({pair})"


def of_motion(motion: PlannedMotion) -> str:
    """Say what a planned motion is like."""
    result = motion.result
    clearance = "" if math.isnan(result.clearance) else f", clearance {_distance(result.clearance)}"
    lines = [
        f"**Verified motion** of {motion.duration:.2f} s by {plain(result.solver)}, planned in "
        f"{result.solve_time * 1e3:.0f} ms{clearance}",
        f"verified: {plain(', '.join(result.checks))}",
    ]
    if result.not_checked:
        lines.append(f"not checked: {plain(', '.join(result.not_checked))}")
    lines += [f"note: {plain(note)}" for note in result.notes]
    return "  \n".join(lines)


OUTDATED = "**The scene has changed since this motion was verified: plan again.**"


def of_failure(status: Status, sentence: str) -> str:
    """Say why there is no motion."""
    return f"**No motion** ({status.name}): {plain(sentence)}"


def of_servo(state: ServoState) -> str:
    """Say whether servo follows, and what stops or slows it."""
    errors = of_errors(state.position_error, state.orientation_error)
    if state.status is not Status.SUCCESS:
        head = f"**Servo stopped** ({state.status.name}): {plain(state.sentence)}"
    elif state.at_rest:
        head = "**Servo**: at rest"
    else:
        head = "**Servo**: following" + (f", {plain(state.sentence)}" if state.sentence else "")
    return f"{head}  \nerror: {errors}" if errors else head


def _distance(metres: float) -> str:
    return "beyond what is measured" if math.isinf(metres) else f"{metres * 1e3:.0f} mm"
