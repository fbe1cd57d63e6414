"""Families of least-squares fits: curves, merging terms, robust losses, too few points."""

import jax.numpy as jnp
import numpy as np

import cfgd
from judge.problem import Problem, log_uniform, plain_problem

POINTS = 20
# Iterations that a fit gets: the few that need more would take most of the time.
MOST_ITERATIONS = 1000
# Part of the sum of squares of exact data by which a fit may miss its points.
EXACT = 1e-8


def rho(loss, z):
    """Return a robust loss of squared residuals, as SciPy's `least_squares` defines it."""
    if loss == "soft_l1":
        return 2 * (jnp.sqrt(1 + z) - 1)
    if loss == "huber":
        return jnp.where(z <= 1, z, 2 * jnp.sqrt(jnp.where(z > 1, z, 1.0)) - 1)
    if loss == "cauchy":
        return jnp.log1p(z)
    return z


_sums = {}


def sum_of(misfit, loss="squared"):
    """Return the sum of losses as a plain function; the same one for the same misfit."""
    if (misfit, loss) not in _sums:

        def total(x, width, *data):
            r = misfit(x, *data)
            return width**2 * jnp.sum(rho(loss, (r / width) ** 2)) / 2

        _sums[misfit, loss] = total
    return _sums[misfit, loss]


def fit(misfit, x0, data, size, scale, loss="squared", width=1.0, **known):
    """Return the problem of fitting `misfit`, stated as `Residuals`."""
    objective = cfgd.Residuals(misfit, loss, scale=width, args=data)
    return Problem(
        objective, x0, sum_of(misfit, loss), (np.asarray(width), *data),
        size=np.broadcast_to(np.asarray(size, float), x0.shape), scale=float(scale),
        truth="bounded", options={"max_iterations": MOST_ITERATIONS}, **known,
    )  # fmt: skip


def noisy(random, y, level=None):
    """Return data with errors, in a random unit, with that unit and the scale of the misfit."""
    level = random.choice([0.0, 1e-3, 0.1]) if level is None else level
    unit = log_uniform(random, -12, 12) if random.integers(2) else 1.0
    errors = level * abs(y).max() * random.normal(size=y.shape)
    scale = max(errors @ errors / 2, EXACT * y @ y)
    return unit * (y + errors), unit, unit**2 * scale


def decay_misfit(p, t, y):
    return p[0] * jnp.exp(-p[1] * t) + p[2] - y


def exponentials(random):
    """Exponential decays in units of 1e-12 to 1e12."""
    t = np.sort(random.uniform(0, 4, POINTS))
    p = np.array([random.uniform(1, 5), log_uniform(random, -0.5, 0.7), random.normal()])
    y, unit, scale = noisy(random, np.asarray(p[0] * np.exp(-p[1] * t) + p[2]))
    size = np.array([unit, 1, unit])
    return fit(decay_misfit, p * size * log_uniform(random, -0.5, 0.5, 3), (t, y), size, scale)


def two_decays_misfit(p, t, y):
    return p[0] * jnp.exp(-p[1] * t) + p[2] * jnp.exp(-p[3] * t) - y


def merging_exponentials(random):
    """Two exponentials whose rates are nearly the same."""
    t = np.linspace(0, 5, POINTS)
    rate = log_uniform(random, -0.5, 0.3)
    p = np.array([1 + random.uniform(), rate, 1 + random.uniform(), rate * random.uniform(1, 3)])
    y, unit, scale = noisy(random, p[0] * np.exp(-p[1] * t) + p[2] * np.exp(-p[3] * t))
    size = np.array([unit, 1, unit, 1])
    return fit(two_decays_misfit, p * size * random.uniform(0.5, 2, 4), (t, y), size, scale)


def rational_misfit(p, t, y):
    return p[0] * t * (t + p[1]) / (t * (t + p[2]) + p[3]) - y


def rationals(random):
    """Rational functions as Kowalik and Osborne's, whose poles may be crossed."""
    t = log_uniform(random, -1, 0.6, POINTS)
    p = np.array([0.2, 0.2, 0.13, 0.14]) * random.uniform(0.7, 1.4, 4)
    y, unit, scale = noisy(random, p[0] * t * (t + p[1]) / (t * (t + p[2]) + p[3]))
    size = np.array([unit, 1, 1, 1])
    return fit(rational_misfit, p * size * log_uniform(random, -0.3, 0.7, 4), (t, y), size, scale)


def growth_misfit(p, t, y):
    return p[0] / (1 + jnp.exp(-p[1] * (t - p[2]))) - y


def growth_curves(random):
    """Logistic curves; some starts lie on their plateaus."""
    t = np.linspace(0, 10, POINTS)
    p = np.array([random.uniform(1, 5), random.uniform(0.5, 3), random.uniform(2, 8)])
    y, unit, scale = noisy(random, p[0] / (1 + np.exp(-p[1] * (t - p[2]))))
    size = np.array([unit, 1, 1])
    x0 = size * [p[0] * random.uniform(0.3, 3), random.uniform(0.1, 6), random.uniform(-3, 15)]
    return fit(growth_misfit, x0, (t, y), size, scale)


def peak_misfit(p, t, y):
    return p[0] * jnp.exp(-(((t - p[1]) / p[2]) ** 2)) + p[3] - y


def peaks(random):
    """A peak on a background, from starts that may lie beside it."""
    t = np.linspace(-5, 5, 30)
    p = np.array([random.uniform(1, 5), random.normal(), random.uniform(0.5, 2), random.normal()])
    y, unit, scale = noisy(random, p[0] * np.exp(-(((t - p[1]) / p[2]) ** 2)) + p[3])
    size = np.array([unit, 1, 1, unit])
    x0 = size * (p + random.normal(size=4) * random.choice([0.2, 2.0]))
    return fit(peak_misfit, x0, (t, y), size, scale)


def sine_misfit(p, t, y):
    return p[0] * jnp.sin(p[1] * t + p[2]) - y


def sines(random):
    """Sines of an unknown frequency: many local minima and saddles."""
    t = np.linspace(0, 6, 30)
    p = np.array([random.uniform(1, 5), random.uniform(0.5, 5), random.uniform(0, 6)])
    y, unit, scale = noisy(random, p[0] * np.sin(p[1] * t + p[2]))
    size = np.array([unit, 0.2, 1])
    x0 = p * np.array([unit, 1, 1]) * log_uniform(random, -0.5, 0.5, 3)
    return fit(sine_misfit, x0, (t, y), size, max(scale, 1e-3 * (y @ y)))


def robust_fits(random):
    """Exponential decays with outliers and each robust loss."""
    t = np.sort(random.uniform(0, 4, POINTS))
    p = np.array([random.uniform(1, 5), log_uniform(random, -0.5, 0.5), random.normal()])
    y = p[0] * np.exp(-p[1] * t) + p[2] + 0.05 * random.standard_t(1.2, size=POINTS)
    unit = log_uniform(random, -6, 6) if random.integers(2) else 1.0
    loss = str(random.choice(["soft_l1", "huber", "cauchy"]))
    size = np.array([unit, 1, unit])
    x0 = p * size * random.uniform(0.5, 2, 3)
    return fit(decay_misfit, x0, (t, y * unit), size, 0.01 * unit**2, loss, width=0.1 * unit)


def polynomial_misfit(p, t, y):
    return jnp.polyval(p, t) * jnp.exp(0.1 * p[0]) + jnp.sin(p[1] * p[2]) - y


def underdetermined(random):
    """More parameters than points: whole surfaces of exact fits."""
    t, y = random.uniform(-1, 1, 3), random.normal(size=3)
    x0 = random.normal(size=6) * random.choice([0.1, 1.0, 3.0])
    return fit(polynomial_misfit, x0, (t, y), 1.0, EXACT * y @ y)


def growth_sum(b, t, y):
    return jnp.sum((b[0] * (1 - jnp.exp(-b[1] * t)) - y) ** 2)


def sums_of_squares(random):
    """Saturating growth (NIST's BoxBOD) as a plain sum of squares, plateaus included."""
    t, level = np.array([1.0, 2.0, 3.0, 5.0, 7.0, 10.0]), log_uniform(random, -2, 3)
    y = level * (1 - np.exp(-log_uniform(random, -1, 0.5) * t)) * (1 + 0.1 * random.normal(size=6))
    x0 = np.array([level * random.uniform(0.3, 2), log_uniform(random, -2, 2)])
    size, scale = np.array([level, 1.0]), 1e-4 * y @ y
    return plain_problem(growth_sum, x0, t, y, size=size, scale=scale, truth="bounded")


FITS = {
    f.__name__: f
    for f in (
        exponentials, merging_exponentials, rationals, growth_curves, peaks, sines, robust_fits,
        underdetermined, sums_of_squares,
    )
}  # fmt: skip
