"""``kinopt bench growth``: how cost grows with obstacles, points, joints, batches and threads."""
