"""``rtb_ik_lm`` with the tolerance that the benchmark judges by: |error| < 1e-6, metres and radians together."""

from kinopt_ros.bench.peers import Peer, rtb_ik_lm
from kinopt_ros.bench.targets import IkTask

TOLERANCE = 0.5 * 1e-6**2


def build(task: IkTask) -> Peer:
    """As ``rtb_ik_lm``, but for the tolerance."""
    return rtb_ik_lm.build(task, "rtb_ik_lm_tight", TOLERANCE)
