"""``kinopt bench trajectory``: motions around obstacles, every one judged independently."""
