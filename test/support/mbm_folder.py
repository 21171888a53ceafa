"""A little folder of problems as MotionBenchMaker writes them: an arm of two joints, and a post in its way."""

from pathlib import Path

URDF = """<robot name="arm">
  <link name="base">
    <collision><origin xyz="0 0 -0.2"/><geometry><box size="0.2 0.2 0.1"/></geometry></collision>
  </link>
  <link name="column"/>
  <link name="rod">
    <collision><origin xyz="0.25 0 0"/><geometry><box size="0.4 0.04 0.04"/></geometry></collision>
  </link>
  <link name="finger"/>
  <joint name="turn" type="revolute"><parent link="base"/><child link="column"/><axis xyz="0 0 1"/>
    <limit lower="-2" upper="2" velocity="1" effort="1"/></joint>
  <joint name="lift" type="revolute"><parent link="column"/><child link="rod"/><origin xyz="0 0 0.2"/>
    <axis xyz="0 -1 0"/><limit lower="-1.5" upper="1.5" velocity="1" effort="1"/></joint>
  <joint name="grip" type="fixed"><parent link="rod"/><child link="finger"/><origin xyz="0.45 0 0"/></joint>
</robot>
"""
SRDF = """<robot name="little_arm">
  <group name="arm"><chain base_link="base" tip_link="rod"/></group>
</robot>
"""
SCENE = """robot_model_name: little_arm
allowed_collision_matrix: {entry_names: [], entry_values: []}
world:
  collision_objects:
    - id: post
      pose: {position: [0.4, 0, 0.2], orientation: [0, 0, 0, 1]}
      primitives:
        - {type: box, dimensions: [0.05, 0.05, 0.4]}
        - dimensions: [6e-1, 0.02]
          type: cylinder
      primitive_poses:
        - {position: [0, 0, 0], orientation: [0, 0, 0, 1]}
        - {position: [0, 0, 0.1], orientation: [0, 0, 0, 1]}
    - primitive_poses:
        - {position: [0, -0.8, 0], orientation: [0, 0, 0.7071, 0.7071]}
      primitives: [{type: sphere, dimensions: [0.03]}]
      id: ball
fixed_frame_transforms:
  - transform: {rotation: [0, 0, 0, 1], translation: [0, 0, 0]}
    child_frame_id: world
"""
REQUEST = """start_state:
  joint_state:
    name: [turn, lift, grip]
    position: [-1.2, 0.3, 0.01]
  multi_dof_joint_state:
    joint_names: [virtual_joint]
    transforms: [{translation: [0, 0, 0], rotation: [0, 0, 0, 1]}]
max_velocity_scaling_factor: 0
goal_constraints:
  - joint_constraints:
      - {joint_name: turn, position: 1.2}
      - joint_name: lift
        position: 0.3
group_name: arm
planner_id: BKPIECEGood
"""
IN_THE_POST = REQUEST.replace("position: 1.2}", "position: 0.0}").replace(
    "position: 0.3\n", "position: 0.0\n"
)
"""A request whose goal is in collision."""


def write_folder(folder: Path) -> Path:
    """Write a robot and a family of three problems, of which the last one's goal is in collision."""
    folder = folder / "problems"
    family = folder / "post_arm"
    family.mkdir(parents=True)
    (folder / "arm.urdf").write_text(URDF, encoding="utf-8")
    (folder / "arm.srdf").write_text(SRDF, encoding="utf-8")
    for number, request in ((2, REQUEST), (4, REQUEST), (10, IN_THE_POST)):
        (family / f"scene{number:04}.yaml").write_text(SCENE, encoding="utf-8")
        (family / f"request{number:04}.yaml").write_text(request, encoding="utf-8")
    return folder
