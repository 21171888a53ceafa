"""HJCD-IK in NumPy, float64, one file per algorithm: what the kernels are tested against, and meant to be read.

C. Yasutake, Z. Kingston, B. Plancher, "HJCD-IK: GPU-Accelerated Inverse Kinematics through Batched Hybrid Jacobian
Coordinate Descent", arXiv:2510.07514 (2025). Sections, equations and algorithms named below are that paper's. Where it
prints what cannot be meant (signs in eqs. 5, 9, 12 and 14; line 11 of Alg. 3), or gives no number, the docstrings say
what is done here.
"""
