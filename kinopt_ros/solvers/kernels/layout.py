"""Layout of the packed arrays that a robot, its table of seeds and an effort come as (written by ``chain.py``)."""

# Columns of the table of motions: joint value = MULTIPLIER * q + OFFSET.
MULTIPLIER, OFFSET, COS_TWIST, SIN_TWIST, SHIFT_X, SHIFT_Y, SHIFT_Z, COS_FIXED, SIN_FIXED = range(9)
MOTION_SIZE = 9
# Rows of the table of variables.
LOWER, UPPER, SAMPLE_LOWER, SAMPLE_UPPER, PERIOD, STEP_LIMIT = range(6)
NUM_VARIABLE_ROWS = 6
# Entries of ``shape``, followed by a row for every motion; ADDS marks a motion whose variable moved one before.
NUM_VARIABLES, NUM_MOTIONS, NUM_SEEDS = range(3)
SHAPE_HEADER = 3
IS_TRANSLATION, COLUMN, ADDS = range(3)
KIND_SIZE = 3
# A table seed is its pose (x, y, z, qw, qx, qy, qz); the table is stored one pose component after the other.
POSE_SIZE = 7
# ``numbers`` starts with the inverse of the first fixed transform (position, rotation rows) and the transposed
# rotation of the last one (rows), then the last one's position.
BASE_SIZE = 21
TIP_SIZE = 3
# Entries of ``effort``.
AIM_POSITION, AIM_ORIENTATION = 0, 1  # an attempt that comes so near ends,
ACCEPT_POSITION, ACCEPT_ORIENTATION = 2, 3  # one that ends so near is a solution,
SLACK_POSITION, SLACK_ORIENTATION = 4, 5  # and errors below this do not count
EFFORT_SIZE = 6
