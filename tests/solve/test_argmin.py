"""`argmin` beside closed forms and SciPy: solutions, derivatives, transformations, failures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from argmin_cases import CASES, LOWER, UPPER, T, decay, differences

import cfgd
from cfgd.status import STATUSES


@pytest.fixture
def x64():
    with jax.enable_x64(True):
        yield


def bowl(x, centre, weight=1.0):
    """A function whose minimum is where tanh(x) = centre, by hand x = atanh(centre)."""
    return jnp.sum(weight * (jnp.log(jnp.cosh(x)) - centre * x))


# ------------------------------------------------------------------ derivatives


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "name",
    [
        name if name in ("exponential", "in_box") else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ],
)
def test_solutions_and_derivatives(name):
    """Both modes agree with differences of a solution that does not call the library."""
    run, solve, theta = CASES[name]
    both = jax.jit(lambda t: (run(t), jax.jacfwd(run)(t), jax.jacrev(run)(t)))
    x, forward, reverse = both(theta)
    wanted = differences(solve, theta)
    np.testing.assert_allclose(x, solve(theta), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(forward, wanted, rtol=1e-6, atol=1e-7 * np.abs(wanted).max())
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-10)


def test_the_bounded_case_has_a_bound_of_each_kind():
    x = CASES["in_box"].solve(CASES["in_box"].theta)
    at_lower, at_upper = x == LOWER, x == UPPER
    assert (at_lower & ~at_upper).any()
    assert (at_upper & ~at_lower).any()
    assert (at_lower & at_upper).any()
    assert (~at_lower & ~at_upper).any()


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["ridge", "exponential", "valley", "in_box", "chain"])
def test_second_derivatives(name):
    run, _, theta = CASES[name]
    theta, rest = theta[:3], theta[3:]
    of_some = lambda t: run(jnp.concatenate([t, rest]))  # noqa: E731
    first = jax.jit(jax.jacfwd(of_some))
    wanted = differences(first, theta)
    for second in (jax.jacfwd(jax.jacrev(of_some)), jax.jacrev(jax.jacrev(of_some))):
        np.testing.assert_allclose(jax.jit(second)(theta), wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_third_derivative():
    """x = atanh(c): 1 / (1 - c^2), 2c / (1 - c^2)^2, (2 + 6c^2) / (1 - c^2)^3."""
    c = 0.4

    def x(c):
        return cfgd.argmin(bowl, 0.1, (c,))

    third = jax.jit(jax.grad(jax.grad(jax.grad(x))))(c)
    np.testing.assert_allclose(third, (2 + 6 * c**2) / (1 - c**2) ** 3, rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_the_start_and_whole_numbers_have_no_derivative():
    def x(start, centre, power):
        return cfgd.argmin(lambda x, c, k: (x - c) ** k, start, (centre, power))

    in_start, in_centre = jax.jit(jax.grad(x, (0, 1)), static_argnums=2)(0.5, 2.0, 2)
    assert in_start == 0
    np.testing.assert_allclose(in_centre, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_the_value_has_the_derivative_of_the_envelope_theorem():
    def value(c):
        return cfgd.argmin(bowl, 0.1, (c,), full=True).value

    np.testing.assert_allclose(jax.grad(value)(0.4), -np.arctanh(0.4), rtol=1e-9)
    np.testing.assert_allclose(jax.grad(jax.grad(value))(0.4), -1 / (1 - 0.16), rtol=1e-9)


# ------------------------------------------------------------------ inside JAX


@pytest.mark.usefixtures("x64")
def test_vmap_is_a_loop():
    """Of 50 problems with starts of their own, some of them far."""
    random = np.random.default_rng(0)
    centres, starts = random.uniform(-0.95, 0.95, (50, 2)), 3 * random.normal(size=(50, 2))

    def solve(centre, start):
        return cfgd.argmin(bowl, start, (centre,), full=True)

    together, one = jax.jit(jax.vmap(solve))(centres, starts), jax.jit(solve)
    np.testing.assert_allclose(together.x, np.arctanh(centres), rtol=1e-9, atol=1e-12)
    for i in range(50):
        alone = one(centres[i], starts[i])
        np.testing.assert_allclose(together.x[i], alone.x, rtol=1e-12)
        assert together.iterations[i] == alone.iterations


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_vmap_over_problems_with_many_unknowns():
    run, solve, theta = CASES["chain"]
    thetas = theta * np.array([[1.0], [0.5], [-0.2]]) + np.array([0, 0, 0.1])
    thetas[:, 0] = abs(thetas[:, 0])
    x, slopes = jax.jit(jax.vmap(lambda t: (run(t), jax.jacfwd(run)(t))))(thetas)
    for i in range(3):
        np.testing.assert_allclose(x[i], solve(thetas[i]), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(slopes[i], differences(solve, thetas[i]), rtol=1e-6, atol=1e-8)


@pytest.mark.slow
def test_derivatives_in_float32():
    """As many digits as float32 has; the data are passed, so that their precision is that of x."""
    _, solve, theta = CASES["exponential"]

    def x(y):
        return cfgd.argmin(cfgd.Residuals(decay), jnp.array([1.0, 1.0, 0.0]), (jnp.asarray(T), y))

    y = jnp.asarray(theta, jnp.float32)
    slopes = jax.jit(jax.jacrev(x))(y)
    assert slopes.dtype == jnp.float32
    np.testing.assert_allclose(x(y), solve(theta), rtol=1e-4)
    np.testing.assert_allclose(slopes, differences(solve, theta), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_a_bad_problem_does_not_touch_the_others():
    centres = np.array([0.3, np.nan, 2.0, -0.6])  # the third has no minimum

    end = jax.vmap(lambda c: cfgd.argmin(bowl, 0.0, (c,), full=True))(centres)
    names = [STATUSES[code].name for code in end.status]
    assert names[0] == names[3] == "converged"
    assert names[1] == "nonfinite"
    assert names[2] != "converged"
    np.testing.assert_allclose(np.asarray(end.x)[[0, 3]], np.arctanh(centres[[0, 3]]), rtol=1e-9)
    slopes = np.asarray(jax.vmap(jax.grad(lambda c: cfgd.argmin(bowl, 0.0, (c,))))(centres))
    np.testing.assert_allclose(slopes[[0, 3]], 1 / (1 - centres[[0, 3]] ** 2), rtol=1e-9)
    assert np.isnan(slopes[[1, 2]]).all()


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_inside_scan():
    """x_k minimises (x - a)^2 + (x - x_{k-1})^2: half the way to a, for ever."""

    def last(a):
        def step(x, _):
            new = cfgd.argmin(lambda z, x: (z - a) ** 2 + (z - x) ** 2, x, (x,))
            return new, new

        return jax.lax.scan(step, jnp.zeros(()), None, length=5)[1]

    np.testing.assert_allclose(jax.jit(last)(3.0), 3 * (1 - 0.5 ** np.arange(1, 6)), rtol=1e-9)
    np.testing.assert_allclose(jax.jacrev(last)(3.0), 1 - 0.5 ** np.arange(1, 6), rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_captured_tracers_of_every_kind():
    """Floating ones have derivatives; whole numbers of a surrounding `vmap` and `jit` work."""

    def solve(c, k):
        return cfgd.argmin(lambda x: (x - c * k) ** 2 + x**2 * k, 0.0)

    c, k = np.array([1.0, -2.0]), np.array([1, 3])
    slopes = jax.jit(jax.vmap(jax.grad(solve)))(c, k)
    np.testing.assert_allclose(slopes, k / (1 + k), rtol=1e-9)


def test_captured_tracers_keep_their_precision():
    """A start of NumPy's float64 is rounded, as JAX rounds it in its default configuration."""

    def solve(c):
        return cfgd.argmin(lambda x: jnp.sum((x - c) ** 2 + x**2), np.zeros(2))

    x, slope = jax.jit(lambda c: (solve(c), jax.jacfwd(solve)(c)))(3.0)
    assert x.dtype == slope.dtype == jnp.float32
    np.testing.assert_allclose(x, 1.5, rtol=1e-6)
    np.testing.assert_allclose(slope, 0.5, rtol=1e-6)


# ------------------------------------------------------------------ what comes back


def test_numpy_in_numpy_out_in_float64():
    """Also where JAX computes in float32; numbers of x0 may be whole."""
    c = np.array([0.3, -0.7])
    x = cfgd.argmin(bowl, {"a": 0, "b": [1]}["b"] * 2, (c,))
    assert type(x) is np.ndarray
    assert x.dtype == np.float64
    np.testing.assert_allclose(x, np.arctanh(c), rtol=1e-12)
    assert not jax.config.jax_enable_x64


def test_jax_arrays_in_their_own_precision():
    x = cfgd.argmin(bowl, jnp.zeros(2), (jnp.array([0.3, -0.7]),))
    assert isinstance(x, jax.Array)
    assert x.dtype == jnp.float32
    np.testing.assert_allclose(x, np.arctanh([0.3, -0.7]), rtol=1e-5)


@pytest.mark.usefixtures("x64")
def test_float64_data_promote_a_float32_start():
    c = jnp.array([0.3, -0.7])
    x = cfgd.argmin(bowl, jnp.zeros(2, jnp.float32), (c,))
    assert x.dtype == jnp.float64
    np.testing.assert_allclose(x, np.arctanh(c), rtol=1e-12)


def test_aux_and_full():
    """`aux` is that of the solution, and may hold anything."""

    def f(x, c):
        return bowl(x["z"], c), {"tanh": jnp.tanh(x["z"]), "words": "kept"}

    x, aux = cfgd.argmin(f, {"z": np.zeros(2)}, (np.array([0.5, -0.2]),), has_aux=True)
    np.testing.assert_allclose(aux["tanh"], [0.5, -0.2], rtol=1e-12)
    assert aux["words"] == "kept"
    end = cfgd.argmin(f, {"z": np.zeros(2)}, (np.array([0.5, -0.2]),), has_aux=True, full=True)
    assert jax.tree.structure(end.x) == jax.tree.structure(x)
    assert STATUSES[int(end.status)] is cfgd.Status.converged
    assert end.is_differentiable
    assert end.iterations > 0
    np.testing.assert_allclose(
        end.value, float(bowl(jnp.asarray(x["z"]), np.array([0.5, -0.2]))), 1e-6
    )


def test_own_arguments_of_residuals_come_first():
    f = cfgd.Residuals(lambda x, a, b: a * x - b, args=(np.array([2.0, 2.0]),))
    np.testing.assert_allclose(cfgd.argmin(f, 0.0, (np.array([3.0, 5.0]),)), 2.0)


@pytest.mark.slow
def test_other_objectives():
    f = cfgd.Quadratic([[3.0, 1.0], [1.0, 2.0]], [1.0, -4.0])
    np.testing.assert_allclose(cfgd.argmin(f, [0, 0]), [-1.2, 2.6])
    X, y = np.random.default_rng(0).normal(size=(30, 3)), np.where(np.arange(30) % 3, 1.0, -1.0)
    f = cfgd.LinearModel(X, y, loss="logistic", l2=1.0)
    np.testing.assert_allclose(cfgd.argmin(f, np.zeros(3)), cfgd.minimize(f, np.zeros(3)).x, 1e-6)


# ------------------------------------------------------------------ failures


def test_a_run_that_does_not_converge():
    """An error outside of jit, NaN inside, and the best point with `full`."""
    c = np.array([0.3, -0.7])
    with pytest.raises(cfgd.ConvergenceError, match=r"`max_iterations`.*After 1 iterations") as e:
        cfgd.argmin(bowl, np.ones(2), (c,), max_iterations=1)
    assert e.value.solution.status is cfgd.Status.max_iterations
    assert e.value.solution.value < float(bowl(jnp.ones(2), c))
    end = cfgd.argmin(bowl, np.ones(2), (c,), max_iterations=1, full=True)
    np.testing.assert_array_equal(end.x, e.value.solution.x)
    assert not end.is_differentiable

    def inside(c):
        return cfgd.argmin(bowl, jnp.ones(2), (c,), max_iterations=1)

    x, slope = jax.jit(lambda c: (inside(c), jax.jacrev(inside)(c)))(jnp.asarray(c))
    assert np.isnan(x).all()
    assert np.isnan(slope).all()


@pytest.mark.usefixtures("x64")
def test_a_singular_hessian():
    """x is one of many minimisers: it comes back, and its derivatives are NaN in both modes."""

    def solve(a):
        return cfgd.argmin(lambda x: (x[0] + 2 * x[1] - a) ** 2, jnp.zeros(2), full=True)

    def x(a):
        return solve(a).x

    end, forward, reverse = jax.jit(lambda a: (solve(a), jax.jacfwd(x)(a), jax.jacrev(x)(a)))(3.0)
    assert STATUSES[int(end.status)] is cfgd.Status.converged
    np.testing.assert_allclose(end.x[0] + 2 * end.x[1], 3.0)
    assert not end.is_differentiable
    assert np.isnan(forward).all()
    assert np.isnan(reverse).all()


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_a_singular_hessian_of_many_unknowns():
    """The rest of the function is fine: the flat direction must be found among 150."""

    def solve(a):
        return cfgd.argmin(
            lambda x: jnp.sum((x[1:] - x[:-1] - a) ** 2) + jnp.sum((x[1:] - x[:-1]) ** 4),
            jnp.zeros(150),
            full=True,
        )

    end = jax.jit(solve)(0.3)
    assert STATUSES[int(end.status)] is cfgd.Status.converged
    assert not end.is_differentiable
    assert np.isnan(jax.jit(jax.jacrev(lambda a: solve(a).x))(0.3)).all()


@pytest.mark.usefixtures("x64")
def test_a_degenerate_bound_is_free():
    """x = max(a, 0) at a = 0, where both one-sided derivatives exist: that of the free side."""

    def x(a):
        return cfgd.argmin(lambda x, a: (x - a) ** 2, 1.0, (a,), bounds=(0.0, None))

    slopes = jax.jit(jax.vmap(jax.grad(x)))(np.array([-0.5, 0.0, 0.5]))
    np.testing.assert_array_equal(slopes, [0, 1, 1])


@pytest.mark.usefixtures("unchecked")
@pytest.mark.every_case
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"objective": 3}, "objective=...)` must be an objective or a function, got 3"),
        ({"objective": lambda x: x}, "objective=...)` must return a scalar, got shape (2,)"),
        ({"objective": lambda x: float(x[0])}, "objective=...)` must be written in JAX"),
        ({"objective": lambda x: x[0], "has_aux": True}, "must return (value, aux)"),
        ({"objective": lambda x: (x, 1), "has_aux": True}, "must return a scalar, got shape (2,)"),
        ({"objective": cfgd.External(sum, abs)}, "must be written in JAX; `minimize` takes"),
        (
            {"objective": cfgd.Residuals(lambda x: x), "has_aux": True},
            "has_aux=...)` must be False",
        ),
        (
            {"objective": cfgd.Quadratic(np.eye(2), [1, 1]), "args": (1,)},
            "args=...)` must be used with",
        ),
        ({"objective": cfgd.Quadratic(np.eye(3), [1, 1, 1])}, "x0=...)` must have shape (3,)"),
        ({"args": 3}, "args=...)` must be a tuple, such as (data,), got a int"),
        ({"x0": []}, "x0=...)` must hold at least one number"),
        ({"x0": [0.0, np.nan]}, "x0=...)` must be finite, got nan at index 1"),
        ({"bounds": [(0, 1)]}, "bounds=...)` must hold 2 pairs"),
        ({"tolerance": -1.0}, "tolerance=...)` must be a number of at least 0"),
        ({"max_iterations": 0}, "max_iterations=...)` must be an integer of at least 1"),
        ({"full": 1}, "full=...)` must be True or False, got 1"),
    ],
)
def test_refused(given, words):
    call = {"objective": lambda x: (x**2).sum(), "x0": [1.0, 2.0]} | given
    with pytest.raises(ValueError, match="argmin") as error:
        cfgd.argmin(**call)
    assert words in str(error.value)


def test_traced_bounds_are_refused():
    with pytest.raises(ValueError, match=r"`argmin\(bounds=\.\.\.\)` must be concrete numbers"):
        jax.jit(lambda b: cfgd.argmin(lambda x: x**2, 1.0, bounds=(b, 3.0)))(0.5)
