"""Pipelines and planners that MoveIt's clients name: ours, MoveIt's ways of searching, and what nobody knows.

move_group refuses a pipeline that it has not loaded (FAILURE); OMPL takes a planner that it does not know for its own
default, with a warning. Clients come with names of MoveIt's planners, so these are answered by the node's own and the
answer says so. Any other name is a mistake, and refused.
"""

from kinopt_ros.errors import UnsupportedFeatureError, quoted
from kinopt_ros.ros.moveit.motion_types import PILZ, is_kind, pipeline_name
from kinopt_ros.solvers.base import Feature
from kinopt_ros.solvers.registry import solver_class, solver_names

PIPELINE = "kinopt"
"""Our only pipeline."""
_PIPELINES = ("chomp", "move_group", "ompl", "stomp")
"""MoveIt's pipelines that search a way: move_group's only one of old is named after it."""
_PLANNERS = (
    "abitstar", "aitstar", "anytimepathshortening", "best", "bfmt", "biest", "bitrrt", "bkpiece", "chomp", "eitstar",
    "est", "fmt", "kpiece", "lazyprm", "lbkpiece", "lbtrrt", "pdst", "prm", "projest", "rrt", "sbl", "spars", "stomp",
    "stride", "trajopt", "trrt",
)  # fmt: skip
"""How names of MoveIt's planners begin, as in ``RRTConnectkConfigDefault``; in lower case."""
_OMPL_PREFIX = "geometric::"


def check_planner(pipeline_id: str, planner_id: str) -> None:
    """Look whether a request names a planner that can be honoured, or a way of searching in whose place ours will do.

    Raises:
        UnsupportedFeatureError: nobody knows the pipeline or the planner, or it does not plan motions.
        SolverUnavailableError: the planner is a solver that cannot run here.
    """
    pipeline = pipeline_name(pipeline_id)
    if pipeline not in ("", PIPELINE, PILZ, *_PIPELINES):
        raise UnsupportedFeatureError(
            f"pipeline_id is {quoted(pipeline_id)}; allowed is {PIPELINE!r}, or none. In place of "
            f"{', '.join(_PIPELINES)} it plans, too, and {PILZ} names kinds of motion"
        )
    if is_kind(planner_id):
        return
    if planner_id in solver_names():
        if Feature.TRAJECTORIES not in solver_class(planner_id).capabilities.features:
            raise UnsupportedFeatureError(
                f"planner_id is {quoted(planner_id)}, a solver that does not plan motions; query_planner_interface "
                "lists those that do"
            )
        return
    name = planner_id.strip().lower().removeprefix(_OMPL_PREFIX)
    if name and pipeline not in _PIPELINES and not name.startswith(_PLANNERS):
        raise UnsupportedFeatureError(
            f"planner_id is {quoted(planner_id)}, which nobody knows; query_planner_interface lists the planners"
        )


def other_planner(pipeline_id: str, planner_id: str) -> str:
    """Return a sentence about a planner that is asked for and is none of ours; else nothing."""
    ours = planner_id in solver_names() or is_kind(planner_id)
    pipeline = "" if pipeline_name(pipeline_id) in (PIPELINE, PILZ) else pipeline_id
    asked_for = " ".join(filter(None, (pipeline, "" if ours else planner_id)))
    return f"{quoted(asked_for)} is no planner of this node, which used its own" if asked_for else ""
