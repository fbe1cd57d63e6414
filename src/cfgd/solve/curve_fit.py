"""Fit a curve to data, as `scipy.optimize.curve_fit` does."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from cfgd._core import checks
from cfgd._core.arrays import equal_trees
from cfgd._core.pytrees import checked_pytree
from cfgd.objectives.residuals import Residuals
from cfgd.solve.api import minimize
from cfgd.solve.covariance import UNKNOWN
from cfgd.solve.solution import Solution


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fit:
    """The fitted parameters of a curve, with their covariance.

    It can be unpacked like the result of SciPy: `parameters, covariance = fit`. Two fits are equal
    if all fields are.

    Attributes
    ----------
    parameters : array or dict
        The fitted parameters, in the form of `p0`.
    covariance : array
        Their covariance (see `Solution.covariance`): NaN for a robust loss, infinite where the data
        do not determine the parameters.
    names : list of str
        The names of the parameters, in the order of the covariance.
    deviation : float
        The standard deviation of the weighted residuals.
    freedom : int
        The degrees of freedom: points minus parameters.
    solution : Solution
        The result of `minimize`.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> t, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
    >>> fit = cfgd.curve_fit(lambda t, a, b: a + b * t, t, y, [0.0, 1.0])
    >>> print(fit.names, fit.parameters.round(3), fit.standard_errors.round(3))
    ['a', 'b'] [0.057 1.977] [0.12 0.04]
    """

    parameters: Any
    covariance: np.ndarray
    names: list[str]
    deviation: float
    freedom: int
    solution: Solution

    @property
    def standard_errors(self) -> np.ndarray:
        """The square roots of the diagonal of the covariance."""
        return np.sqrt(np.diagonal(self.covariance))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fit):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self)]
        return equal_trees(
            [getattr(self, name) for name in names], [getattr(other, name) for name in names]
        )

    def __iter__(self) -> Iterator[Any]:
        return iter((self.parameters, self.covariance))

    def __repr__(self) -> str:
        values = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(self.parameters)])
        width = max(9, *(len(name) for name in self.names))
        head = (
            f"Fit: {self.solution.status.name}, residual standard deviation {self.deviation:.6g} "
            f"with {self.freedom} degrees of freedom"
        )
        title = f"  {'parameter':<{width}}  {'value':>14}  {'standard error':>14}  {'relative':>9}"
        rows = [
            f"  {name:<{width}}  {value:>14.8g}  {error:>14.4g}  {_relative(error, value):>9}"
            for name, value, error in zip(self.names, values, self.standard_errors, strict=True)
        ]
        return "\n".join([head, title, *rows])


def _relative(error: float, value: float) -> str:
    """Return the relative error in percent, as text."""
    return f"{100 * error / abs(value):.3g} %" if value != 0 and np.isfinite(error) else "-"


class CurveResiduals(eqx.Module):
    """The residuals model(x, *parameters) - y, weighted by the uncertainty of y.

    `weights` are standard deviations, or a matrix that makes the residuals uncorrelated.
    """

    model: Callable[..., Any]

    def __call__(self, p: Any, x: Any, y: Any, weights: Any) -> Any:
        prediction = self.model(x, **p) if isinstance(p, dict) else self.model(x, *p)
        residuals = jnp.asarray(prediction) - y
        if weights is None:
            return residuals
        return residuals / weights if weights.ndim < 2 else weights @ residuals


def curve_fit(
    model: Callable[..., Any],
    x: Any,
    y: Any,
    p0: Any,
    sigma: Any = None,
    *,
    absolute_sigma: bool = False,
    loss: str = "squared",
    scale: float = 1.0,
    **options: Any,
) -> Fit:
    """Fit model(x, *parameters) to y by nonlinear least squares.

    Parameters
    ----------
    model : callable
        A function model(x, *parameters) written in JAX.
    x : array, or dict or tuple of arrays
        The first argument of `model`.
    y : array
        The data, of the shape that `model` returns.
    p0 : list of numbers, or dict
        The start. With a dict, model(x, **parameters) is called.
    sigma : array, optional
        The standard deviations of y, or its covariance matrix. They weight the residuals.
    absolute_sigma : bool
        Whether `sigma` is taken at face value. If not, the covariance is scaled by the variance of
        the residuals, so that only the ratios of `sigma` matter.
    loss, scale : str, float
        A robust loss and its scale (see `Residuals`). A robust fit has no covariance.
    **options
        Further keywords of `minimize`.

    Returns
    -------
    Fit
        The parameters and their covariance.

    Examples
    --------
    >>> import cfgd, jax.numpy as jnp, numpy as np
    >>> t = np.linspace(0, 4, 9)
    >>> y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])
    >>> def decay(t, size, rate, rest):
    ...     return size * jnp.exp(-rate * t) + rest
    >>> print(cfgd.curve_fit(decay, t, y, [1.0, 1.0, 0.0]))
    Fit: converged, residual standard deviation 0.0231239 with 6 degrees of freedom
      parameter           value  standard error   relative
      size            2.4768911         0.02687     1.08 %
      rate           0.78426737         0.02345     2.99 %
      rest           0.45981287         0.02353     5.12 %
    """
    owner = "curve_fit"
    checks.function(owner, "model", model, "be a function of x and the parameters")
    if isinstance(x, dict | tuple):
        x = jax.tree.map(lambda leaf: checks.array(owner, "x", leaf), x)
    else:
        x = checks.array(owner, "x", x)
    y = checks.array(owner, "y", y)
    p0 = checked_pytree(owner, "p0", p0)
    weights = None if sigma is None else _residual_weights(owner, sigma, y)
    if not isinstance(p0, dict) and (isinstance(p0, list | tuple) or p0.ndim != 1):
        checks.fail(owner, "p0", "be a list of numbers or a dict", checks.describe(p0))
    shape = _shape_of_model(owner, model, p0, x)
    if shape != y.shape:
        checks.fail(owner, "y", f"have the shape {shape} of model(x, *p0)", f"shape {y.shape}")
    f = Residuals(CurveResiduals(model), loss, scale=scale, args=(x, y, weights))
    solution = minimize(f, p0, **options)
    names = _parameter_names(model, p0)
    freedom = y.size - len(names)
    variance = 2 * solution.value / freedom if freedom > 0 else np.inf
    if loss != "squared":
        covariance = np.full((len(names),) * 2, np.nan)
    elif solution.information is None:
        checks.warn(UNKNOWN if freedom >= 0 else "There are fewer points than parameters.")
        covariance = np.full((len(names),) * 2, np.inf)
    else:
        covariance = solution.covariance()
        if absolute_sigma:
            covariance = covariance / variance
    parameters = jax.tree.map(copy.copy, solution.x)  # not those of the solution
    return Fit(parameters, covariance, names, float(np.sqrt(variance)), freedom, solution)


def _shape_of_model(
    owner: str, model: Callable[..., Any], p0: object, x: PyTree
) -> tuple[int, ...]:
    with checks.traceable(owner, "model"):
        out = jax.eval_shape(lambda p: CurveResiduals(model)(p, x, 0.0, None), p0)
    return tuple(out.shape)


def _residual_weights(owner: str, sigma: Any, y: Any) -> np.ndarray:
    """Return the standard deviations, or the inverse Cholesky factor of a covariance matrix."""
    sigma = checks.array(owner, "sigma", sigma)
    if sigma.ndim == 2:
        checks.shape(owner, "sigma", sigma, (y.size, y.size))
        try:
            lower = np.linalg.cholesky(np.asarray(sigma, float))
        except np.linalg.LinAlgError:
            checks.fail(owner, "sigma", "be positive definite", "a matrix that is not")
        return np.linalg.inv(lower)
    if sigma.shape not in ((), y.shape):
        checks.fail(owner, "sigma", f"have shape {y.shape}", f"shape {sigma.shape}")
    return np.asarray(checks.positive(owner, "sigma", sigma))


def _parameter_names(model: Callable[..., Any], p0: Any) -> list[str]:
    """Return the keys of p0, or the argument names of the model, or p[0], p[1], ..."""
    if isinstance(p0, dict):
        sizes = {name: np.size(p0[name]) for name in sorted(p0)}
        return [
            name if sizes[name] == 1 and np.ndim(p0[name]) == 0 else f"{name}[{i}]"
            for name in sizes
            for i in range(sizes[name])
        ]
    try:
        arguments = [
            name
            for name, each in inspect.signature(model).parameters.items()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ][1:]
    except (TypeError, ValueError):  # a callable without a signature
        arguments = []
    return arguments if len(arguments) == len(p0) else [f"p[{i}]" for i in range(len(p0))]
