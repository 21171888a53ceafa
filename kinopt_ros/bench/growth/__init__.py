"""``kinopt bench growth``: how cost grows with obstacles, points, joints, spheres, batches and threads."""
