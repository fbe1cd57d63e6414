"""cfgd inside `scipy.optimize.minimize`: SciPy's problems, arguments and result fields."""

import re
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.optimize import Bounds, OptimizeResult, rosen, rosen_der, rosen_hess, rosen_hess_prod

import cfgd
from cfgd.integrations.scipy import adaptive_order, adaptive_terminal, auto, least_squares
from problems import quick


class MaximumEntropy:
    """The problem of SciPy's TestOptimizeSimple: a maximum entropy fit of three parameters."""

    F = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 0, 0]], float)
    K = np.array([1.0, 0.3, 0.5])
    solution = np.array([0.0, -0.524869316, 0.487525860])

    def func(self, x):
        with np.errstate(divide="ignore"):  # f is constant along x_0: trial points may be far
            return np.log(np.sum(np.exp(self.F @ x))) - self.K @ x

    def grad(self, x):
        weight = np.exp(self.F @ x)
        with np.errstate(invalid="ignore"):
            return weight / weight.sum() @ self.F - self.K


ENTROPY = MaximumEntropy()
STAGES = {"stages": [cfgd.Stage(20, gamma=1.0), cfgd.Stage(2000, gamma=0.0)]}
METHODS = {
    "auto": (auto, {}),
    "adaptive_terminal": (adaptive_terminal, {"gamma": -0.1, "maxiter": 3000}),
    "adaptive_order": (adaptive_order, STAGES),
}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "options"), METHODS.values(), ids=METHODS)
def test_scipys_maximum_entropy_problem(method, options):
    result = scipy.optimize.minimize(
        ENTROPY.func, np.zeros(3), jac=ENTROPY.grad, method=method, options=options
    )
    assert ENTROPY.func(result.x) == pytest.approx(ENTROPY.func(ENTROPY.solution), abs=1e-6)
    np.testing.assert_allclose(result.jac, ENTROPY.grad(result.x), atol=1e-12)
    assert isinstance(result, OptimizeResult)
    assert {"x", "fun", "jac", "nfev", "njev", "nit", "status", "success", "message"} <= set(result)


def test_forms_of_jac_agree():
    def both(x):
        return rosen(x), rosen_der(x)

    x0 = [-1.2, 1.0, 0.5]
    results = [
        scipy.optimize.minimize(rosen, x0, jac=rosen_der, method=auto),
        scipy.optimize.minimize(both, x0, jac=True, method=auto),
        scipy.optimize.minimize(rosen, x0, method=auto),
        scipy.optimize.minimize(rosen, x0, jac="2-point", method=auto),
    ]
    for result in results:
        np.testing.assert_allclose(result.x, np.ones(3), atol=1e-4)
        assert result.success
    assert results[0].nit == results[1].nit
    assert results[2].nfev > results[0].nfev


def test_result_equals_that_of_cfgd_minimize():
    ours = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto)
    core = cfgd.minimize(cfgd.External(rosen, rosen_der), [-1.2, 1.0])
    assert np.array_equal(ours.x, core.x)
    assert ours.fun == core.value
    assert ours.nit == core.iterations
    assert ours.message == core.message


def test_args_tol_and_maxiter():
    def shifted(x, a, b):
        return rosen(x - a) + b

    def slope(x, a, b):
        return rosen_der(x - a)

    a = np.array([0.5, -1.0])
    result = scipy.optimize.minimize(shifted, [0.0, 0.0], args=(a, 2.0), jac=slope, method=auto)
    np.testing.assert_allclose(result.x, 1 + a, atol=1e-6)
    assert result.fun == pytest.approx(2.0)
    loose = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto, tol=1e-2)
    tight = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto, tol=1e-10)
    assert loose.nit < tight.nit
    few = scipy.optimize.minimize(
        rosen, [-1.2, 1.0], jac=rosen_der, method=auto, options={"maxiter": 3}
    )
    assert few.nit == 3
    assert not few.success
    assert few.status != 0


@pytest.mark.slow
def test_both_forms_of_callback():
    calls = []

    def of_x(xk):
        calls.append(xk)

    def of_result(intermediate_result):
        calls.append(intermediate_result)
        if len(calls) == 4:
            raise StopIteration

    result = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto, callback=of_x)
    assert len(calls) in (result.nit, result.nit - 1)
    assert calls[0].shape == (2,)
    calls.clear()
    result = scipy.optimize.minimize(
        rosen, [-1.2, 1.0], jac=rosen_der, method=auto, callback=of_result
    )
    assert result.nit == 4
    assert not result.success
    assert result.status == 99
    assert calls[-1].fun == pytest.approx(rosen(calls[-1].x))


def test_scalar_start():
    result = scipy.optimize.minimize(lambda x: (x[0] - 3) ** 2, 0.0, method=auto)
    np.testing.assert_allclose(result.x, [3.0], atol=1e-4)


INVALID = {
    "bounds": ({"bounds": [(1, 0), (0, 1)]}, "`auto(bounds=...)` must be feasible"),
    "constraints": (
        {"constraints": {"type": "eq", "fun": lambda x: x[0]}},
        "`auto(constraints=...)` must be omitted: cfgd minimises",
    ),
    "maxiter": ({"options": {"maxiter": -1}}, "`auto(maxiter=...)` must be a positive number"),
    "hess": ({"hess": "4-point"}, "`auto(hess=...)` must be a function, a HessianUpdateStrategy"),
    "options": (
        {"options": {"ftol": 1e-9}},
        "`auto(options=...)` must be among maxiter, tol, gtol, time",
    ),
}


@pytest.mark.parametrize(("given", "message"), INVALID.values(), ids=INVALID)
def test_invalid_arguments_raise(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        scipy.optimize.minimize(rosen, [0.0, 0.0], jac=rosen_der, method=auto, **given)


def test_hess_saves_iterations():
    given = {"jac": rosen_der, "method": auto}
    without = scipy.optimize.minimize(rosen, [-1.2, 1.0], **given)
    result = scipy.optimize.minimize(rosen, [-1.2, 1.0], hess=rosen_hess, **given)
    assert result.success
    np.testing.assert_allclose(result.x, 1, atol=1e-8)
    assert result.nit <= 0.75 * without.nit
    assert result.nfev < without.nfev
    assert result.nhev <= result.nit + 1
    assert without.nhev == 0


@pytest.mark.slow
def test_adaptive_terminal_with_hess_hessp_and_differences_agrees():
    a = np.array([0.5, -1.0])

    def shifted(x, a):
        return rosen(x - a)

    def slope(x, a):
        return rosen_der(x - a)

    given = {
        "nothing": {},
        "hess": {"hess": lambda x, a: rosen_hess(x - a)},
        "hessp": {"hessp": lambda x, p, a: rosen_hess_prod(x - a, p)},
    }
    options = {"gamma": -0.1, "maxiter": 30}
    ends = {
        name: scipy.optimize.minimize(
            shifted, [0.9, 0.2], (a,), adaptive_terminal, slope, options=options, **more
        )
        for name, more in given.items()
    }
    np.testing.assert_allclose(ends["hess"].x, ends["hessp"].x, rtol=1e-12)
    np.testing.assert_allclose(ends["nothing"].x, ends["hess"].x, rtol=1e-4)
    assert ends["hess"].nhev == ends["hessp"].nhev / 2
    assert ends["hess"].njev < 0.3 * ends["nothing"].njev


def test_auto_warns_that_hessp_is_unused():
    given = {"jac": rosen_der, "hessp": rosen_hess_prod, "method": auto}
    with pytest.warns(RuntimeWarning, match=r"auto does not use Hessian-vector product") as caught:
        scipy.optimize.minimize(rosen, [0.0, 0.0], **given)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # SciPy ignores hessp too if hess is given
        scipy.optimize.minimize(rosen, [0.0, 0.0], hess=rosen_hess, **given)


def test_start_that_is_not_finite():
    for fun, x0 in ((lambda x: np.nan, [1.0]), (rosen, [np.nan, 1.0])):
        result = scipy.optimize.minimize(fun, x0, method=auto)
        assert result.success is False
        assert np.isnan(result.fun)
        assert "not finite: start elsewhere" in result.message


def test_return_value_of_callback_does_not_stop_the_run():
    result = scipy.optimize.minimize(
        rosen, [-1.2, 1.0], jac=rosen_der, method=auto, callback=lambda xk: True
    )
    assert result.success


def test_fun_that_returns_a_vector_raises():
    with pytest.raises(ValueError, match=r"auto\(fun=...\)` must return a scalar, got shape \(2,"):
        scipy.optimize.minimize(lambda x: x, [1.0, 1.0], method=auto)


def test_adaptive_order_requires_stages():
    with pytest.raises(ValueError, match=r"options\['stages'\]=...\)` must be given"):
        scipy.optimize.minimize(rosen, [0.0, 0.0], jac=rosen_der, method=adaptive_order)


T = np.linspace(0, 3, 15)
Y = 2 * np.exp(-1.3 * T) + 0.1 * np.cos(9 * T)


def residuals(p, t):
    return p[0] * np.exp(-p[1] * t) - Y


def jacobian(p, t):
    return np.column_stack([np.exp(-p[1] * t), -p[0] * t * np.exp(-p[1] * t)])


FORMS = {
    "JAX": (lambda p, t: p[0] * jnp.exp(-p[1] * t) - Y, None),
    "a function": (residuals, jacobian),
    "sparse": (residuals, lambda p, t: scipy.sparse.csr_array(jacobian(p, t))),
    "2-point": (residuals, "2-point"),
    "NumPy without jac": (residuals, None),
}


SQUARES = {
    f"{loss}-{form}": (loss, *FORMS[form])
    for loss in ("linear", "soft_l1", "huber", "cauchy")
    for form in FORMS
}
QUICK = [name for name in SQUARES if name.startswith("linear") or name.endswith("a function")]


@pytest.mark.parametrize(("loss", "fun", "jac"), quick(SQUARES, [*QUICK, "cauchy-JAX"]))
def test_least_squares_equals_scipys(loss, fun, jac):
    ours = least_squares(fun, [1.0, 1.0], jac, loss=loss, f_scale=0.1, args=(T,))
    theirs = scipy.optimize.least_squares(
        residuals, [1.0, 1.0], loss=loss, f_scale=0.1, xtol=1e-12, args=(T,)
    )
    assert ours.success
    assert ours.status == 1
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-4)
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)
    np.testing.assert_allclose(ours.fun, theirs.fun, atol=1e-5)
    if loss == "linear":
        np.testing.assert_allclose(ours.jac, theirs.jac, atol=1e-3)
        np.testing.assert_allclose(ours.grad, ours.jac.T @ ours.fun, atol=1e-8)
    assert set(theirs) <= set(ours)


@pytest.mark.slow
def test_least_squares_has_the_same_iterates_for_numpy_and_jax():
    for n in (1, 2, 3):
        by_jax, by_numpy = (
            least_squares(fun, [1.0, 1.0], jac, args=(T,), max_nfev=n).x
            for fun, jac in (FORMS["JAX"], FORMS["a function"])
        )
        np.testing.assert_allclose(by_numpy, by_jax, rtol=1e-9)


def test_least_squares_counts_and_bounds_its_calls():
    calls = {"r": 0, "J": 0}

    def r(p):
        calls["r"] += 1
        return residuals(p, T)

    def J(p):
        calls["J"] += 1
        return jacobian(p, T)

    result = least_squares(r, [1.0, 1.0], J)
    assert calls == {"r": result.nfev, "J": result.njev}
    # one for each iteration and the start; four for the curvature check at the end; one at the end
    assert result.njev <= result.nit + 1 + 4 + 1
    few = least_squares(r, [1.0, 1.0], J, max_nfev=2)
    assert (few.status, few.success, few.nit) == (0, False, 2)


def test_error_in_a_function_propagates_with_the_best_solution():
    calls = []

    def r(p):
        calls.append(1)
        if len(calls) > 6:
            raise ZeroDivisionError("mine")
        return residuals(p, T)

    for J in (lambda p: jacobian(p, T), "2-point"):
        calls.clear()
        with pytest.raises(ZeroDivisionError, match="mine"):
            least_squares(r, [1.0, 1.0], J)
    calls = []

    def bad(p):
        calls.append(1)
        if len(calls) > 2:
            raise ZeroDivisionError("mine")
        return jacobian(p, T)

    with pytest.raises(ZeroDivisionError, match="mine") as error:
        least_squares(lambda p: residuals(p, T), [1.0, 1.0], bad)
    assert error.value.solution.value <= np.sum(residuals([1.0, 1.0], T) ** 2) / 2


INVALID_RESIDUALS = {
    "loss": ({"loss": "arctan"}, "must be one of linear, soft_l1, huber, cauchy"),
    "jac": ({"jac": "4-point"}, "must be None, a function or '2-point', got '4-point'"),
    "columns": ({"jac": lambda p: np.ones((1, 2))}, "return a matrix with 1 columns, got shape"),
    "rows": ({"jac": lambda p: np.ones((3, 1))}, "return a matrix with 1 rows, got 3"),
}


@pytest.mark.parametrize(("given", "message"), INVALID_RESIDUALS.values(), ids=INVALID_RESIDUALS)
def test_least_squares_invalid_arguments_raise(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        least_squares(lambda p: p, [1.0], **given)


# ------------------------------------------------------------------ bounds


@pytest.mark.parametrize("jac", [rosen_der, None], ids=["gradient", "differences"])
def test_bounds_give_the_minimum_of_lbfgsb(jac):
    bounds = Bounds([-2.0, 0.0], [0.7, 0.2])
    options = {"ftol": 1e-15, "gtol": 1e-10}
    found = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=jac, bounds=bounds, method=auto)
    want = scipy.optimize.minimize(
        rosen, [-1.2, 1.0], jac=rosen_der, bounds=bounds, method="L-BFGS-B", options=options
    )
    assert found.success
    np.testing.assert_allclose(found.x, want.x, rtol=1e-5)


@pytest.mark.parametrize("jac", [None, "2-point"])
def test_least_squares_takes_bounds(jac):
    def residuals(x):
        return np.array([10 * (x[1] - x[0] ** 2), 1 - x[0]])

    bounds = [-5.0, -5.0], [0.5, 5.0]
    found = least_squares(residuals, [-1.2, 1.0], jac, bounds)
    want = scipy.optimize.least_squares(residuals, [-1.2, 1.0], bounds=bounds, xtol=1e-14)
    np.testing.assert_allclose(found.x, want.x, atol=1e-7)
    np.testing.assert_array_equal(found.active_mask, [1, 0])
    assert found.optimality < 1e-6
