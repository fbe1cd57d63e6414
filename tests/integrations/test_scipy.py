"""cfgd inside `scipy.optimize.minimize`: SciPy's own problems, its forms and its fields."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import OptimizeResult, rosen, rosen_der, rosen_hess_prod

import cfgd
from cfgd.integrations.scipy import adaptive_order, adaptive_terminal, auto, least_squares


class MaximumEntropy:
    """The problem of SciPy's TestOptimizeSimple: a maximum entropy fit of three parameters."""

    F = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [1, 0, 0], [1, 0, 0]], float)
    K = np.array([1.0, 0.3, 0.5])
    solution = np.array([0.0, -0.524869316, 0.487525860])

    def func(self, x):
        return np.log(np.sum(np.exp(self.F @ x))) - self.K @ x

    def grad(self, x):
        weight = np.exp(self.F @ x)
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
    assert seen[-1].fun == pytest.approx(rosen(seen[-1].x))


def test_zero_dimensions_and_one():
    found = scipy.optimize.minimize(lambda x: (x[0] - 3) ** 2, 0.0, method=auto)
    np.testing.assert_allclose(found.x, [3.0], atol=1e-4)


REFUSED = {
    "bounds": ({"bounds": [(0, 1), (0, 1)]}, "`auto(bounds=...)` must be left out: cfgd minimises"),
    "constraints": (
        {"constraints": {"type": "eq", "fun": lambda x: x[0]}},
        "`auto(constraints=...)` must be left out: cfgd minimises",
    ),
    "options": (
        {"options": {"ftol": 1e-9}},
        "`auto(options=...)` must be maxiter, tol, gtol, time",
    ),
}


@pytest.mark.parametrize(("given", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        scipy.optimize.minimize(rosen, [0.0, 0.0], jac=rosen_der, method=auto, **given)


def test_a_hessian_is_not_used_and_said_so():
    with pytest.warns(RuntimeWarning, match="auto does not use Hessian"):
        scipy.optimize.minimize(
            rosen, [0.0, 0.0], jac=rosen_der, hessp=rosen_hess_prod, method=auto
        )


def test_stages_are_asked_for():
    with pytest.raises(ValueError, match=r"options\['stages'\]=...\)` must be given"):
        scipy.optimize.minimize(rosen, [0.0, 0.0], jac=rosen_der, method=adaptive_order)


T = np.linspace(0, 3, 15)
Y = 2 * np.exp(-1.3 * T) + 0.1 * np.cos(9 * T)


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy"])
def test_least_squares_is_scipys(loss):
    ours = least_squares(
        lambda p, t: p[0] * jnp.exp(-p[1] * t) - Y, [1.0, 1.0], loss=loss, f_scale=0.1, args=(T,)
    )
    theirs = scipy.optimize.least_squares(
        lambda p: p[0] * np.exp(-p[1] * T) - Y, [1.0, 1.0], loss=loss, f_scale=0.1, xtol=1e-12
    )
    np.testing.assert_allclose(ours.x, theirs.x, rtol=1e-4)
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-8)
    np.testing.assert_allclose(ours.fun, theirs.fun, atol=1e-5)
    if loss == "linear":
        np.testing.assert_allclose(ours.jac, theirs.jac, atol=1e-3)
        np.testing.assert_allclose(ours.grad, ours.jac.T @ ours.fun, atol=1e-8)


def test_an_unknown_loss():
    with pytest.raises(ValueError, match="must be one of linear, soft_l1, huber, cauchy"):
        least_squares(lambda p: p, [1.0], loss="arctan")
