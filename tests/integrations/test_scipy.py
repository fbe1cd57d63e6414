"""cfgd inside `scipy.optimize.minimize`: SciPy's own problems, its forms and its fields."""

import re
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.optimize import OptimizeResult, rosen, rosen_der, rosen_hess, rosen_hess_prod

import cfgd
from cfgd.integrations.scipy import adaptive_order, adaptive_terminal, auto, least_squares
from problems import quick


class MaximumEntropy:
    """The problem of SciPy's TestOptimizeSimple: a maximum entropy fit of three parameters."""

    F = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 0, 0]], float)
    K = np.array([1.0, 0.3, 0.5])
    solution = np.array([0.0, -0.524869316, 0.487525860])

    def func(self, x):
        with np.errstate(divide="ignore"):  # f is constant along x_0, and may be looked at far off
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


@pytest.mark.parametrize(("method", "options"), METHODS.values(), ids=METHODS)
def test_scipys_simple_problem(method, options):
    found = scipy.optimize.minimize(
        ENTROPY.func, np.zeros(3), jac=ENTROPY.grad, method=method, options=options
    )
    assert ENTROPY.func(found.x) == pytest.approx(ENTROPY.func(ENTROPY.solution), abs=1e-6)
    np.testing.assert_allclose(found.jac, ENTROPY.grad(found.x), atol=1e-12)
    assert isinstance(found, OptimizeResult)
    assert {"x", "fun", "jac", "nfev", "njev", "nit", "status", "success", "message"} <= set(found)


def test_the_forms_of_a_gradient_agree():
    def both(x):
        return rosen(x), rosen_der(x)

    x0 = [-1.2, 1.0, 0.5]
    calls = [
        scipy.optimize.minimize(rosen, x0, jac=rosen_der, method=auto),
        scipy.optimize.minimize(both, x0, jac=True, method=auto),
        scipy.optimize.minimize(rosen, x0, method=auto),
        scipy.optimize.minimize(rosen, x0, jac="2-point", method=auto),
    ]
    for found in calls:
        np.testing.assert_allclose(found.x, np.ones(3), atol=1e-4)
        assert found.success
    assert calls[0].nit == calls[1].nit
    assert calls[2].nfev > calls[0].nfev


def test_it_is_the_core():
    ours = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto)
    core = cfgd.minimize(cfgd.External(rosen, rosen_der), [-1.2, 1.0])
    assert np.array_equal(ours.x, core.x)
    assert ours.fun == core.value
    assert ours.nit == core.iterations
    assert ours.message == core.message


def test_arguments_tolerance_and_iterations():
    def shifted(x, a, b):
        return rosen(x - a) + b

    def slope(x, a, b):
        return rosen_der(x - a)

    a = np.array([0.5, -1.0])
    found = scipy.optimize.minimize(shifted, [0.0, 0.0], args=(a, 2.0), jac=slope, method=auto)
    np.testing.assert_allclose(found.x, 1 + a, atol=1e-6)
    assert found.fun == pytest.approx(2.0)
    loose = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto, tol=1e-2)
    tight = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto, tol=1e-10)
    assert loose.nfev < tight.nfev
    few = scipy.optimize.minimize(
        rosen, [-1.2, 1.0], jac=rosen_der, method=auto, options={"maxiter": 3}
    )
    assert few.nit == 3
    assert not few.success
    assert few.status != 0


def test_callbacks_in_both_forms():
    seen = []

    def of_x(xk):
        seen.append(xk)

    def of_result(intermediate_result):
        seen.append(intermediate_result)
        if len(seen) == 4:
            raise StopIteration

    found = scipy.optimize.minimize(rosen, [-1.2, 1.0], jac=rosen_der, method=auto, callback=of_x)
    assert len(seen) in (found.nit, found.nit - 1)
    assert seen[0].shape == (2,)
    seen.clear()
    found = scipy.optimize.minimize(
        rosen, [-1.2, 1.0], jac=rosen_der, method=auto, callback=of_result
    )
    assert found.nit == 4
    assert not found.success
    assert found.status == 99
    assert seen[-1].fun == pytest.approx(rosen(seen[-1].x))


def test_zero_dimensions_and_one():
    found = scipy.optimize.minimize(lambda x: (x[0] - 3) ** 2, 0.0, method=auto)
    np.testing.assert_allclose(found.x, [3.0], atol=1e-4)


REFUSED = {
    "bounds": ({"bounds": [(0, 1), (0, 1)]}, "`auto(bounds=...)` must be omitted: cfgd minimises"),
    "constraints": (
        {"constraints": {"type": "eq", "fun": lambda x: x[0]}},
        "`auto(constraints=...)` must be omitted: cfgd minimises",
    ),
    "maxiter": ({"options": {"maxiter": -1}}, "`auto(maxiter=...)` must be a positive number"),
    "hess": ({"hess": "4-point"}, "`auto(hess=...)` must be a function, a HessianUpdateStrategy"),
    "options": (
        {"options": {"ftol": 1e-9}},
        "`auto(options=...)` must be maxiter, tol, gtol, time",
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        scipy.optimize.minimize(rosen, [0.0, 0.0], jac=rosen_der, method=auto, **given)


def test_a_hessian_saves_iterations():
    given = {"jac": rosen_der, "method": auto}
    without = scipy.optimize.minimize(rosen, [-1.2, 1.0], **given)
    found = scipy.optimize.minimize(rosen, [-1.2, 1.0], hess=rosen_hess, **given)
    assert found.success
    np.testing.assert_allclose(found.x, 1, atol=1e-8)
    assert found.nit <= 0.6 * without.nit
    assert found.nfev < without.nfev
    assert found.nhev <= found.nit + 1
    assert without.nhev == 0


def test_products_are_the_curvatures_of_the_papers_methods():
    """The diagonal of `hess`, of `hessp` and of differences lead the same way."""
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


def test_products_are_not_used_by_auto_and_said_so():
    given = {"jac": rosen_der, "hessp": rosen_hess_prod, "method": auto}
    with pytest.warns(RuntimeWarning, match=r"auto does not use Hessian-vector product") as said:
        scipy.optimize.minimize(rosen, [0.0, 0.0], **given)
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # SciPy ignores products beside a Hessian, too
        scipy.optimize.minimize(rosen, [0.0, 0.0], hess=rosen_hess, **given)


def test_a_start_that_is_not_finite_ends_at_once():
    for fun, x0 in ((lambda x: np.nan, [1.0]), (rosen, [np.nan, 1.0])):
        found = scipy.optimize.minimize(fun, x0, method=auto)
        assert found.success is False
        assert np.isnan(found.fun)
        assert "not finite: start elsewhere" in found.message


def test_a_callback_s_answer_does_not_end_a_run():
    found = scipy.optimize.minimize(
        rosen, [-1.2, 1.0], jac=rosen_der, method=auto, callback=lambda xk: True
    )
    assert found.success


def test_a_value_that_is_no_number():
    with pytest.raises(ValueError, match=r"auto\(fun=...\)` must return a scalar, got shape \(2,"):
        scipy.optimize.minimize(lambda x: x, [1.0, 1.0], method=auto)


def test_stages_are_asked_for():
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
    "NumPy alone": (residuals, None),
}


SQUARES = {
    f"{loss}-{form}": (loss, *FORMS[form])
    for loss in ("linear", "soft_l1", "huber", "cauchy")
    for form in FORMS
}
QUICK = [name for name in SQUARES if name.startswith("linear") or name.endswith("a function")]


@pytest.mark.parametrize(("loss", "fun", "jac"), quick(SQUARES, [*QUICK, "cauchy-JAX"]))
def test_least_squares_is_scipys(loss, fun, jac):
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


def test_least_squares_of_numpy_takes_the_steps_of_jax():
    """Iterate by iterate, but for rounding: it is the same method on the same formulas."""
    for n in (1, 2, 3):
        by_jax, by_numpy = (
            least_squares(fun, [1.0, 1.0], jac, args=(T,), max_nfev=n).x
            for fun, jac in (FORMS["JAX"], FORMS["a function"])
        )
        np.testing.assert_allclose(by_numpy, by_jax, rtol=1e-9)


def test_least_squares_calls_no_more_than_it_needs():
    calls = {"r": 0, "J": 0}

    def r(p):
        calls["r"] += 1
        return residuals(p, T)

    def J(p):
        calls["J"] += 1
        return jacobian(p, T)

    found = least_squares(r, [1.0, 1.0], J)
    assert calls == {"r": found.nfev, "J": found.njev}
    # one for each iteration and the start; four for the curvature at the end, and one there
    assert found.njev <= found.nit + 1 + 4 + 1
    few = least_squares(r, [1.0, 1.0], J, max_nfev=2)
    assert (few.status, few.success, few.nit) == (0, False, 2)


def test_least_squares_lets_errors_up_with_the_best_point():
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
    seen = []

    def bad(p):
        seen.append(1)
        if len(seen) > 2:
            raise ZeroDivisionError("mine")
        return jacobian(p, T)

    with pytest.raises(ZeroDivisionError, match="mine") as error:
        least_squares(lambda p: residuals(p, T), [1.0, 1.0], bad)
    assert error.value.solution.value <= np.sum(residuals([1.0, 1.0], T) ** 2) / 2


BAD_RESIDUALS = {
    "loss": ({"loss": "arctan"}, "must be one of linear, soft_l1, huber, cauchy"),
    "jac": ({"jac": "4-point"}, "must be None, a function or '2-point', got '4-point'"),
    "columns": ({"jac": lambda p: np.ones((1, 2))}, "return a matrix with 1 columns, got shape"),
    "rows": ({"jac": lambda p: np.ones((3, 1))}, "return a matrix with 1 rows, got 3"),
}


@pytest.mark.parametrize(("given", "message"), BAD_RESIDUALS.values(), ids=BAD_RESIDUALS)
def test_bad_residuals(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        least_squares(lambda p: p, [1.0], **given)
