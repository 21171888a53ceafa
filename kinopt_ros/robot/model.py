"""The robot as frozen float64 arrays, independent of URDF, ROS and any solver.

Conventions: metres, radians, seconds. ``T_a_b`` is the pose of frame b in frame a, ``p_a = T_a_b @ p_b``.
A configuration ``q`` holds one value per variable in the order of ``variable_names``: one for a revolute,
continuous or prismatic joint; x, y, theta for a planar one; x, y, z, qw, qx, qy, qz for a floating one.
Mimic joints have no variable of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Annotated, Any
from weakref import ReferenceType

import numpy as np

from kinopt_ros.array import Float64, Immutable, taken_over
from kinopt_ros.errors import UnknownGroupError, UnknownJointError, UnknownLinkError
from kinopt_ros.geometry.shapes import PlacedShape
from kinopt_ros.geometry.spheres import SphereSet
from kinopt_ros.robot.collision_shapes import CollisionModel
from kinopt_ros.robot.inertials import Inertial


class JointType(Enum):
    """Joint types of URDF."""

    FIXED = "fixed"
    REVOLUTE = "revolute"
    CONTINUOUS = "continuous"
    PRISMATIC = "prismatic"
    PLANAR = "planar"
    FLOATING = "floating"

    @property
    def num_variables(self) -> int:
        """Number of configuration variables of an independent joint of this type."""
        return _NUM_VARIABLES[self]


_NUM_VARIABLES = {
    JointType.FIXED: 0,
    JointType.REVOLUTE: 1,
    JointType.CONTINUOUS: 1,
    JointType.PRISMATIC: 1,
    JointType.PLANAR: 3,
    JointType.FLOATING: 7,
}


@dataclass(frozen=True, eq=False)
class Joint(Immutable):
    """One joint. The joint value is ``multiplier * q[first_variable] + offset``; only mimic joints
    have a multiplier other than 1 or an offset other than 0."""

    name: str
    type: JointType
    parent_link: str
    child_link: str
    T_parent_joint: Annotated[Float64, "4 4"]
    axis: Annotated[Float64, "3"]
    """Unit axis in the joint frame; for planar joints the normal of the plane."""
    first_variable: int
    """Index of its first variable in q (for a mimic joint: of the joint that drives it); -1 if fixed."""
    multiplier: float = 1.0
    offset: float = 0.0
    mimics: str | None = None
    """Name of the joint that drives it, at the end of a chain of mimic joints; None if independent."""
    lower: float = -np.inf
    """Position limit of this joint alone as the description gives it (rad or m)."""
    upper: float = np.inf
    velocity: float | None = None
    """Velocity limit of this joint alone (rad/s or m/s); None if not given: the stated default applies."""
    acceleration: float | None = None
    """Acceleration limit of this joint alone (rad/s^2 or m/s^2); None if not given."""
    jerk: float | None = None
    """Jerk limit of this joint alone (rad/s^3 or m/s^3); None if not given."""

    def __post_init__(self) -> None:
        taken_over(self, "T_parent_joint", "axis")

    @property
    def is_active(self) -> bool:
        """Whether the joint has variables of its own, so that it can be commanded."""
        return self.type is not JointType.FIXED and self.mimics is None


@dataclass(frozen=True, eq=False)
class VariableLimits(Immutable):
    """Limits per variable, each of shape (nq,). Position limits of a variable that drives mimic joints
    are narrowed so that every one of those keeps its own limits. Unlimited is +-inf."""

    lower: Annotated[Float64, "nq"]
    upper: Annotated[Float64, "nq"]
    velocity: Annotated[Float64, "nq"]
    acceleration: Annotated[Float64, "nq"]
    jerk: Annotated[Float64, "nq"]

    def __post_init__(self) -> None:
        taken_over(self, "lower", "upper", "velocity", "acceleration", "jerk")


@dataclass(frozen=True)
class JointGroup:
    """A named set of joints, as in SRDF."""

    name: str
    joints: tuple[str, ...]
    """Active joints, neither mimic nor passive nor fixed, in topological order."""
    links: tuple[str, ...]
    """Child links of all its joints, parents before children."""
    base_link: str | None
    """Link at which the group's chain starts; None if the group is no chain."""
    tip_link: str | None
    """Link at which the group's chain ends; None if the group is no chain."""
    states: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Named configurations: state name -> variable name -> value (rad or m). The variable of a joint that has
    only one is called like the joint."""


@dataclass(frozen=True, eq=False)
class RobotModel(Immutable):
    """Kinematic tree of a robot. Immutable; make changed copies with dataclasses.replace."""

    name: str
    link_names: tuple[str, ...]
    """All links, parents before children; the first is the root."""
    joints: tuple[Joint, ...]
    """All joints, parents before children."""
    variable_names: tuple[str, ...]
    limits: VariableLimits
    default_q: Annotated[Float64, "nq"]
    """A configuration inside the limits: the named default state, else mid-limits, else 0."""
    groups: Mapping[str, JointGroup]
    """Joint groups by name; never empty for a robot that can move."""
    passive_joints: frozenset[str] = frozenset()
    disabled_collisions: frozenset[frozenset[str]] = frozenset()
    """Pairs of links that SRDF excludes from collision checks."""
    virtual_joint: "VirtualJoint | None" = None
    end_effectors: tuple["EndEffector", ...] = ()
    collision: CollisionModel = field(default_factory=CollisionModel)
    """Collision elements of the description; copies made with ``replace`` share it."""
    link_spheres: Mapping[str, SphereSet] = field(default_factory=dict)
    """SRDF's link_sphere_approximation, in the links' frames; empty sets stand for links that need no check."""
    inertials: Mapping[str, Inertial] = field(default_factory=dict)
    """Masses of links; links for which the description gives none that can be used are missing."""
    alike: "ReferenceType[RobotModel] | None" = None
    """Robot with the same links that have shapes, whose choice of pairs to check is this one's, too. It must not keep
    that robot, which keeps this one."""
    warnings: tuple[str, ...] = ()
    """Warnings about what was found in the description and accepted."""
    kept: dict[object, Any] = field(default_factory=dict, init=False, repr=False)
    """Results computed from the robot (see ``memo.py``): they are no part of it, and not copied with it."""

    def __post_init__(self) -> None:
        taken_over(self, "default_q")

    @property
    def root_link(self) -> str:
        """Link without a parent; the robot's model frame."""
        return self.link_names[0]

    @property
    def nq(self) -> int:
        """Number of configuration variables."""
        return len(self.variable_names)

    @cached_property
    def link_index(self) -> Mapping[str, int]:
        """Index of every link in link_names."""
        return {name: i for i, name in enumerate(self.link_names)}

    @cached_property
    def joint_by_name(self) -> Mapping[str, Joint]:
        """All joints by name."""
        return {joint.name: joint for joint in self.joints}

    @cached_property
    def parent_joint(self) -> Mapping[str, Joint]:
        """The joint above every link but the root."""
        return {joint.child_link: joint for joint in self.joints}

    @cached_property
    def active_joints(self) -> tuple[str, ...]:
        """Names of the joints that have variables of their own."""
        return tuple(joint.name for joint in self.joints if joint.is_active)

    @cached_property
    def mimic_joints(self) -> tuple[Joint, ...]:
        """The joints that follow another one."""
        return tuple(joint for joint in self.joints if joint.mimics is not None)

    @cached_property
    def floating_joints(self) -> tuple[Joint, ...]:
        """The joints with a quaternion among their variables."""
        return tuple(joint for joint in self.joints if joint.type is JointType.FLOATING)

    @cached_property
    def variable_index(self) -> Mapping[str, int]:
        """Index in q of every variable."""
        return {name: i for i, name in enumerate(self.variable_names)}

    @property
    def collision_shapes(self) -> Mapping[str, tuple[PlacedShape, ...]]:
        """Shapes of the links that have any, in the link's frame, as the description gives them. Meshes are read when
        this is asked for the first time."""
        return self.collision.shapes

    @property
    def unchecked_links(self) -> Mapping[str, str]:
        """Links whose shapes are not all in ``collision_shapes``, and why. Reads meshes, too."""
        return self.collision.unchecked

    def link(self, name: str) -> int:
        """Return the index of a link; UnknownLinkError if there is none of that name."""
        try:
            return self.link_index[name]
        except (KeyError, TypeError):  # the latter for what cannot be a key
            raise UnknownLinkError(name, self.link_names) from None

    def joint(self, name: str) -> Joint:
        """Return a joint by name; UnknownJointError if there is none of that name."""
        try:
            return self.joint_by_name[name]
        except (KeyError, TypeError):  # the latter for what cannot be a key
            raise UnknownJointError(name, self.joint_by_name) from None

    def group(self, name: str) -> JointGroup:
        """Return a group by name; UnknownGroupError if there is none of that name."""
        try:
            return self.groups[name]
        except (KeyError, TypeError):  # the latter for what cannot be a key
            raise UnknownGroupError(name, self.groups) from None

    def variables_of(self, joint_name: str) -> range:
        """Return the indices in q of the variables of an active joint (empty for fixed and mimic joints)."""
        joint = self.joint(joint_name)
        if not joint.is_active:
            return range(0)
        return range(joint.first_variable, joint.first_variable + joint.type.num_variables)


@dataclass(frozen=True)
class VirtualJoint:
    """SRDF's virtual joint, which attaches the robot's root to the world. A joint of that name moves it if it was asked
    for."""

    name: str
    type: JointType
    parent_frame: str
    child_link: str


@dataclass(frozen=True)
class EndEffector:
    """A gripper or tool, as SRDF declares it."""

    name: str
    group: str
    parent_link: str
    parent_group: str | None = None
