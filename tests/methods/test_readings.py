"""`reading="printed"`: equation (2.6) of the paper as it is printed, with absolute values.

`printed` below is that equation, literally and coordinate by coordinate; every part of cfgd that
implements this reading is compared with it.
"""

import re

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mp
from scipy.special import roots_jacobi

import cfgd
from cfgd._core.pytrees import Structure
from cfgd.methods.paper.settings import lay_out
from objectives import CASES, in_float64
from problems import A, B, identity, quick

pytestmark = pytest.mark.slow

ALPHA, BETA, NODES = 0.3, 0.7, 4


def derivatives(fn, x):
    """Return the function t -> f_j'(t_j), f_j''(t_j) for all j."""

    def along(j):
        return lambda t: fn(x.at[j].set(t))

    def both(j, t):
        return jax.grad(along(j))(t), jax.grad(jax.grad(along(j)))(t)

    each = jax.jit(jax.vmap(both))
    return lambda t: in_float64(each, np.arange(x.size), t)


def printed(fn, x, c, alpha=ALPHA, beta=BETA, nodes=NODES):
    """Evaluate equation (2.6), with its integrals by s Gauss-Jacobi points as in (2.7)."""
    u, w = roots_jacobi(nodes, -alpha, 0)  # for the weight (1 - u)^(-alpha)
    scale = (1 - alpha) * 2 ** -(1 - alpha)  # C_alpha
    delta = np.abs(x - c) / 2
    of = derivatives(fn, jnp.asarray(x))
    slopes, curvatures = (
        np.array(part) for part in zip(*(of(delta * (1 + u_l) + c) for u_l in u), strict=True)
    )
    return scale * w @ slopes + scale * beta * np.abs(x - c) * (w @ curvatures)


def terminal_of(x):
    """Return a terminal with coordinates on both sides of x."""
    return x - np.where(np.arange(x.size) % 2, -0.6, 0.4) * (1 + np.arange(x.size) / 7)


def decay(p):
    t = jnp.linspace(0.0, 2.0, 7)
    return p[0] * jnp.exp(-p[1] * t) - jnp.cos(t)


OBJECTIVES = {
    name: (CASES[name].objective, CASES[name].fn, CASES[name].x)
    for name in (
        "quadratic",
        "smooth",
        "logistic 0/1, dense",
        "huber, csr, weights, l2",
        "poisson, dense",
        "least squares, weights, l2",
        "least squares, wide",
        "network, tanh, p = 1",
        "network, sigmoid, p = 3",
    )
} | {
    "residuals": (
        cfgd.Residuals(decay),
        lambda p: jnp.sum(decay(p) ** 2) / 2,
        np.array([0.8, 1.7]),
    ),
}
FEW = {"quadratic", "logistic 0/1, dense", "network, tanh, p = 1"}


# The formula.


@pytest.mark.parametrize(("objective", "fn", "x"), quick(OBJECTIVES, FEW))
def test_equation_2_6(objective, fn, x):
    c = terminal_of(x)
    assert (x > c).any()
    assert (x < c).any()
    got = cfgd.fractional_gradient(objective, x, c, ALPHA, BETA, NODES, reading="printed")
    with jax.enable_x64(True):
        expected = printed(fn, x, c)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
    exact = cfgd.fractional_gradient(objective, x, c, ALPHA, BETA, NODES)
    np.testing.assert_allclose(got[x > c], exact[x > c], rtol=1e-12)
    assert np.abs(got - exact)[x < c].min() > 1e-3


def test_the_integrals_of_equation_2_6():
    """The quadrature above against the integrals, for one variable and both signs."""

    def f(m, t):
        return m.sin(2 * t) + t**4 / 7

    for x, c in ((0.5, 1.7), (1.7, 0.5)):
        delta = mp.mpf(abs(x - c)) / 2
        scale = (1 - ALPHA) * mp.mpf(2) ** -(1 - ALPHA)

        def integral(n, delta=delta, c=c):
            return mp.quad(
                lambda u: mp.diff(lambda t: f(mp, t), delta * (1 + u) + c, n) * (1 - u) ** -ALPHA,
                [-1, 0, 0.9, 1],
            )

        with mpmath.workdps(15):
            expected = float(scale * integral(1) + scale * BETA * abs(x - c) * integral(2))
        got = cfgd.fractional_gradient(
            lambda x: f(jnp, x[0]), [x], [c], ALPHA, BETA, 16, reading="printed"
        )
        np.testing.assert_allclose(got, [expected], rtol=1e-4)  # mp.quad near the singular end


def printed_on(A, b, x, c, alpha, beta):
    """g + a_jj ((c - x) + (E U + beta) |x - c|)."""
    return A @ x + b + np.diag(A) * ((c - x) + (1 / (2 - alpha) + beta) * np.abs(x - c))


X0, C = np.array([1.0, -2.0, 1.5]), np.array([-1.0, 0.5, 2.0])


@pytest.mark.parametrize("nodes", [1, 10])
def test_closed_form_on_a_quadratic(nodes):
    f = cfgd.Quadratic(A, B)
    got = cfgd.fractional_gradient(f, X0, C, ALPHA, BETA, nodes, reading="printed")
    np.testing.assert_allclose(got, printed_on(A, B, X0, C, ALPHA, BETA), rtol=1e-13)


def test_it_is_no_caputo_derivative_left_of_the_terminal():
    """Errata 2 and 3: for f(t) = sin t + t^3, which has no symmetry to hide it."""

    def f(x):
        return jnp.sin(x[0]) + x[0] ** 3

    exact, as_printed = (
        cfgd.fractional_gradient(f, [0.5], [1.7], 0.3, 0.0, 16, reading=reading)[0]
        for reading in ("exact", "printed")
    )
    np.testing.assert_allclose([exact, as_printed], [3.86507930795, 17.056], rtol=1e-4)


# The methods: iterates against a plain loop.


def iterates(step, iterations, terminal, beta=lambda k: BETA):
    """x_0, ... on the quadratic; `terminal` gives c_k of the points so far."""
    points = [X0]
    for k in range(iterations):
        x, c = points[-1], terminal(points)
        d = printed_on(A, B, x, c, ALPHA, beta(k))
        points.append(x - step(x, c, d, beta(k)) * d)
    return np.array(points)


def exact_step(x, c, d, beta):
    return (A @ x + B) @ d / (d @ A @ d)


def exact_step_with_fixed_terminal(x, c, d, beta):
    """<d, d> / d'Jd, J being the derivative of d, which is another one on each side of c."""
    mean = 1 / (2 - ALPHA)
    J = A + np.diag(np.diag(A) * (-1 + (mean + beta) * np.sign(x - c)))
    return d @ d / (d @ J @ d)


def points_of(method, iterations):
    end = cfgd.minimize(
        cfgd.Quadratic(A, B),
        X0,
        method,
        max_iterations=iterations,
        tolerance=0,
        record={"x": identity},
    )
    return end.history["x"]


def test_adaptive_terminal():
    method = cfgd.AdaptiveTerminal(ALPHA, beta=BETA, past=[C], reading="printed")
    expected = iterates(exact_step, 8, lambda points: C if len(points) == 1 else points[-2])
    np.testing.assert_allclose(points_of(method, 8), expected, rtol=1e-9)


def test_non_adaptive():
    """The exact step uses the derivative of d, which differs on the two sides of c."""
    c, beta = X0 + np.array([0.1, -4.0, 0.2]), -0.3
    method = cfgd.NonAdaptive(c, ALPHA, beta=beta, reading="printed")
    expected = iterates(exact_step_with_fixed_terminal, 1, lambda points: c, lambda k: beta)
    np.testing.assert_allclose(points_of(method, 1), expected, rtol=1e-12)


@pytest.mark.parametrize(("c", "gamma"), [(-9.0, 0.4), (9.0, -2.4)], ids=["right", "left"])
def test_with_a_fixed_terminal_gamma_depends_on_the_side(c, gamma):
    """gamma is -(2 + gamma) on the left of c; the run converges if it is positive."""
    method = cfgd.NonAdaptive(c, ALPHA, gamma=gamma, reading="printed")
    end = cfgd.minimize(cfgd.Quadratic(A, B), X0, method, max_iterations=500)
    assert end.status is cfgd.Status.converged
    limit = cfgd.theory.tikhonov_solution(A, B, np.full(3, c), 0.4)
    np.testing.assert_allclose(end.x, limit, rtol=1e-6)


def test_adaptive_order():
    stages = [cfgd.Stage(3, ALPHA, beta=-0.3), cfgd.Stage(4, ALPHA, beta=-0.2)]
    method = cfgd.AdaptiveOrder(stages, C, step=cfgd.FixedStep(0.05), reading="printed")
    expected = iterates(lambda *at: 0.05, 7, lambda points: C, lambda k: -0.3 if k < 3 else -0.2)
    np.testing.assert_allclose(points_of(method, 7), expected, rtol=1e-9)


# Every step goes along that direction.

STEPS = {
    "exact": cfgd.ExactStep(),
    "fixed": cfgd.FixedStep(0.01),
    "grid": cfgd.GridStep(),
    "armijo": cfgd.ArmijoStep(),
    "network": cfgd.NetworkStep(),
}


@pytest.mark.parametrize("step", quick(STEPS, {"network"}))
def test_steps(step):
    objective, fn, x = OBJECTIVES["network, tanh, p = 1"]
    c = x + 0.01 * (terminal_of(x) - x)  # so near that d descends
    method = cfgd.AdaptiveTerminal(
        ALPHA, beta=BETA, past=[c], nodes=NODES, step=step, reading="printed"
    )
    end = cfgd.minimize(objective, x, method, max_iterations=1, record={"x": identity}, tolerance=0)
    with jax.enable_x64(True):
        d = printed(fn, x, c)
    eta = (x - end.history["x"][1]) / d
    hidden = objective.hidden
    layers = [eta[:hidden], eta[hidden:]] if isinstance(step, cfgd.NetworkStep) else [eta]
    for layer in layers:
        np.testing.assert_allclose(layer, layer[0], rtol=1e-7)
    assert np.abs(eta).max() > 1e-4


@pytest.mark.slow
def test_sweep():
    """Every row equals a single run; gamma and the start vary."""
    objective, _, x = OBJECTIVES["network, tanh, p = 1"]
    gammas, starts = np.array([0.5, 3.0]), np.stack([x, x + 0.1])
    network_step = cfgd.NetworkStep()
    rows = cfgd.sweep(
        objective,
        starts,
        cfgd.AdaptiveTerminal(gamma=gammas, nodes=NODES, step=network_step, reading="printed"),
        max_iterations=12,
    )
    for i, gamma in enumerate(gammas):
        method = cfgd.AdaptiveTerminal(
            gamma=gamma, nodes=NODES, step=network_step, reading="printed"
        )
        one = cfgd.minimize(objective, starts[i], method, max_iterations=12)
        np.testing.assert_allclose(rows.x[i], one.x, rtol=1e-8)
    other = cfgd.minimize(
        objective,
        starts[0],
        cfgd.AdaptiveTerminal(gamma=gammas[0], nodes=NODES, step=network_step),
        max_iterations=12,
    )
    assert np.abs(rows.x[0] - other.x).max() > 1e-3


# Costs and description.


@pytest.mark.slow
def test_the_reading_does_not_change_the_cost():
    """The number of gradients is the same, and XLA counts only the absolute values in addition."""
    objective, _, x = OBJECTIVES["network, tanh, p = 1"]
    costs, operations = [], []
    for reading in ("exact", "printed"):
        method = cfgd.AdaptiveTerminal(
            gamma=2.0, nodes=NODES, step=cfgd.NetworkStep(), reading=reading
        )
        costs.append(cfgd.minimize(objective, x, method, max_iterations=5).evaluations)
        with jax.enable_x64(True):
            step = jax.jit(lambda state, method=method: method.step(objective, state)[0])
            laid_out = lay_out(method, Structure.of(x), x.size)
            state = laid_out.init(objective, jnp.asarray(x))
            operations.append(step.lower(state).compile().cost_analysis()["flops"])
    assert costs[0] == costs[1]
    assert operations[1] <= operations[0] + 2 * x.size


def test_the_description_names_the_reading():
    f = cfgd.Quadratic(A, B)
    printed, exact = (
        cfgd.AdaptiveTerminal(gamma=-0.1, reading=reading).describe(f)
        for reading in ("printed", "exact")
    )
    assert printed == "AdaptiveTerminal with ExactStep, 1 node, the formula as printed"
    assert exact == "AdaptiveTerminal with ExactStep, 1 node"


WANTED = "must be one of exact, printed, got 'literal'."


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: cfgd.fractional_gradient(jnp.sum, [1.0], 0.0, 0.3, 0.2, reading="literal"),
            f"`fractional_gradient(reading=...)` {WANTED}",
        ),
        (
            lambda: cfgd.AdaptiveTerminal(gamma=0.1, reading="literal"),
            f"`AdaptiveTerminal(reading=...)` {WANTED}",
        ),
        (
            lambda: cfgd.NonAdaptive(0.0, gamma=0.1, reading="literal"),
            f"`NonAdaptive(reading=...)` {WANTED}",
        ),
        (
            lambda: cfgd.AdaptiveOrder([cfgd.Stage(1, gamma=0.1)], 0.0, reading="literal"),
            f"`AdaptiveOrder(reading=...)` {WANTED}",
        ),
        (
            lambda: cfgd.Fractional(
                cfgd.terminal.Lagged(1),
                cfgd.order.Constant(gamma=0.1),
                cfgd.ExactStep(),
                reading=None,
            ),
            "`Fractional(reading=...)` must be one of exact, printed, got None.",
        ),
        (
            lambda: cfgd.minimize(
                cfgd.Quadratic(A, B),
                X0,
                cfgd.AdaptiveTerminal(gamma="best", step=cfgd.FixedStep("best"), reading="printed"),
            ),
            "`AdaptiveTerminal(reading=...)` must be exact, as gamma is \"best\", got 'printed'.",
        ),
    ],
    ids=["function", "terminal", "fixed", "order", "fractional", "best"],
)
@pytest.mark.usefixtures("unchecked")
def test_message(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
