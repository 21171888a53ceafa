"""``kinopt bench mbm``: MotionBenchMaker's problems, every motion judged independently."""
