"""Families of plain functions: a generator of random problems each, from a random generator."""

import jax.numpy as jnp
import numpy as np

from judge.problem import log_uniform, plain_problem, rotation


def quadratic(x, A, b):
    return x @ A @ x / 2 - b @ x


def quadratics(random):
    """Strictly convex quadratics, rotated, with condition numbers up to 1e10."""
    d = random.choice([1, 3, 10])
    Q = rotation(random, d)
    eigenvalues = log_uniform(random, -random.uniform(0, 10), 0, d) * log_uniform(random, -3, 3)
    A, solution = Q * eigenvalues @ Q.T, random.normal(size=d)
    x0 = solution + random.normal(size=d) * log_uniform(random, -1, 3)
    A = (A + A.T) / 2
    scale = (x0 - solution) @ A @ (x0 - solution) / 2
    return plain_problem(quadratic, x0, A, A @ solution, scale=scale)


def separable(x, s, c):
    z = x / s - c
    return jnp.sum(z**2 + z**4)


def separables(random):
    """Separable functions whose coordinates have units from 1e-12 to 1e12."""
    s, c = log_uniform(random, -12, 12, 3), random.normal(size=3)
    x0 = s * random.normal(size=3) if random.integers(2) else np.ones(3)
    return plain_problem(separable, x0, s, c, size=s)


def quartic(x, M, y):
    return jnp.sum((M @ x - y) ** 4) + jnp.sum(x**2) / 100


def quartics(random):
    """Sums of fourth powers with a small quadratic."""
    M, y = random.normal(size=(8, 3)) * log_uniform(random, -0.5, 0.5, 3), random.normal(size=8)
    return plain_problem(quartic, random.normal(size=3) * log_uniform(random, 0, 2), M, y)


def valley(x, a):
    return a * jnp.sum((x[1:] - x[:-1] ** 2) ** 2) + jnp.sum((1 - x[:-1]) ** 2)


def valleys(random):
    """Rosenbrock's function, with walls of steepness 1 to 1e6."""
    return plain_problem(
        valley, random.normal(size=random.choice([2, 5])), log_uniform(random, 0, 6)
    )


def log_sum_exp(x, M, b):
    z = M @ x + b
    top = jnp.max(z)
    return top + jnp.log(jnp.sum(jnp.exp(z - top)))


def log_sums(random):
    """log-sum-exp of planes of all directions, which has one minimum."""
    M = random.normal(size=(6, 4)) * log_uniform(random, -1, 2)
    M, b = np.vstack([M, -M]), random.normal(size=12)
    x0 = random.normal(size=4) * log_uniform(random, -1, 1)
    return plain_problem(log_sum_exp, x0, M, b, size=1 / abs(M).max())


def pseudo_huber(x, M, y):
    return jnp.sum(jnp.sqrt(1 + (M @ x - y) ** 2) - 1)


def pseudo_hubers(random):
    """Sums of sqrt(1 + r^2), from near and far starts."""
    M, y = random.normal(size=(12, 4)), random.standard_t(1.5, size=12)
    return plain_problem(pseudo_huber, random.normal(size=4) * log_uniform(random, 0, 4), M, y)


def barrier(x, A, b, c, mu):
    return c @ x - mu * jnp.sum(jnp.log(b - A @ x))


def barriers(random):
    """Linear programs with a logarithmic barrier: NaN outside a polytope."""
    d = 3
    A = np.vstack([random.normal(size=(5, d)), np.eye(d), -np.eye(d)])
    x0 = random.uniform(-0.5, 0.5, d)
    b = A @ x0 + random.uniform(0.01, 2, len(A))
    mu = log_uniform(random, -6, 1)
    return plain_problem(barrier, x0, A, b, random.normal(size=d), mu, size=min(mu, 1.0), scale=mu)


def root_at_the_edge(x, a, b):
    return a * jnp.sqrt(x[0]) + (x[0] + b[0]) ** 2 + (x[1] - b[1]) ** 2


def edges(random):
    """A square root whose slope grows without bound at the edge of the domain, where f is least."""
    b = np.array([random.uniform(0.1, 2), random.normal() * 3])
    x0 = np.array([random.uniform(0.5, 4), 0.0])
    a = random.uniform(0.2, 3)
    return plain_problem(root_at_the_edge, x0, a, b, truth="boundary", is_smooth=False)


def entropy(x, c, s):
    return jnp.sum(s * (x * jnp.log(x) - c * x))


def entropies(random):
    """Sums of x log x: NaN for negative x."""
    c, s = random.normal(size=4) * 2, log_uniform(random, -3, 3, 4)
    solution = np.exp(c - 1)
    return plain_problem(
        entropy, log_uniform(random, -3, 2, 4), c, s, size=solution, scale=s @ solution
    )


def gaussian_well(x, c, w, a):
    return -a * jnp.exp(-jnp.sum((x - c) ** 2) / w**2)


def gaussian_wells(random):
    """A well from starts at 0.1 to 25 widths: the gradient may underflow."""
    c, w, a = random.normal(size=2), log_uniform(random, -2, 2), log_uniform(random, -3, 3)
    u = random.normal(size=2)
    x0 = c + random.uniform(0.1, 25) * w * u / np.linalg.norm(u)
    return plain_problem(gaussian_well, x0, c, w, a, size=w, scale=a)


def wells(x, centres, depths):
    return -jnp.sum(depths * jnp.exp(-jnp.sum((x - centres) ** 2, 1))) + 0.01 * jnp.sum(x**2)


def several_wells(random):
    """Several wells in a bowl, with saddles between them."""
    centres, depths = random.normal(size=(4, 3)) * 2, random.uniform(0.3, 2, 4)
    return plain_problem(wells, random.normal(size=3) * 3, centres, depths)


def waves(x, M, curvature):
    return jnp.sum(1 - jnp.cos(M @ x)) + curvature * jnp.sum(x**2)


def periodic(random):
    """Sums of cosines, with a bowl or without; some starts are exact maxima."""
    M = random.normal(size=(4, 4)) * log_uniform(random, -1, 1)
    x0 = random.normal(size=4) * 2
    if random.integers(4) == 0:
        M, x0 = np.diag(log_uniform(random, -1, 1, 4)), np.zeros(4)
        x0[:2] = np.pi / M.diagonal()[:2]
    return plain_problem(waves, x0, M, random.choice([0.0, 0.05]), size=1 / np.linalg.norm(M, 2))


def product(x, a, w):
    return (jnp.prod(x) - a) ** 2 + w * jnp.sum((x[1:] - x[:-1]) ** 2)


def products(random):
    """The square of a product minus a number: valleys, and a saddle at 0."""
    x0 = random.normal(size=3) if random.integers(3) else np.array([0.0, 0.0, random.normal()])
    return plain_problem(product, x0, random.normal() * 2, random.choice([0.0, 0.1]))


def inflection(x, w):
    return w[0] * x[0] ** 2 + w[1] * x[1] ** 3 + w[2] * x[1] ** 6


def inflections(random):
    """A point where slope and curvature vanish on the way down: x1^3 + x1^6."""
    w = log_uniform(random, -1, 1, 3)
    x0 = np.array([random.normal(), random.uniform(0.1, 2)])
    return plain_problem(inflection, x0, w, scale=w[1] ** 2 / w[2] / 4)


def fourth_order(x, w, c):
    z = x - c
    return w[0] * z[0] ** 2 - w[1] * z[1] ** 4 + w[2] * z[1] ** 6


def fourth_order_maxima(random):
    """A maximum of fourth order along one coordinate, which the start may hit exactly."""
    w, c = log_uniform(random, -1, 1, 3), random.choice([0.0, 1.0]) * random.normal(size=2)
    x0 = c + np.array([random.normal(), random.choice([0.0, 1e-6, 1e-3, 0.1])])
    return plain_problem(fourth_order, x0, w, c, scale=w[1] ** 3 / w[2] ** 2)


def monkey(x, w):
    return x[0] ** 3 - 3 * x[0] * x[1] ** 2 + w * jnp.sum(x**2) ** 2


def monkeys(random):
    """A monkey saddle in a bowl, from its centre, from near it and from afar."""
    x0 = random.normal(size=2) * random.choice([0.0, 1e-4, 1.0, 10.0])
    w = log_uniform(random, -1, 1)
    return plain_problem(monkey, x0, w, size=1 / w, scale=w**-3)


def double_well(x, w):
    return w[0] * x[0] ** 2 - w[1] * x[1] ** 2 + w[2] * jnp.sum(x**4) + x[2] ** 2


def saddles(random):
    """A saddle between two minima, from exact starts on the ridge."""
    w = log_uniform(random, -2, 2, 3)
    x0 = np.array([random.normal(), random.choice([0.0, 0.0, 1e-9, 0.5]), random.normal()])
    well = np.sqrt(w[1] / 2 / w[2])
    return plain_problem(double_well, x0, w, size=well, scale=w[1] ** 2 / 4 / w[2])


def flat_valley(x, a):
    return a * (x[0] - x[1] ** 2) ** 2 + (x[2] - x[0] * x[1]) ** 2


def flat_valleys(random):
    """A curve of minima."""
    return plain_problem(flat_valley, random.normal(size=3) * 2, log_uniform(random, -2, 4))


def degenerate(x, c, w):
    z = x - c
    return w[0] * z[0] ** 4 + w[1] * z[1] ** 6 + w[2] * z[2] ** 2


def degenerate_minima(random):
    """Minima of fourth and sixth order, where Newton's method is slow."""
    c, w = random.normal(size=3), log_uniform(random, -2, 2, 3)
    x0 = c + random.normal(size=3) * 2
    return plain_problem(degenerate, x0, c, w, scale=w.max())


def polynomial_fall(x, c, w):
    return w[0] * c @ x + w[1] * x[0] ** 3 - w[2] * x[1] ** 2 + 0.1 * x[2] ** 2


def polynomial_falls(random):
    """Unbounded below: linear, cubic, or a concave quadratic."""
    w = np.eye(3)[random.integers(3)] * log_uniform(random, -3, 3)
    c = random.normal(size=3)
    c[2] = 0
    x0 = random.normal(size=3)
    return plain_problem(polynomial_fall, x0, c, w, truth="unbounded")


def exponential_fall(x, w):
    return -w * jnp.exp(x[0]) + x[1] ** 2


def logarithmic_fall(x, w):
    return -w * jnp.log(1 + x[0] ** 2) + x[1] ** 2


def root_fall(x, w):
    return -w * jnp.sqrt(1 + x[0] ** 2) + x[1] ** 2


def other_falls(random):
    """Unbounded below as an exponential, a logarithm or a square root falls."""
    function = (exponential_fall, logarithmic_fall, root_fall)[random.integers(3)]
    x0, w = random.normal(size=2), log_uniform(random, -1, 1)
    return plain_problem(function, x0, w, truth="unbounded")


def exponential_tail(x, w):
    return w * jnp.exp(-x[0]) + (x[1] - 1) ** 2


def rational_tail(x, w):
    return w / (1 + x[0] ** 2) + (x[1] - 1) ** 2


def sigmoid_tail(x, w):
    return w / (1 + jnp.exp(x[0])) + (x[1] - 1) ** 2


def asymptotes(random):
    """Bounded below by 0, which is not attained: exp(-x), 1 / (1 + x^2), a sigmoid."""
    function = (exponential_tail, rational_tail, sigmoid_tail)[random.integers(3)]
    x0, w = np.array([random.uniform(-2, 2), random.normal()]), log_uniform(random, -3, 3)
    return plain_problem(function, x0, w, scale=w, truth="infimum")


def kinks(x, c, w):
    return (
        jnp.sum(w[0] * jnp.abs(x - c))
        + w[1] * jnp.max(x - c)
        + w[2] * jnp.sum(jnp.maximum(x - c, 0) ** 2 + jnp.maximum(c - x - 1, 0))
    )


def kinked(random):
    """Absolute values, maxima and ReLU, which have no derivative at their minima."""
    w = log_uniform(random, -1, 1, 3)
    w[1] = min(w[1], w[0] / 2)
    x0 = random.normal(size=3) * log_uniform(random, -1, 2)
    return plain_problem(kinks, x0, random.normal(size=3), w, scale=w.max(), is_smooth=False)


def cap(x, c, R):
    return jnp.sum((x - c) ** 2) - 3 * jnp.sqrt(R**2 - jnp.sum(x**2)) + jnp.log(2 * R + x[0])


def caps(random):
    """A function that is defined inside a ball alone: NaN outside, infinite slopes at its edge."""
    R = log_uniform(random, -1, 1)
    u = random.normal(size=3)
    x0 = u / np.linalg.norm(u) * R * random.choice([0.1, 0.9, 0.999999])
    return plain_problem(cap, x0, random.normal(size=3) * R, R, size=R, scale=R)


def offset_bowl(x, A, c, offset):
    return offset + (x - c) @ A @ (x - c) / 2


def offsets(random):
    """A bowl on top of a number of up to 1e12, or nothing but a constant."""
    M = random.normal(size=(3, 3)) * random.choice([0.0, 1.0, 1.0, 100.0])
    offset = random.choice([-1.0, 1.0]) * log_uniform(random, 0, 12)
    return plain_problem(offset_bowl, random.normal(size=3), M @ M.T, random.normal(size=3), offset)


def mixture(x, M, y):
    r = M @ x - y
    return (
        jnp.sum(r**2) / 2
        + jnp.sum(jnp.cos(x))
        + jnp.sum(jnp.sqrt(1 + x[1:] * x[:-1] * x[1:] * x[:-1]))
    )


def fifty(random):
    """Fifty coordinates: squares, cosines and products."""
    M = random.normal(size=(60, 50)) * log_uniform(random, -1, 1, 50)
    return plain_problem(mixture, random.normal(size=50), M, random.normal(size=60) * 3, scale=10.0)


FUNCTIONS = {
    f.__name__: f
    for f in (
        quadratics, separables, quartics, valleys, log_sums, pseudo_hubers, barriers, edges,
        entropies, gaussian_wells, several_wells, periodic, products, inflections,
        fourth_order_maxima, monkeys, saddles, flat_valleys, degenerate_minima, polynomial_falls,
        other_falls, asymptotes, kinked, caps, offsets, fifty,
    )
}  # fmt: skip
