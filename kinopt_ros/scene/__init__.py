"""Scenes: what surrounds the robot and what it carries, changes of them, and files. Immutable.

Knows the robot and shapes; knows no collision check.
"""
