"""Servo: a stream of velocities or poses in, motions out, each of which is complete, verified, and ends at rest.

``setup`` says what servo knows of the robot, ``velocity`` and ``follow`` make joint velocities of twists and target
poses, ``commanded`` is the motion that was sent last, ``step`` makes the next one, ``brake`` the quickest end.
"""
