"""Layout of the packed arrays of obstacles and of their search trees (written by ``obstacles.py``, ``trees.py``)."""

# Columns of ``numbers``.
CENTER, REACH, ROTATION, TRANSLATION, PARAMETERS = 0, 3, 4, 13, 16
NUMBERS = 19
# Columns of ``integers``.
KIND, TREE, NEARBY = 0, 1, 2
INTEGERS = 3
SPHERE, BOX, CYLINDER, CONE, CAPSULE, PLANE, MESH, HEIGHT_MAP, POINT_CLOUD, OCTOMAP = range(10)
# A tree of items is one float64 array: a header, nodes, items. Nodes form a complete binary tree in which the children
# of i are 2i + 1 and 2i + 2; node j of level l holds the items from j n / 2^l to (j + 1) n / 2^l.
COUNT, LEVELS, EXTRA = (
    0,
    1,
    2,
)  # items, levels below the root, radius of the balls or how many spheres have no end
TREE_HEADER = 3
LOWER, UPPER = 0, 3  # corners of a node's box,
NORMAL, MIDDLE, SPREAD = 6, 9, 12  # and in meshes the sum of its normals times areas, their centre and radius
BOX_NODE, MESH_NODE = 6, 13
# Point; centre and half edge; centre, radius and number; corners and unit normal (or zeros). Trees of spheres end with
# the numbers of those without end.
POINT_ITEM, VOXEL_ITEM, SPHERE_ITEM, TRIANGLE_ITEM = 3, 4, 5, 12
# The tree of a height map: a header, which ends with the places of the levels; the heights; then levels of the lowest
# and highest height of blocks of cells, single cells first.
ROWS, COLUMNS, RESOLUTION, HEIGHT_LEVELS, PLACES = 0, 1, 2, 3, 4
MOST_LEVELS = 24
HEIGHT_HEADER = PLACES + MOST_LEVELS
