"""Motions that take a link along straight lines: position linearly, orientation about one axis at a constant rate.

``plan`` reads the request, ``lines`` has the poses, ``configurations`` follows them one after another, ``motion`` times
and verifies what comes of it, its distance from the lines too.
"""
