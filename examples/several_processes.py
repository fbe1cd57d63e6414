"""Share rows among processes: the same script for one process, for several, and for a cluster.

python several_processes.py                  one process
cfgd launch -n 2 several_processes.py        two on this machine
srun -n 16 python several_processes.py       sixteen, wherever SLURM puts them
"""

import numpy as np

import cfgd

me = cfgd.distributed.start()  # before anything is computed

TRUTH = np.array([1.0, -2.0, 0.5, 0.0, 3.0])


def sample(row):
    random = np.random.default_rng(row)
    x = random.normal(size=5)
    return x, random.random() < 1 / (1 + np.exp(-x @ TRUTH))


# Each process makes (or reads) its own rows; no process has all of them.
mine = np.array_split(np.arange(10_001), me.count)[me.index]
X, y = map(np.array, zip(*map(sample, mine), strict=True))

data = cfgd.distributed.rows(X, y)
f = cfgd.LinearModel(data.X, data.y, "logistic", sample_weight=data.sample_weight)
solution = cfgd.minimize(f, np.zeros(5))  # every process has the same

if me.index == 0:
    print(f"{me.count} processes, {solution.iterations} iterations, {solution.status.name}")
    for w, error in zip(solution.x, np.sqrt(np.diag(solution.covariance())), strict=True):
        print(f"{w:8.4f} +- {error:.4f}")
