"""The iterates of a run."""

import cfgd
from problems import identity

ITERATIONS = 20  # two and a half of the blocks of eight in which a run is compiled


def points_of(problem, method, iterations=ITERATIONS, **options):
    """Return x_0, ..., x_iterations as `minimize` makes them."""
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
