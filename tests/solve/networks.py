"""A small network to fit: its data, and where it starts."""

import numpy as np

UNITS = 3
Z = np.linspace(-1, 1, 8) ** 3 + 0.1
TARGET = np.sin(4 * Z) + 0.2


STARTS = {seed: np.random.default_rng(seed).normal(size=3 * UNITS) for seed in (0, 4, 30)}
