"""`kinopt bench beam`: inverse kinematics in batches, beside PyRoki's IK-Beam."""
