"""A run of the solver, iterate by iterate."""

import cfgd
from problems import identity

ITERATIONS = 20  # two blocks of eight and a half


def points_of(problem, method, iterations=ITERATIONS, **options):
    """x_0, ..., x_iterations as the solver makes them."""
    solution = cfgd.minimize(
        problem.objective,
        problem.x0,
        method,
        max_iterations=iterations,
        tolerance=0,
        record={"x": identity},
        **options,
    )
    assert solution.iterations == iterations
    return solution.history["x"]
