"""The page in a browser: a robot to drag, obstacles, plans, and what solvers say of them.

``session.py`` and the files beside it are what the page shows, without any browser; ``server.py`` and ``page/`` draw it
by viser, an optional package, which nothing else imports.
"""
