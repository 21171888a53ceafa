"""Numbers that decide how attempts go on and when they end: tuned on 10,000 Panda targets, checked on 6R, 7R and
prismatic arms."""

# Tuned on 10,000 Panda targets and checked on 6R, 7R and prismatic arms.
ORIENTATION_WEIGHT = 0.4  # metres per radian
MAX_STEPS = 16
STALL_RATIO = 0.75  # a step that leaves more of the error than this is a stall ...
MAX_STALLS = 2  # ... and so many of them end an attempt
DAMPING = 0.05
MIN_DAMPING = 1e-9
FAR = 10.0  # squared errors above this raise the damping no more: endless axes would creep to far targets
POLISH_STEPS = 40
FARTHEST_TURN = 1e6  # rad: beyond, adding turns to an angle costs more precision than requests leave
QUICK_TABLE_TRIES = 12
HALF_TURN = 1e-10  # 1 + trace of a rotation error below which its axis cannot be seen
