"""Fit a curve to data, as `scipy.optimize.curve_fit` does."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import precision_of
from cfgd._core.pytrees import checked_pytree
from cfgd.fitting.datasets import DataSet, read_data_set
from cfgd.fitting.fit import Fit
from cfgd.fitting.layout import layout_of
from cfgd.fitting.model import Call, WeightedResiduals
from cfgd.fitting.parameters import Parameters
from cfgd.fitting.problem import FitProblem
from cfgd.objectives.residuals import Residuals


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
    data = read_data_set(owner, "", x, y, sigma)
    p0 = checked_pytree(owner, "p0", p0)
    if not isinstance(p0, dict):
        if isinstance(p0, list | tuple) or p0.ndim > 1:
            checks.fail(owner, "p0", "be a list of numbers or a dict", checks.describe(p0))
        p0 = p0.reshape(-1)
    problem = _problem(owner, model, [data], p0, absolute_sigma, loss, scale)
    return Fit.of(problem, problem.minimize(**options))


def _problem(
    owner: str,
    model: Callable[..., Any],
    data: list[DataSet],
    p0: Any,
    absolute_sigma: bool,
    loss: str,
    scale: float,
) -> FitProblem:
    """Return the problem of a fit of checked data."""
    if isinstance(p0, dict):
        parameters = Parameters(**{name: p0[name] for name in sorted(p0)})
        call = Call(tuple((name, name) for name in parameters))
    else:
        names = _argument_names(model, len(p0))
        parameters = Parameters(**dict(zip(names, np.asarray(p0), strict=True)))
        call = Call(tuple((None, name) for name in parameters))
    layout = layout_of(owner, parameters)
    fn = WeightedResiduals((model,), {}, (call,), layout)
    dtype = precision_of(p0, [each.measured for each in data])
    start = layout.ravel({name: each.value for name, each in parameters.items()}).astype(dtype)
    for each in data:
        shape = _shape_of_model(owner, fn, start, each)
        if shape != each.y.shape:
            wanted = f"have the shape {shape} of model(x, *p0)"
            checks.fail(owner, "y", wanted, f"shape {each.y.shape}")
    return FitProblem(
        parameters=parameters,
        free=layout.free,
        objective=Residuals(fn, loss, scale=scale, args=({}, [each.measured for each in data])),
        lower=np.full(start.shape, -np.inf),
        upper=np.full(start.shape, np.inf),
        start=start,
        n_points=sum(each.n_points for each in data),
        absolute_sigma=absolute_sigma,
        data=data,
        given=p0,
    )


def _shape_of_model(
    owner: str, fn: WeightedResiduals, z: np.ndarray, data: DataSet
) -> tuple[int, ...]:
    with checks.traceable(owner, "model"):
        out = jax.eval_shape(lambda z: fn.predict(fn.complete(z, {}), data.measured.x), z)
    return tuple(out.shape)


def _argument_names(model: Callable[..., Any], count: int) -> list[str]:
    """Return the argument names of the model, or p[0], p[1], ..."""
    try:
        arguments = [
            name
            for name, each in inspect.signature(model).parameters.items()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ][1:]
    except (TypeError, ValueError):  # a callable without a signature
        arguments = []
    return arguments if len(arguments) == count else [f"p[{i}]" for i in range(count)]
