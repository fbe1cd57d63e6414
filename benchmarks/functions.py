"""General functions and networks."""

import jax
import numpy as np

import cfgd
from cfgd.apps.bench.field.cases import network
from cfgd.apps.bench.field.pinn_problems import poisson_1d
from cfgd.apps.bench.field.pinn_solvers import residuals_objective
from cfgd.apps.data.network_functions import STARTS


def rosenbrock(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


class Rosenbrock:
    """The function in two variables from (-1.2, 1)."""

    def setup(self):
        self.time_warm()

    def time_warm(self):
        cfgd.minimize(rosenbrock, np.array([-1.2, 1.0]))

    def time_with_compilation(self):
        jax.clear_caches()
        cfgd.minimize(lambda x: rosenbrock(x), np.array([-1.2, 1.0]))

    def track_iterations(self):
        return cfgd.minimize(rosenbrock, np.array([-1.2, 1.0])).iterations


class Networks:
    """log10 of the loss of the paper's network h1 after 300 iterations, median of three seeds."""

    unit = "log10(loss)"

    def track_loss(self):
        cases = [network("h1", STARTS["N(0, 1)"], 300, seed) for seed in range(3)]
        runs = [cfgd.minimize(case.objective, case.x0, max_iterations=300) for case in cases]
        return float(np.log10(np.median([run.value for run in runs])))


class PhysicsInformed:
    """Relative error of Poisson's equation in one dimension after 500 iterations."""

    timeout = 300

    def track_error(self):
        problem = poisson_1d()
        with jax.enable_x64(True):
            objective = residuals_objective(problem)
            run = cfgd.minimize(objective, problem.x0(0), max_iterations=500)
        return problem.error(run.x)
