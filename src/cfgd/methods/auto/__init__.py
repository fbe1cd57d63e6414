"""Auto and its solvers: NumPy in plain Python, one file for each algorithm."""
