"""What a new process pays: import, the first solve, a table."""

import os
import subprocess
import sys
import tempfile

import numpy as np


class NewProcess:
    """Each time a new process, as its user sees it."""

    number, repeat = 1, 3

    def time_import(self):
        subprocess.run([sys.executable, "-c", "import cfgd"], check=True)

    def time_first_solve(self):
        solve = "import cfgd; cfgd.minimize(lambda x: (x**2).sum(), [1.0] * 20)"
        subprocess.run([sys.executable, "-c", solve], check=True)


class Table:
    """`cfgd fit` on 200,000 rows of eight columns, logistic, report included."""

    number, repeat, timeout = 1, 3, 300

    def setup(self):
        self.folder = tempfile.TemporaryDirectory()
        random = np.random.default_rng(0)
        X = random.normal(size=(200_000, 8))
        y = X @ random.normal(size=8) + random.logistic(size=200_000) > 0
        header = ",".join([*(f"x{i}" for i in range(8)), "y"])
        path = os.path.join(self.folder.name, "data.csv")
        np.savetxt(path, np.c_[X, y], "%.6g", ",", header=header, comments="")

    def teardown(self):
        self.folder.cleanup()

    def time_fit(self):
        command = [sys.executable, "-m", "cfgd", "fit", "data.csv", "--target", "y"]
        subprocess.run(command, check=True, cwd=self.folder.name, stdout=subprocess.DEVNULL)
