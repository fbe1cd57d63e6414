"""Least squares with the parameters of lmfit: `minimize(residual, params)`.

>>> import lmfit, numpy as np
>>> from cfgd.integrations.lmfit import minimize
>>> t = np.linspace(0, 4, 9)
>>> y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])
>>> params = lmfit.Parameters()
>>> params.add("size", 1.0, min=0)
>>> params.add("rate", 1.0, min=0)
>>> params.add("rest", 0.5, vary=False)
>>> params.add("half_life", expr="log(2) / rate")
>>> def residual(p, t, y):
...     return p["size"] * np.exp(-p["rate"] * t) + p["rest"] - y
>>> result = minimize(residual, params, args=(t, y))
>>> found = result.params["half_life"]
>>> print(result.success, round(found.value, 3), round(found.stderr, 3))
True 0.845 0.014
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd._core.extras import import_extra
from cfgd.fitting.uncertainty import Uncertainty
from cfgd.integrations.scipy import least_squares

lmfit = import_extra("lmfit", "`cfgd.integrations.lmfit`", "lmfit")

__all__ = ["minimize"]


def __dir__() -> list[str]:
    """Return the public names, for tab completion."""
    return __all__


# The least chi-square in AIC and BIC, for each point, as in lmfit: an exact fit has no logarithm.
LEAST_CHI_SQUARE = 1e-250
# Relative step of central differences: the cube root of the rounding, which balances it with the
# error of the formula (Nocedal and Wright, section 8.1); and their relative error, its square, with
# a margin of ten for models that are large beside their residuals.
STEP = float(np.finfo(float).eps ** (1 / 3))
ROUNDING = 10 * STEP**2

SIDES = ("min", "max")  # the bounds of a parameter of lmfit


def minimize(
    fcn: Callable[..., Any],
    params: Any,
    args: tuple[Any, ...] = (),
    kws: Mapping[str, Any] | None = None,
    *,
    scale_covar: bool = True,
    max_nfev: int | None = None,
    xtol: float | None = None,
) -> Any:
    """Minimise the sum of squares of fcn(params, *args, **kws), as `lmfit.minimize` does.

    Bounds are kept by the solver, without a transformation of the parameters. Derivatives are
    forward differences, because a function of lmfit's parameters cannot be traced by JAX: for
    exact ones write the model in JAX and use `cfgd.curve_fit`.

    Parameters
    ----------
    fcn : callable
        It returns the residuals as an array of any shape. Of complex ones the real and imaginary
        parts count. For a `lmfit.Model` write `lambda p, x, y: model.eval(p, x=x) - y`.
    params : lmfit.Parameters
        With values, `min`, `max`, `vary` and `expr`, which lmfit evaluates. They are not changed.
    args, kws : tuple, dict
        Further arguments of `fcn`.
    scale_covar : bool, default True
        Whether the covariance is scaled by the reduced chi-square.
    max_nfev : int, optional
        Maximum number of iterations.
    xtol : float, optional
        Relative tolerance of the gradient (default 1e-8).

    Returns
    -------
    lmfit.minimizer.MinimizerResult
        With lmfit's attributes; `lmfit.fit_report` takes it. Standard errors of expressions are by
        the delta method. A parameter at its bound has `stderr` None and does not change the others'
        errors: they are those of the fit with that parameter fixed. `method` is "least_squares", so
        that reports of lmfit show the standard errors.

    Raises
    ------
    ValueError
        If `fcn` is no function or does not return an array of residuals, or if `params` is not
        `lmfit.Parameters`, has a value that is not finite, or has no parameter that varies.

    Examples
    --------
    >>> import lmfit, numpy as np
    >>> from cfgd.integrations.lmfit import minimize
    >>> x = np.arange(5.0)
    >>> params = lmfit.create_params(a=1.0, b={"value": 1.0, "max": 3.0})
    >>> result = minimize(lambda p: p["a"] + p["b"] * x - (2 + 4 * x), params)
    >>> print(result.params["b"].value, result.params["b"].stderr, result.success)
    3.0 None True
    """
    owner = "minimize"
    checks.function(owner, "fcn", fcn, "be a function of the parameters")
    if not isinstance(params, lmfit.Parameters):
        checks.fail(owner, "params", "be lmfit.Parameters", checks.describe(params))
    params = copy.deepcopy(params)
    params.update_constraints()
    names = [name for name, each in params.items() if each.vary]
    if not names:
        checks.fail(owner, "params", "have a parameter that varies", "none")
    start = np.array([params[name].value for name in names], float)
    for name, value in zip(names, start, strict=True):
        if not np.isfinite(value):
            checks.fail(owner, f"params[{name!r}]", "have a finite value", value)
    for each in params.values():
        each.init_value = each.value
    kws = dict(kws or {})

    def residuals(z: np.ndarray) -> np.ndarray:
        _set(params, names, z)
        return _as_real(owner, fcn(params, *args, **kws))

    bounds = tuple(
        np.array([getattr(params[name], side) for name in names], float) for side in SIDES
    )
    # a trace by JAX would leave its values behind in the parameters, so differences are asked for
    found = least_squares(residuals, start, "2-point", bounds, max_nfev=max_nfev, xtol=xtol)
    tied = [name for name, each in params.items() if each.expr is not None]

    def residuals_and_tied(z: np.ndarray) -> np.ndarray:
        return np.append(residuals(z), [params[name].value for name in tied])

    jacobian = _central_differences(residuals_and_tied, found.x, start, *bounds)
    _set(params, names, found.x)
    chi_square, n_points, n_free = float(found.fun @ found.fun), found.fun.size, len(names)
    reduced = chi_square / max(1, n_points - n_free)
    held = np.asarray(found.active_mask) != 0
    variance = reduced if scale_covar else 1.0
    around = Uncertainty.of(jacobian[:n_points], variance, held, ROUNDING)
    covariance = around.covariance()
    _set_errors(params, names, covariance)
    _set_errors_of_tied(params, tied, around, held, jacobian[n_points:])
    log_likelihood = n_points * np.log(max(chi_square, LEAST_CHI_SQUARE * n_points) / n_points)
    return lmfit.minimizer.MinimizerResult(
        params=params,
        residual=found.fun,
        var_names=names,
        covar=covariance,
        init_vals=start.tolist(),
        init_values=dict(zip(names, start.tolist(), strict=True)),
        aborted=False,
        status=found.status,
        success=found.success,
        errorbars=bool(np.isfinite(np.diagonal(covariance)[~held]).all()),
        message=found.message,
        method="least_squares",
        call_kws={"max_nfev": max_nfev, "xtol": xtol},
        nfev=found.nfev,
        nvarys=n_free,
        ndata=n_points,
        nfree=n_points - n_free,
        chisqr=chi_square,
        redchi=reduced,
        aic=log_likelihood + 2 * n_free,
        bic=log_likelihood + np.log(n_points) * n_free,
    )


def _set(params: Any, names: list[str], z: np.ndarray) -> None:
    """Give the varying parameters their values, and those with expressions theirs."""
    for name, value in zip(names, z, strict=True):
        params[name].value = float(value)
    params.update_constraints()


def _as_real(owner: str, value: Any) -> np.ndarray:
    """Return residuals as a vector of real numbers."""
    array = np.asarray(value)
    if array.dtype == object or array.ndim == 0:
        checks.fail(owner, "fcn", "return an array of residuals", checks.describe(value))
    array = array.reshape(-1)
    if np.iscomplexobj(array):
        return np.stack([array.real, array.imag], -1).reshape(-1)
    return array.astype(float)


def _central_differences(
    fn: Callable[[np.ndarray], np.ndarray],
    z: np.ndarray,
    start: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> np.ndarray:
    """Return the derivative of fn at z with six digits more than the solver's differences.

    A parameter near 0 has the size of its start. At a bound differences are one-sided.
    """
    sizes = np.maximum(abs(z), abs(start))
    columns = []
    for i, size in enumerate(np.where(sizes > 0, sizes, 1.0)):
        step = STEP * size * (np.arange(len(z)) == i)
        ahead, behind = np.minimum(z + step, upper), np.maximum(z - step, lower)
        columns.append((fn(ahead) - fn(behind)) / (ahead[i] - behind[i]))
    return np.stack(columns, 1)


def _set_errors(params: Any, names: list[str], covariance: np.ndarray) -> None:
    """Write standard errors and correlations into the parameters: None where there is none."""
    errors = np.sqrt(np.diagonal(covariance))
    for i, name in enumerate(names):
        params[name].stderr = float(errors[i]) if np.isfinite(errors[i]) else None
        params[name].correl = {
            other: float(covariance[i, j] / errors[i] / errors[j])
            for j, other in enumerate(names)
            if j != i and np.isfinite(covariance[i, j]) and errors[i] * errors[j] > 0
        } or None


def _set_errors_of_tied(
    params: Any, tied: list[str], around: Uncertainty, held: np.ndarray, gradients: np.ndarray
) -> None:
    """Write standard errors of expressions; None for one of a parameter that has none."""
    for name, error, row in zip(tied, around.standard_errors(gradients), gradients, strict=True):
        is_known = np.isfinite(error) and not np.any(row[held])
        params[name].stderr = float(error) if is_known else None
