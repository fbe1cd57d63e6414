"""`caputo` and `smoothing` against the paper's definitions, evaluated by mpmath."""

import functools
import math
import re

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from mpmath import mp
from pycaputo.differentiation import diff
from pycaputo.differentiation.caputo import Jacobi
from pycaputo.grid import make_jacobi_gauss_lobatto_points

import cfgd

# a curve is written once, for jax (m = jnp) and for mpmath (m = mp); none is even or odd
CURVES = {
    "sine and cube": lambda m, t: m.sin(t) + t**3,
    "exponential": lambda m, t: m.exp(t / 2),
    "logarithm": lambda m, t: m.log(t + 5) - t**2 / 3,
}
sine_and_cube = functools.partial(CURVES["sine and cube"], jnp)
ORDERS = [0.3, 0.5, 0.9, 1.3, 1.7, 2.5]
TERMINAL = 0.7
# two on either side of the terminal; four everywhere, since each new shape costs a second
X = np.array([-1.6, 0.1, 0.75, 2.9])
Z = np.array([-2.7, 0.4, 0.7, 2.3])  # the terminal among them

curves = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
orders = pytest.mark.parametrize("order", ORDERS)


def definition(f, order, c, x, derivative=mp.diff):
    """Definition 2.1, left or right by the sign of x - c, for an order that is no integer.

    |x - t| = |x - c| v^(1/(n - order)) takes the singularity out of the integral: what is left
    is (1/(n - order)) |x - c|^(n - order) times the integral of f^(n) over v in [0, 1].
    """
    order, c, x = mp.mpf(order), mp.mpf(c), mp.mpf(x)
    n, side = int(mp.ceil(order)), mp.sign(x - c)
    power = 1 / (n - order)

    def integrand(v):
        return derivative(f, x - (x - c) * v**power, n)

    integral = power * abs(x - c) ** (n - order) * mp.quad(integrand, [0, 1])
    return side**n / mp.gamma(n - order) * integral


def scaled_slope(f, alpha, beta, c, x, derivative=mp.diff):
    """Equation 2.2: [D^alpha f + beta |x - c| D^(1 + alpha) f] / D^alpha I."""
    first, second = (definition(f, a, c, x, derivative) for a in (alpha, 1 + mp.mpf(alpha)))
    return (first + beta * abs(x - c) * second) / definition(lambda t: t, alpha, c, x)


def in_digits(digits, fn):
    """fn in `digits` digits, as a float64 array."""
    with mpmath.workdps(digits):
        return np.array(fn(), dtype=float)


# By definition.


@curves
@orders
def test_definition(curve, order):
    got = cfgd.caputo(functools.partial(curve, jnp), order, TERMINAL)(X)
    f = functools.partial(curve, mp)
    expected = in_digits(20, lambda: [definition(f, order, TERMINAL, x) for x in X])
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)


def test_definition_is_evaluated_accurately():
    """The oracle itself, with and without the substitution, on an order that allows both."""
    with mpmath.workdps(30):
        direct = mp.quad(lambda t: mp.cos(t) * (mp.mpf(2) - t) ** mp.mpf("-0.125"), [1, 2])
        assert mp.almosteq(
            direct / mp.gamma(mp.mpf("0.875")), definition(mp.sin, 0.125, 1, 2), rel_eps=1e-20
        )


def test_errata_2_and_3():
    """The signs of Theorem 2: its nodes and its beta term hold with x - c, not with |x - c|."""
    alpha, c, x = 0.3, 1.7, 0.5

    def ratio(order):
        D, identity = cfgd.caputo(sine_and_cube, order, c), cfgd.caputo(lambda t: t, alpha, c)
        return (D(np.full(4, x)) / identity(np.full(4, x)))[0]

    np.testing.assert_allclose(ratio(alpha), 3.86507930795, rtol=1e-11)
    np.testing.assert_allclose(abs(x - c) * ratio(1 + alpha), -6.21697907199, rtol=1e-11)

    # the text of the theorem, literally: Delta = |x - c| / 2
    def as_printed(g):
        Delta, power = abs(x - c) / 2, 1 / mp.mpf(1 - alpha)
        # with u = 1 - 2 v^power, against the singularity, C_alpha (1 - u)^(-alpha) du is -dv
        return mp.quad(lambda v: g(Delta * (2 - 2 * v**power) + c), [0, 1])

    first = in_digits(20, lambda: as_printed(lambda t: mp.cos(t) + 3 * t**2))
    second = in_digits(20, lambda: abs(x - c) * as_printed(lambda t: -mp.sin(t) + 6 * t))
    np.testing.assert_allclose([first, second], [17.056, 16.57], rtol=3e-4)


# In closed form.


@orders
@pytest.mark.parametrize("power", [1, 2, 3, 4, 7])
def test_powers(order, power):
    """(t - c)^p: on the right it is (-1)^p (c - t)^p, and the right derivative sees c - t."""
    got = cfgd.caputo(lambda t: (t - TERMINAL) ** power, order, TERMINAL)(X)
    h = np.abs(X - TERMINAL)
    side = np.where(X > TERMINAL, 1, (-1) ** power)
    expected = side * math.gamma(power + 1) / math.gamma(power + 1 - order) * h ** (power - order)
    if power < order:  # f^(n) is zero
        expected = np.zeros(4)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def mittag_leffler(a, b, z):
    return mp.nsum(lambda k: z**k / mp.gamma(a * k + b), [0, mp.inf])


def exponential(order, h, side):
    """Of exp(1.4 (t - c)), at distance h: k-th terms with k >= n survive."""
    n, rate = math.ceil(order), side * mp.mpf(1.4)
    return rate**n * h ** (n - order) * mittag_leffler(1, n + 1 - order, rate * h)


def sine(order, h, side):
    """Of sin(1.4 (t - c)), an odd function of t - c: odd terms with 2j + 1 >= n survive."""
    j, rate = math.ceil(order) // 2, side * mp.mpf(1.4)
    first = (-1) ** j * rate ** (2 * j + 1) * h ** (2 * j + 1 - order)
    return first * mittag_leffler(2, 2 * j + 2 - order, -((rate * h) ** 2))


@orders
@pytest.mark.parametrize(
    ("curve", "closed_form"),
    [(jnp.exp, exponential), (jnp.sin, sine)],
    ids=["exponential", "sine"],
)
def test_mittag_leffler(curve, closed_form, order):
    got = cfgd.caputo(lambda t: curve(1.4 * (t - TERMINAL)), order, TERMINAL)(X)
    expected = in_digits(
        25, lambda: [closed_form(order, abs(x - TERMINAL), np.sign(x - TERMINAL)) for x in X]
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12)


# Integer orders are limits.

DERIVATIVES = {  # of sin t + t^3, and the sign of its limit on the right
    1: (lambda t: np.cos(t) + 3 * t**2, -1),
    2: (lambda t: -np.sin(t) + 6 * t, +1),
    3: (lambda t: -np.cos(t) + 6, -1),
}


@pytest.mark.parametrize("order", DERIVATIVES)
@pytest.mark.parametrize("kind", [int, float, np.float64], ids=lambda k: k.__name__)
def test_integer_order(order, kind):
    derivative, right = DERIVATIVES[order]
    got = cfgd.caputo(sine_and_cube, kind(order), TERMINAL)(X)
    np.testing.assert_allclose(got, np.where(X > TERMINAL, 1, right) * derivative(X), rtol=1e-13)


@pytest.mark.parametrize("order", DERIVATIVES)
def test_integer_order_at_the_terminal(order):
    """There it is left: the derivative itself."""
    got = cfgd.caputo(sine_and_cube, order, TERMINAL)(Z)
    np.testing.assert_allclose(got[2], DERIVATIVES[order][0](TERMINAL), rtol=1e-13)


@pytest.mark.parametrize("order", DERIVATIVES)
def test_integer_order_is_the_limit_from_below(order):
    exactly = cfgd.caputo(sine_and_cube, order, TERMINAL)(X)
    below = cfgd.caputo(sine_and_cube, order - 1e-7, TERMINAL)(X)
    np.testing.assert_allclose(below, exactly, rtol=0, atol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_from_above_the_limit_is_another(order):
    """There n = order + 1, and the integral of f^(n) is f^(n-1)(x) - f^(n-1)(c)."""
    derivative, right = DERIVATIVES[order]
    expected = np.where(X > TERMINAL, 1, right) * (derivative(X) - derivative(TERMINAL))
    above = cfgd.caputo(sine_and_cube, order + 1e-7, TERMINAL)(X)
    np.testing.assert_allclose(above, expected, rtol=0, atol=1e-5)


# A second library, for x > c.


@curves
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_pycaputo(curve, alpha):
    """Its spectral method, 16 points: rounding there leaves it 1e-11 to 1e-12 away."""
    grid = make_jacobi_gauss_lobatto_points(16, a=TERMINAL, b=2.9)
    expected = diff(Jacobi(alpha), lambda t: curve(np, t), grid)
    got = cfgd.caputo(functools.partial(curve, jnp), alpha, TERMINAL)(grid.x)
    np.testing.assert_allclose(got[1:], expected[1:], rtol=0, atol=5e-11)


# Broadcasting, and the terminal itself.


def cubic(order, terminal, x):
    """The derivative of (t - 0.7)^3 + 2 (t - 0.7)^2 where the terminal is 0.7."""
    h, side = np.abs(x - terminal), np.where(x > terminal, 1, -1)
    third, second = 6 / math.gamma(4 - order), 4 / math.gamma(3 - order)
    return side * third * h ** (3 - order) + second * h ** (2 - order)


@pytest.mark.parametrize("shape", [(), (4,), (1, 3, 2), (0,)], ids=str)
def test_every_shape_of_x(shape):
    order = 1.3
    x = np.array([2.9, -1.6, 0.7, 0.1, 0.71, 5.0])[: math.prod(shape)].reshape(shape)
    got = cfgd.caputo(lambda t: (t - 0.7) ** 3 + 2 * (t - 0.7) ** 2, order, 0.7)(x)
    assert got.shape == shape
    np.testing.assert_allclose(got, cubic(order, 0.7, x), rtol=1e-12, atol=0)


def test_one_terminal_for_each_x():
    """t^2 = (t - c)^2 + 2c (t - c) + c^2, each power as above."""
    x, c = np.array([[2.0], [-1.0], [0.5]]), np.array([-1.5, 0.5, 3.0, 0.25])
    got = cfgd.caputo(lambda t: t**2, 0.5, c)(x)
    h, side = np.abs(x - c), np.sign(x - c)
    expected = 2 * h**1.5 / math.gamma(2.5) + side * 2 * c * h**0.5 / math.gamma(1.5)
    np.testing.assert_allclose(got, expected, rtol=1e-12)


@orders
def test_at_the_terminal_it_is_zero(order):
    got = cfgd.caputo(sine_and_cube, order, TERMINAL)(Z)
    assert got[2] == 0
    assert np.isfinite(got).all()
    assert np.count_nonzero(got) == 3


# Smoothing: Theorem 1.

SETTINGS = [(0.66, 1.0), (0.3, 0.0), (0.9, -0.4)]
settings = pytest.mark.parametrize(("alpha", "beta"), SETTINGS)
POLYNOMIALS = {  # coefficients in powers of z - TERMINAL, the constant first
    "line": [2.0, -3.0],
    "cubic": [1.0, -0.5, 0.25, 2.0],
    "degree 6": [-1.0, 2.0, 0.3, -0.7, 0.11, 0.05, -0.02],
}


def theorem_1(taylor, alpha, beta, z):
    """Value and slope by the theorem's series; taylor[k] is f^(k)(c) / k!."""
    value, slope, h = mp.mpf(taylor[0]), mp.mpf(0), mp.mpf(z) - TERMINAL
    for k in range(1, len(taylor)):
        C = (
            mp.gamma(2 - alpha)
            * mp.gamma(k)
            * (1 / mp.gamma(k + 1 - alpha) + beta / mp.gamma(k - alpha))
        )
        C = C if k > 1 else 1
        value += C * taylor[k] * h**k
        slope += C * taylor[k] * k * h ** (k - 1)
    return value, slope


def value_and_slope(F, z):
    return np.stack([F(z), F.slope(z)], axis=-1)


@settings
@pytest.mark.parametrize("taylor", POLYNOMIALS.values(), ids=POLYNOMIALS)
def test_smoothing_of_polynomials(taylor, alpha, beta):
    def f(z):  # Horner's scheme
        return functools.reduce(lambda value, a: value * (z - TERMINAL) + a, taylor[::-1], 0.0)

    F = cfgd.smoothing(f, alpha, beta, TERMINAL)
    expected = in_digits(25, lambda: [theorem_1(taylor, alpha, beta, z) for z in Z])
    np.testing.assert_allclose(value_and_slope(F, Z), expected, rtol=1e-12, atol=1e-12)


@settings
def test_smoothing_of_the_exponential(alpha, beta):
    F = cfgd.smoothing(lambda z: jnp.exp(1.3 * (z - TERMINAL)), alpha, beta, TERMINAL)
    taylor = [1.3**k / math.factorial(k) for k in range(50)]
    expected = in_digits(25, lambda: [theorem_1(taylor, alpha, beta, z) for z in Z])
    np.testing.assert_allclose(value_and_slope(F, Z), expected, rtol=1e-12, atol=1e-13)


def test_smoothing_figure():
    def f(z):
        return (z - 6) * (z + 4) * (7 * z**2 + 10 * z + 24)

    F, z = cfgd.smoothing(f, 0.66, 1.0, -1.0), np.array([-2.7, 0.7, -1.0, -1.0])
    np.testing.assert_allclose(
        F.slope(z)[:2], [-279.98780395580843, -902.1139947430053], rtol=1e-13
    )
    np.testing.assert_allclose(cfgd.caputo(f, 1, -9.0)(z)[:2], [-41.004, -513.876], rtol=1e-13)
    np.testing.assert_array_equal(F(z)[2:], f(-1.0))


@settings
@curves
def test_smoothing_slope_is_the_scaled_caputo_slope(curve, alpha, beta):
    F = cfgd.smoothing(functools.partial(curve, jnp), alpha, beta, TERMINAL)
    f = functools.partial(curve, mp)
    expected = in_digits(20, lambda: [scaled_slope(f, alpha, beta, TERMINAL, x) for x in X])
    np.testing.assert_allclose(F.slope(X), expected, rtol=1e-11)


@curves
def test_smoothing_slope_is_the_slope_of_its_value(curve):
    F = cfgd.smoothing(functools.partial(curve, jnp), 0.3, -0.4, TERMINAL)
    h = 2e-3  # five points: an error of order h^4
    difference = F(X - 2 * h) - 8 * F(X - h) + 8 * F(X + h) - F(X + 2 * h)
    np.testing.assert_allclose(difference / (12 * h), F.slope(X), rtol=1e-9)


@settings
@curves
def test_smoothing_starts_at_the_terminal(curve, alpha, beta):
    """F(c) = f(c) and F'(c) = f'(c), whatever alpha and beta are."""
    F = cfgd.smoothing(functools.partial(curve, jnp), alpha, beta, TERMINAL)
    f = functools.partial(curve, mp)
    expected = in_digits(20, lambda: [f(mp.mpf(TERMINAL)), mp.diff(f, mp.mpf(TERMINAL))])
    np.testing.assert_allclose(value_and_slope(F, Z)[2], expected, rtol=1e-13)


@curves
def test_smoothing_vanishes_at_order_one(curve):
    """alpha = 1 and beta = 0 recover f itself."""
    F = cfgd.smoothing(functools.partial(curve, jnp), 1 - 1e-9, 0.0, TERMINAL)
    f = functools.partial(curve, mp)
    expected = in_digits(20, lambda: [(f(x), mp.diff(f, x)) for x in map(mp.mpf, X)])
    np.testing.assert_allclose(value_and_slope(F, X), expected, rtol=0, atol=1e-7)


def test_smoothing_beyond_the_radius_of_convergence():
    """1 / (1 + 25 z^2) has poles at +-0.2i, 0.36 from the terminal 0.3; z is 0.5 away."""
    alpha, beta, c = 0.4, 0.5, 0.3

    def f(z):
        return 1 / (1 + 25 * z**2)

    def derivative(f, z, n):  # four times as fast as mp.diff
        q = 1 + 25 * z**2
        return -50 * z / q**2 if n == 1 else (5000 * z**2 / q - 50) / q**2

    def slope(z):
        return scaled_slope(f, alpha, beta, c, z, derivative)

    def value(z):
        halves = [c, (c + z) / 2, z]
        return f(mp.mpf(c)) + mp.quad(slope, halves, method="gauss-legendre", maxdegree=4)

    F, z = cfgd.smoothing(f, alpha, beta, c), np.array([-0.2, 0.8])  # right and left
    expected = in_digits(12, lambda: [(value(t), slope(t)) for t in z])
    np.testing.assert_allclose(value_and_slope(F, np.tile(z, 2))[:2], expected, rtol=1e-11)


# Precision follows the data; under jit, vmap and grad these are plain JAX functions.

FUNCTIONS = {  # at the terminal 0.7, each with its exact value at x = 2.9
    "caputo": (
        lambda: cfgd.caputo(lambda t: (t - 0.7) ** 2, 0.5, 0.7),
        2 / math.gamma(2.5) * 2.2**1.5,
    ),
    "caputo of order 2": (lambda: cfgd.caputo(lambda t: (t - 0.7) ** 3, 2, 0.7), 6 * 2.2),
    "smoothing": (
        lambda: cfgd.smoothing(lambda t: (t - 0.7) ** 2, 0.5, 0.25, 0.7),
        (2 / 3 + 0.25) * 2.2**2,
    ),
    "smoothing slope": (
        lambda: cfgd.smoothing(lambda t: (t - 0.7) ** 2, 0.5, 0.25, 0.7).slope,
        2 * (2 / 3 + 0.25) * 2.2,
    ),
}
functions = pytest.mark.parametrize(("make", "exact"), FUNCTIONS.values(), ids=FUNCTIONS)


@functions
@pytest.mark.parametrize("x", [2.9, np.float64(2.9), np.full(4, 2.9)], ids=repr)
def test_numpy_gets_float64_although_jax_is_at_float32(make, exact, x):
    assert not jax.config.jax_enable_x64
    got = make()(x)
    assert type(got) is np.ndarray
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, np.full(np.shape(x), exact), rtol=1e-13)
    assert not jax.config.jax_enable_x64


@functions
def test_integers_are_numbers(make, exact):
    got = make()(np.array([3, 2, -1, 0]))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, make()(np.array([3.0, 2.0, -1.0, 0.0])))


@functions
@pytest.mark.parametrize("x64", [False, True], ids=["x64 off", "x64 on"])
@pytest.mark.parametrize("kind", [np, jnp], ids=["numpy", "jax"])
def test_float32_stays_float32(make, exact, kind, x64):
    """The terminal, alpha and beta are numbers: they have no precision of their own."""
    with jax.enable_x64(x64):
        x = kind.full(4, 2.9, np.float32)
        got = make()(x)
    assert isinstance(got, jax.Array) == isinstance(x, jax.Array)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, [exact] * 4, rtol=1e-5)


@functions
def test_jit_and_vmap(make, exact):
    fn = make()
    with jax.enable_x64(True):
        got = jax.jit(jax.vmap(fn))(jnp.asarray(X))
    np.testing.assert_allclose(got, fn(X), rtol=1e-13)
    np.testing.assert_allclose(got[-1], exact, rtol=1e-13)


@pytest.mark.parametrize(("x", "order"), [(-1.6, 0.3), (2.9, 1.7)], ids=["right", "left"])
def test_gradient_of_caputo(order, x):
    """In x and in the terminal, against the definition differentiated by mpmath."""
    curve = CURVES["exponential"]

    def D(x, c):
        return cfgd.caputo(functools.partial(curve, jnp), order, c)(x)

    with jax.enable_x64(True):
        got = jax.jit(jax.grad(D, argnums=(0, 1)))(x, TERMINAL)
    f = functools.partial(curve, mp)
    expected = in_digits(
        20,
        lambda: [
            mp.diff(lambda x: definition(f, order, TERMINAL, x), x),
            mp.diff(lambda c: definition(f, order, c, x), TERMINAL),
        ],
    )
    np.testing.assert_allclose(got, expected, rtol=1e-11)


def test_gradient_in_the_terminal_at_a_number_x():
    slope = jax.jit(jax.grad(lambda c: cfgd.caputo(lambda t: t**2, 0.5, c)(2.0)))(0.5)
    expected = -2 * 0.5 / math.sqrt(1.5) / math.gamma(0.5)  # -f'(c) (x - c)^(-1/2) / Gamma(1/2)
    np.testing.assert_allclose(slope, expected, rtol=1e-5)


def test_gradient_of_smoothing_is_its_slope():
    F = cfgd.smoothing(sine_and_cube, 0.66, 1.0, TERMINAL)
    with jax.enable_x64(True):
        slope = jax.jit(jax.vmap(jax.grad(F)))(jnp.asarray(X))
    np.testing.assert_allclose(slope, F.slope(X), rtol=1e-12)


# Bad input.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: cfgd.caputo(jnp.sin, 0.0, 0.0),
            "`caputo(order=...)` must be a positive number, got 0.0.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, np.array([0.5, 0.6]), 0.0),
            "`caputo(order=...)` must be one number, got shape (2,).",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, 0.5, math.nan),
            "`caputo(terminal=...)` must be finite, got nan.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, 0.5, 0.0, nodes=0),
            "`caputo(nodes=...)` must be an integer of at least 1, got 0.",
        ),
        (
            lambda: cfgd.smoothing(jnp.sin, 1.0, 0.0, 0.0),
            "`smoothing(alpha=...)` must lie in (0, 1), got 1.0.",
        ),
        (
            lambda: cfgd.smoothing(jnp.sin, 0.5, math.inf, 0.0),
            "`smoothing(beta=...)` must be finite, got inf.",
        ),
        (
            lambda: cfgd.caputo(jnp.sin, [0.5, 0.6], 0.0),
            "`caputo(order=...)` must be one number, got shape (2,).",
        ),
        (
            lambda: cfgd.smoothing(jnp.sin, np.array([0.5, 0.6]), 0.0, 0.0),
            "`smoothing(alpha=...)` must be one number, got shape (2,).",
        ),
    ],
    ids=[
        "order zero",
        "two orders",
        "terminal",
        "nodes",
        "alpha",
        "beta",
        "list of orders",
        "two alphas",
    ],
)
def test_message(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
