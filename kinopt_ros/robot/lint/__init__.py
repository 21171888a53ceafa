"""Findings in robot descriptions, each with its line and a remedy, for people who mend them.

The loader (robot.urdf, robot.srdf) stops at the first thing that it cannot use; this lists all there is to say.
"""
