"""Good descriptions that inputs begin from."""

import numpy as np

from kinopt_ros.kinematics.center_of_mass import center_of_mass
from kinopt_ros.kinematics.forward import forward_kinematics
from kinopt_ros.robot.model import RobotModel

ARM = """<robot name="arm">
<link name="base"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision>
<inertial><mass value="1"/></inertial></link>
<link name="upper"><visual><geometry><mesh filename="package://arm/upper.stl"/></geometry></visual>
<collision name="c"><origin xyz="0 0 0.2" rpy="0 0 0"/>
<geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>
<link name="lower"><collision><geometry><sphere radius="0.06"/></geometry></collision>
<collision><geometry><mesh filename="cube.stl" scale="0.1 0.1 0.1"/></geometry></collision></link>
<link name="hand"><inertial><origin xyz="0 0.1 0" rpy="0 0 0.5"/><mass value="0.5"/>
<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
<link name="left"/><link name="right"/><link name="slide"/>
<joint name="turn" type="continuous"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.1"/>
<axis xyz="0 0 1"/><limit effort="1" velocity="2"/></joint>
<joint name="bend" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.4" rpy="0 0.1 0"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="2" effort="10"/></joint>
<joint name="wrist" type="fixed"><parent link="lower"/><child link="hand"/><origin xyz="0 0 0.3"/></joint>
<joint name="finger_left" type="prismatic"><parent link="hand"/><child link="left"/><axis xyz="1 0 0"/>
<limit lower="0" upper="0.04" velocity="0.1" effort="1"/></joint>
<joint name="finger_right" type="prismatic"><parent link="hand"/><child link="right"/><axis xyz="-1 0 0"/>
<limit lower="0" upper="0.04" velocity="0.1" effort="1"/><mimic joint="finger_left" multiplier="1" offset="0"/></joint>
<joint name="plane" type="planar"><parent link="hand"/><child link="slide"/><axis xyz="0 0 1"/></joint>
</robot>"""

ARM_SRDF = """<robot name="arm">
<virtual_joint name="stand" type="planar" parent_frame="world" child_link="base"/>
<group name="arm"><chain base_link="base" tip_link="hand"/></group>
<group name="fingers"><joint name="finger_left"/><joint name="finger_right"/><link name="slide"/></group>
<group name="all"><group name="arm"/><group name="fingers"/></group>
<group_state name="home" group="arm"><joint name="turn" value="0.1"/><joint name="bend" value="0.5"/></group_state>
<group_state name="open" group="fingers"><joint name="finger_left" value="0.04"/>
<joint name="plane" value="0 0 1"/></group_state>
<end_effector name="gripper" group="fingers" parent_link="hand" parent_group="arm"/>
<passive_joint name="plane"/>
<link_sphere_approximation link="upper"><sphere center="0 0 0.1" radius="0.1"/><sphere center="0 0 0.3" radius="0.1"/>
</link_sphere_approximation>
<disable_collisions link1="base" link2="upper" reason="Adjacent"/>
<disable_default_collisions link="slide"/><enable_collisions link1="slide" link2="base"/>
</robot>"""


def use(robot: RobotModel) -> None:
    """Do what every robot that is accepted must be able to do."""
    T = forward_kinematics(robot, robot.default_q)
    assert T.shape == (len(robot.link_names), 4, 4)
    assert np.isfinite(robot.default_q).all()
    if any(inertial.mass > 0.0 for inertial in robot.inertials.values()):
        assert np.isfinite(center_of_mass(robot, robot.default_q)).all() or not np.isfinite(T).all()
    assert (robot.default_q >= robot.limits.lower - 1e-6).all()
    assert (robot.default_q <= robot.limits.upper + 1e-6).all()
    assert all(len(warning) < 10_000 for warning in robot.warnings)
    assert all(len(reason) < 10_000 for reason in robot.unchecked_links.values())
