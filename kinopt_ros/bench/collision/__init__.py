"""``kinopt bench collision``: inverse kinematics among obstacles, every success judged independently."""
