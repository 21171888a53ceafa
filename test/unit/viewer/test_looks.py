"""What is drawn of a robot."""

import kinopt_ros as ko
from kinopt_ros.viewer.looks import PLAIN, looks_of

_URDF = """<robot name="r">
  <material name="blue"><color rgba="0 0 1 1"/></material>
  <link name="a">
    <visual><geometry><box size="1 1 1"/></geometry><material name="blue"/></visual>
    <visual><geometry><mesh filename="package://nowhere/a.stl"/></geometry></visual>
  </link>
  <link name="b">
    <visual><geometry><mesh filename="package://nowhere/b.stl"/></geometry></visual>
    <collision><origin xyz="0 0 1"/><geometry><sphere radius="0.5"/></geometry></collision>
  </link>
  <link name="c"><visual><geometry><mesh filename="/nowhere.stl"/></geometry></visual></link>
  <link name="d"/>
  <joint name="ab" type="fixed"><parent link="a"/><child link="b"/></joint>
  <joint name="bc" type="fixed"><parent link="b"/><child link="c"/></joint>
  <joint name="cd" type="continuous"><parent link="c"/><child link="d"/></joint>
</robot>"""


def test_what_cannot_be_read_is_named_and_replaced() -> None:
    looks = looks_of(ko.robot_from_urdf(_URDF), _URDF)
    assert set(looks.parts) == {"a", "b"}
    assert looks.parts["a"][0].color == (0.0, 0.0, 1.0)
    assert looks.parts["b"][0].color == PLAIN
    assert looks.parts["b"][0].vertices[:, 2].min() > 0.4  # where the collision element has it
    assert "link 'a' is drawn in part" in looks.missing[0]
    assert "its collision shapes are drawn" in looks.missing[1]
    assert "it is not drawn" in looks.missing[2]


def test_the_bundled_arm_is_drawn_as_a_whole() -> None:
    robot = ko.load_robot("panda")
    looks = looks_of(robot)
    assert not looks.missing
    assert set(looks.parts) >= {f"panda_link{i}" for i in range(8)}


def test_a_robot_known_by_text_alone_has_its_collision_shapes() -> None:
    looks = looks_of(ko.robot_from_urdf(_URDF))
    assert set(looks.parts) == {"b"}
