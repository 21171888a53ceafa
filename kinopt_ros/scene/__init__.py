"""What surrounds the robot and what it carries: immutable scenes, changes of them, and files.

Knows the robot and shapes; knows no collision check.
"""
