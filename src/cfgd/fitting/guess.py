"""Find a start where none is given: many points within the bounds, the best ones refined."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd._core.compiled import bind
from cfgd.fitting.problem import FitProblem
from cfgd.objectives.residuals import Residuals

# Starts for each unknown number, and at most. Of 20 random sine waves with up to 30 periods in the
# data, 256 for each number found all and 64 found 16. Powers of two balance a Sobol' sequence.
STARTS_EACH, MOST_STARTS = 256, 4096
# Starts that are refined, and the iterations of that: those that lead to the best point have
# overtaken the others by then.
REFINED, ITERATIONS = 8, 30
# A number without bounds is looked for from 1e-3 to 1e3, evenly in its logarithm and in both signs.
DECADES = 3.0
# Bounds of one sign with a larger ratio are searched evenly in the logarithm.
WIDE = 100.0


def guessed(problem: FitProblem, unknown: np.ndarray) -> FitProblem:
    """Return the problem with a start for the numbers of z where `unknown` is True."""
    places = np.flatnonzero(unknown)
    exponent = int(np.ceil(np.log2(STARTS_EACH * len(places))))
    count = min(2**exponent, MOST_STARTS)
    # a scrambled sequence leaves out the corner of the box; the seed makes calls reproducible
    sobol = qmc.Sobol(len(places), scramble=True, rng=np.random.default_rng(0))
    unit = sobol.random_base2(int(np.log2(count)))
    starts = np.tile(problem.start, (count, 1))
    for column, i in enumerate(places):
        starts[:, i] = spread(unit[:, column], float(problem.lower[i]), float(problem.upper[i]))
    with in_precision(problem.start.dtype):
        values = np.asarray(bind(_values, problem.objective)(starts))
    finite = np.flatnonzero(np.isfinite(values))
    if not len(finite):
        wanted = "be given: the model is not finite at any of the points that were tried"
        checks.fail("curve_fit", "p0", wanted, f"{count} starts within the bounds")
    best = finite[np.argsort(values[finite], kind="stable")][:REFINED]
    ends = [problem.minimize(starts[i], max_iterations=ITERATIONS) for i in best]
    end = min((end for end in ends if np.isfinite(end.value)), key=lambda end: end.value)
    note = (
        f"The start was searched: of {count} points of a Sobol' sequence within the bounds, the "
        f"best {len(best)} were refined by short fits, and the best of these is the start."
    )
    return dataclasses.replace(problem, start=np.asarray(end.x), notes=[*problem.notes, note])


def spread(unit: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """Return numbers between the bounds for numbers in (0, 1)."""
    if np.isfinite(lower) and np.isfinite(upper):
        if lower * upper > 0 and max(upper / lower, lower / upper) > WIDE:
            return lower * (upper / lower) ** unit
        return lower + (upper - lower) * unit
    if np.isfinite(lower):
        return lower + _decades(unit)
    if np.isfinite(upper):
        return upper - _decades(unit)
    signed = 2 * unit - 1
    return np.sign(signed) * _decades(abs(signed))


def _decades(unit: np.ndarray) -> np.ndarray:
    return 10 ** (DECADES * (2 * unit - 1))


def _values(objective: Residuals, starts: Any) -> Any:
    """Return the objective at each start, NaN where its gradient is not finite.

    One start follows the other: memory stays that of one.
    """

    def value(z: Any) -> Any:
        found = objective.evaluate(z)
        return jnp.where(jnp.isfinite(found.gradient).all(), found.value, jnp.nan)

    return jax.lax.map(value, starts)
