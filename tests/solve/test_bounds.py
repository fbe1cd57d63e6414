"""Bounds of `minimize`: what may be given, where runs end, and what they say."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import Bounds, lsq_linear, minimize as scipy_minimize, nnls

import cfgd
from cfgd._core.box import Box
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.projected import Projected

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 8)), RNG.normal(size=40)


def rosenbrock(x):
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


# ------------------------------------------------------------------ what may be given


@pytest.mark.parametrize(
    "bounds",
    [
        [(None, 0.5), (-1.0, None)],
        [(-np.inf, 0.5), [-1.0, np.inf]],
        ([None, -1.0], [0.5, None]),
        (np.array([-np.inf, -1.0]), np.array([0.5, np.inf])),
        Bounds([-np.inf, -1.0], [0.5, np.inf]),
        np.array([[-np.inf, 0.5], [-1.0, np.inf]]),
    ],
    ids=["pairs", "infinities", "lower and upper", "arrays", "SciPy", "array of pairs"],
)
def test_all_forms_of_bounds_mean_the_same(bounds):
    found = cfgd.minimize(rosenbrock, [-1.2, 1.0], bounds=bounds)
    np.testing.assert_allclose(found.x, [0.5, 0.25], rtol=1e-7)
    assert found.success
    assert list(found.active_mask) == [1, 0]


def test_numbers_stand_for_all_coordinates():
    found = cfgd.minimize(lambda x: jnp.sum((x - 3) ** 2), np.zeros(4), bounds=(None, 2.0))
    np.testing.assert_array_equal(found.x, [2.0, 2.0, 2.0, 2.0])


def test_a_dict_has_pairs_by_name():
    def f(p):
        return (p["a"] - 3) ** 2 + jnp.sum((p["b"] + 1) ** 2)

    start = {"a": 0.0, "b": np.zeros(3)}
    bounds = {"b": ([-0.5, -2.0, 0.0], None)}
    found = cfgd.minimize(f, start, bounds=bounds)
    assert found.x["a"] == pytest.approx(3)
    np.testing.assert_allclose(found.x["b"], [-0.5, -1.0, 0.0], atol=1e-7)
    np.testing.assert_array_equal(found.active_mask["b"], [-1, 0, -1])
    assert "At the lower bound: x['b'][0], x['b'][2]." in found.message


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([(0, 1)], "hold 2 pairs, one for each coordinate, got 1"),
        ([(1, 0), (0, 1)], "feasible, with lower <= upper, got 1 and 0 for x[0]"),
        ([(0, np.nan), (0, 1)], "be numbers or None, got NaN"),
        ([(np.inf, np.inf), (0, 1)], "feasible"),
        ([(0, "a"), (0, 1)], "minimize(bounds[0]=...)` must be a pair"),
        (((0, 1), (0, 1)), "say which is which for two coordinates"),
        (([0, 0, 0], [1, 1, 1]), "arrays of shape (2,)"),
        (3.0, "be a list of (lower, upper) pairs"),
        ({"a": (0, 1)}, "be a pair (lower, upper)"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(bounds, words):
    with pytest.raises(ValueError, match="bounds") as error:
        cfgd.minimize(rosenbrock, [0.0, 0.0], bounds=bounds)
    assert words in str(error.value)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="have keys among 'a', got 'b'"):
        cfgd.minimize(lambda p: p["a"] ** 2, {"a": 1.0}, bounds={"b": (0, 1)})


def test_a_method_that_does_not_minimise_is_refused():
    method = cfgd.NonAdaptive(terminal=np.zeros(2), gamma=0.1)
    with pytest.raises(ValueError, match="be None for a method that does not minimise f"):
        cfgd.minimize(cfgd.Quadratic(np.eye(2), [1.0, 1.0]), [0.0, 0.0], method, bounds=(0, 1))


# ------------------------------------------------------------------ where runs end


SQUARED = {
    "LeastSquares": cfgd.LeastSquares(X, Y),
    "LinearModel": cfgd.LinearModel(X, Y, "squared"),
    "Quadratic": cfgd.Quadratic(X.T @ X, -X.T @ Y),
    "Residuals": cfgd.Residuals(lambda w, X, y: X @ w - y, args=(X, Y)),
    "function": cfgd.Smooth(lambda w: jnp.sum((X @ w - Y) ** 2) / 2),
    "External": cfgd.External(lambda w: np.sum((X @ w - Y) ** 2) / 2, lambda w: X.T @ (X @ w - Y)),
}


@pytest.mark.parametrize("name", SQUARED)
def test_non_negative_least_squares_is_that_of_scipy(name):
    found = cfgd.minimize(SQUARED[name], np.ones(8), bounds=(0, None))
    assert found.success
    np.testing.assert_allclose(found.x, nnls(X, Y)[0], atol=1e-7)
    assert (found.x >= 0).all()


@pytest.mark.parametrize("name", ["LeastSquares", "Residuals"])
def test_boxed_least_squares_is_that_of_scipy(name):
    lower, upper = np.full(8, -0.1), np.linspace(0.02, 0.3, 8)
    lower[3], upper[4] = -np.inf, np.inf
    found = cfgd.minimize(SQUARED[name], np.zeros(8), bounds=(lower, upper))
    want = lsq_linear(X, Y, (lower, upper), method="bvls").x
    np.testing.assert_allclose(found.x, want, atol=1e-7)
    np.testing.assert_array_equal(found.active_mask, (want >= upper) * 1 - (want <= lower))


@pytest.mark.parametrize("name", ["LeastSquares", "Quadratic"])
def test_ill_conditioned_non_negative_least_squares(name):
    """The condition number of X'X is 1e12, with which guesses of the active set cycle."""
    rng = np.random.default_rng(5)
    U, V = (np.linalg.qr(rng.normal(size=(m, 30)))[0] for m in (80, 30))
    A = U * 10.0 ** np.linspace(0, -6, 30) @ V
    y = A @ rng.normal(size=30) + 1e-3 * rng.normal(size=80)
    f = cfgd.LeastSquares(A, y) if name == "LeastSquares" else cfgd.Quadratic(A.T @ A, -A.T @ y)
    found = cfgd.minimize(f, np.ones(30), bounds=(0, None))
    assert found.success
    residual = np.linalg.norm(A @ found.x - y)
    assert residual <= nnls(A, y, maxiter=10_000)[1] * (1 + 1e-10)


METHODS = {
    "gradient descent": cfgd.GradientDescent(),
    "Armijo": cfgd.GradientDescent(cfgd.ArmijoStep()),
    "adaptive terminal": cfgd.AdaptiveTerminal(gamma=-0.25),
    "adaptive order": cfgd.AdaptiveOrder(
        [cfgd.Stage(20, gamma=0.1), cfgd.Stage(400, gamma=0.0)], terminal=np.zeros(8)
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_the_methods_of_the_paper_take_projected_steps(name):
    found = cfgd.minimize(SQUARED["LeastSquares"], np.ones(8), METHODS[name], bounds=(0, None))
    assert found.success
    np.testing.assert_allclose(found.x, nnls(X, Y)[0], atol=1e-6)


def test_one_projected_step_is_the_formula():
    A, x0, eta = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([0.5, 0.1]), 0.3
    f = cfgd.Quadratic(A, [-4.0, 2.0])
    method = cfgd.GradientDescent(cfgd.FixedStep(eta))
    found = cfgd.minimize(f, x0, method, bounds=(0, 1), max_iterations=1)
    want = np.clip(x0 - eta * (A @ x0 + [-4.0, 2.0]), 0, 1)
    np.testing.assert_allclose(found.x, want)


@pytest.mark.parametrize("seed", range(4))
def test_random_boxes_have_the_minimum_of_lbfgsb(seed):
    rng = np.random.default_rng(seed)
    d = 12
    A, b = rng.normal(size=(d, d)) / 4, rng.normal(size=d)
    lower = rng.normal(size=d) - 0.7
    upper = lower + rng.exponential(size=d)
    lower[::4], upper[1::4] = -np.inf, np.inf

    def f(x):
        return np.cosh(A @ x).sum() + b @ x

    def gradient(x):
        return np.sinh(A @ x) @ A + b

    x0 = rng.normal(size=d)
    found = cfgd.minimize(cfgd.External(f, gradient), x0, bounds=(lower, upper))
    options = {"ftol": 1e-16, "gtol": 1e-10}
    start, box = np.clip(x0, lower, upper), list(zip(lower, upper, strict=True))
    want = scipy_minimize(f, start, jac=gradient, bounds=box, method="L-BFGS-B", options=options)
    assert found.success
    assert found.value <= want.fun + 1e-9 * abs(want.fun)
    free = found.active_mask == 0
    assert 0 < free.sum() < d
    np.testing.assert_allclose(found.gradient_norm, np.linalg.norm(gradient(found.x)[free]))


def test_bounds_that_are_not_met_change_nothing():
    f = cfgd.Residuals(lambda x: jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]]))
    for objective in (f, rosenbrock, SQUARED["LeastSquares"]):
        x0 = np.ones(8) if objective is SQUARED["LeastSquares"] else np.array([-1.2, 1.0])
        plain = cfgd.minimize(objective, x0)
        bounded = cfgd.minimize(objective, x0, bounds=(-1e3, 1e3))
        np.testing.assert_array_equal(plain.x, bounded.x)
        assert plain.evaluations == bounded.evaluations
        np.testing.assert_array_equal(plain.history["value"], bounded.history["value"])


def test_the_objective_is_evaluated_inside_only():
    lower, upper, seen = np.array([0.0, -1.0]), np.array([2.0, 0.5]), []

    def f(x):
        seen.append(np.array(x))
        return float((np.sqrt(x[0]) - 0.1) ** 2 + (x[1] - x[0]) ** 2 - x[1])

    def gradient(x):
        seen.append(np.array(x))
        root = np.sqrt(max(x[0], 1e-300))
        slope = (root - 0.1) / root
        return np.array([slope + 2 * (x[0] - x[1]), 2 * (x[1] - x[0]) - 1])

    found = cfgd.minimize(cfgd.External(f, gradient), [1.5, -0.5], bounds=(lower, upper))
    points = np.array(seen)
    assert ((points >= lower) & (points <= upper)).all()
    assert found.success


def test_a_vertex_and_fixed_coordinates():
    found = cfgd.minimize(lambda x: jnp.sum(x), [1.0, 2.0], bounds=(0, 5))
    np.testing.assert_array_equal(found.x, [0.0, 0.0])
    assert found.success
    fixed = cfgd.minimize(rosenbrock, [-1.2, 1.0], bounds=[(1.5, 1.5), (None, None)])
    np.testing.assert_allclose(fixed.x, [1.5, 2.25])
    assert "Fixed: x[0]." in fixed.message
    assert "The start was outside of `bounds` and was moved inside." in fixed.message
    everything = cfgd.minimize(rosenbrock, [-1.2, 1.0], bounds=([0.3, 0.4], [0.3, 0.4]))
    assert everything.success
    np.testing.assert_array_equal(everything.x, [0.3, 0.4])


def test_statuses_are_about_the_coordinates_that_may_move():
    # a saddle of the whole function that is a minimum on its face
    face = cfgd.minimize(
        lambda x: x[0] ** 2 - x[1] ** 2 + x[1], [1.0, 0.0], bounds=[(-2, 2), (0, 0.4)]
    )
    assert face.success
    np.testing.assert_allclose(face.x, [0.0, 0.0], atol=1e-8)

    # unbounded below without the bound, and with a bound on the other side
    def falls(x):
        return -(x[0] ** 3) + x[1] ** 2

    assert cfgd.minimize(falls, [1.0, 1.0], bounds=[(None, 2.0), (None, None)]).success
    assert (
        cfgd.minimize(falls, [1.0, 1.0], bounds=[(-3.0, None), (None, None)]).status.name
        == "unbounded"
    )


def test_a_saddle_inside_the_box_is_left():
    found = cfgd.minimize(
        lambda x: (x[0] ** 2 - 1) ** 2 + x[1] ** 2, [0.0, 0.3], bounds=(-0.5, 0.5)
    )
    assert found.success
    np.testing.assert_allclose(abs(found.x), [0.5, 0.0], atol=1e-7)


def test_a_network_and_a_sweep_take_bounds():
    t = np.linspace(-1, 1, 20)[:, None]
    network = cfgd.ShallowNetwork(t, np.tanh(2 * t[:, 0]), 3)
    start = np.random.default_rng(1).normal(size=network.dimension)
    found = cfgd.minimize(network, start, bounds=(-1, 1), max_iterations=300)
    assert (abs(found.x) <= 1).all()
    assert found.value < found.history["value"][0] / 100
    starts = np.array([[-1.2, 1.0], [0.0, 0.0]])
    ends = cfgd.sweep(
        cfgd.LeastSquares(X[:, :2], Y),
        starts,
        cfgd.Auto(),
        bounds=(0, None),
    )
    assert ends.success.all()
    assert ends.active_mask.shape == (2, 2)
    assert ends[0].active_mask.shape == (2,)


# ------------------------------------------------------------------ files


def test_a_solution_with_bounds_is_restored_from_json(tmp_path):
    found = cfgd.minimize(rosenbrock, [-1.2, 1.0], bounds=[(None, 0.5), (None, None)])
    found.to_json(tmp_path / "s.json")
    again = cfgd.Solution.from_json(tmp_path / "s.json")
    assert again == found
    np.testing.assert_array_equal(again.active_mask, [1, 0])


def test_a_checkpoint_of_other_bounds_is_refused(tmp_path):
    def run(bounds, **options):
        return cfgd.minimize(
            rosenbrock, [-1.2, 1.0], bounds=bounds, checkpoint=tmp_path / "c", **options
        )

    first = run([(None, 0.5), (None, None)], max_iterations=5)
    assert first.iterations == 5
    with pytest.raises(ValueError, match="its bounds is"):
        run([(None, 0.6), (None, None)])
    whole = cfgd.minimize(rosenbrock, [-1.2, 1.0], bounds=[(None, 0.5), (None, None)])
    resumed = run([(None, 0.5), (None, None)])
    np.testing.assert_array_equal(resumed.x, whole.x)
    assert resumed.evaluations == whole.evaluations


def test_projected_evaluations_have_no_gradient_at_active_bounds():
    f = Projected(cfgd.Quadratic(np.eye(3), [1.0, -1.0, 0.5]), Box(np.zeros(3), np.ones(3)))
    at = f.evaluate(jnp.array([-1.0, 0.5, 0.2]))
    assert isinstance(at, Evaluation)
    np.testing.assert_allclose(at.x, [0.0, 0.5, 0.2], rtol=1e-6)
    np.testing.assert_allclose(at.gradient, [0.0, -0.5, 0.7], rtol=1e-6)
