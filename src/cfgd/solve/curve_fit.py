"""Fitting a curve in the manner of SciPy, with an account of the result."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.pytrees import checked_pytree
from cfgd.objectives.residuals import Residuals
from cfgd.solve.api import minimize
from cfgd.solve.covariance import UNKNOWN
from cfgd.solve.solution import Solution


@dataclasses.dataclass(frozen=True, repr=False)
class Fit:
    """Parameters of a curve, how far they are known, and how they were found.

    `parameters` are like the p0 that was given: an array or a dict. `covariance` is that of
    `Solution.covariance`, `standard_errors` the roots of its diagonal, in the same order. It can be
    unpacked as SciPy's result: `parameters, covariance = fit`.

    >>> import cfgd, numpy as np
    >>> t, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
    >>> fit = cfgd.curve_fit(lambda t, a, b: a + b * t, t, y, [0.0, 1.0])
    >>> print(fit.names, fit.parameters.round(3), fit.standard_errors.round(3))
    ['a', 'b'] [0.057 1.977] [0.12 0.04]
    """

    parameters: Any
    covariance: np.ndarray
    names: list[str]
    deviation: float  # of the residuals, weighted
    freedom: int
    solution: Solution

    @property
    def standard_errors(self) -> np.ndarray:
        """The roots of the diagonal of the covariance."""
        return np.sqrt(np.diagonal(self.covariance))

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
    return f"{100 * error / abs(value):.3g} %" if value != 0 and np.isfinite(error) else "-"


class Misfit(eqx.Module):
    """model(x, *parameters) - y, in units of what is known of y."""

    model: Callable[..., Any]

    def __call__(self, p: Any, x: Any, y: Any, whiten: Any) -> Any:
        at = self.model(x, **p) if isinstance(p, dict) else self.model(x, *p)
        misfit = jnp.asarray(at) - y
        if whiten is None:
            return misfit
        return misfit / whiten if whiten.ndim < 2 else whiten @ misfit


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
    """Fit model(x, *parameters) to y, starting from p0, for a JAX function `model`.

    p0 is a list of numbers, or a dict, for which model(x, **parameters) is called. `sigma` are
    standard deviations of y, or their covariance matrix; they weigh the residuals, and with
    `absolute_sigma` the covariance is in their units instead of being scaled by the residuals.
    With a robust `loss` (see `Residuals`) there is no covariance. `options` are those of
    `minimize`.

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
    x = jax.tree.map(lambda leaf: checks.array(owner, "x", leaf), x) if _is_tree(x) else x
    x = x if _is_tree(x) else checks.array(owner, "x", x)
    y = checks.array(owner, "y", y)
    p0 = checked_pytree(owner, "p0", p0)
    whiten = None if sigma is None else _whitening(owner, sigma, y)
    if not isinstance(p0, dict) and (isinstance(p0, list | tuple) or p0.ndim != 1):
        checks.fail(owner, "p0", "be a list of numbers or a dict", checks.describe(p0))
    shape = _shape(owner, model, p0, x)
    if shape != y.shape:
        checks.fail(owner, "y", f"have the shape {shape} of model(x, *p0)", f"shape {y.shape}")
    f = Residuals(Misfit(model), loss, scale=scale, args=(x, y, whiten))
    solution = minimize(f, p0, **options)
    names = _names(model, p0)
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
    return Fit(solution.x, covariance, names, float(np.sqrt(variance)), freedom, solution)


def _is_tree(x: Any) -> bool:
    return isinstance(x, dict | tuple)


def _shape(owner: str, model: Callable[..., Any], p0: Any, x: Any) -> tuple[int, ...]:
    with checks.traceable(owner, "model"):
        out = jax.eval_shape(lambda p: Misfit(model)(p, x, 0.0, None), p0)
    return tuple(out.shape)


def _whitening(owner: str, sigma: Any, y: Any) -> Any:
    """Deviations to divide by, or the matrix that makes residuals independent."""
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


def _names(model: Callable[..., Any], p0: Any) -> list[str]:
    if isinstance(p0, dict):
        sizes = {name: np.size(p0[name]) for name in sorted(p0)}
        return [
            name if sizes[name] == 1 and np.ndim(p0[name]) == 0 else f"{name}[{i}]"
            for name in sizes
            for i in range(sizes[name])
        ]
    try:
        given = [
            name
            for name, each in inspect.signature(model).parameters.items()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ][1:]
    except (TypeError, ValueError):
        given = []
    return given if len(given) == len(p0) else [f"p[{i}]" for i in range(len(p0))]
