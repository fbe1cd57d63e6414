"""Fit a curve to data, as `scipy.optimize.curve_fit` does."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd.fitting.build import build, read_models
from cfgd.fitting.datasets import read_data
from cfgd.fitting.diagnosis import names_points
from cfgd.fitting.fit import Fit
from cfgd.fitting.guess import guessed
from cfgd.fitting.linear import Projection
from cfgd.fitting.problem import FitProblem
from cfgd.fitting.read_parameters import read_parameters
from cfgd.fitting.scipy_names import refuse_foreign
from cfgd.solve.api import minimize
from cfgd.solve.solution import Solution

# the keyword arguments that are passed on
MINIMIZE_OPTIONS = frozenset(inspect.signature(minimize).parameters) - {"objective", "x0", "bounds"}


def curve_fit(
    model: Callable[..., Any] | Mapping[Any, Callable[..., Any]] | list[Callable[..., Any]],
    x: Any,
    y: Any,
    p0: Any = None,
    sigma: Any = None,
    *,
    absolute_sigma: bool = False,
    bounds: Any = None,
    fixed: Any = None,
    tied: Mapping[str, Callable[[dict[str, Any]], Any]] | None = None,
    linear: Any = None,
    missing: str = "raise",
    weights: Any = None,
    sigma_x: Any = None,
    loss: str = "squared",
    scale: float = 1.0,
    **options: Any,
) -> Fit:
    """Fit model(x, *parameters) to y by nonlinear least squares.

    Several data sets are fitted at once if y is a dict by their names, or if x and y are lists of
    arrays; `model`, `x`, `sigma`, `weights` and `sigma_x` are then dicts or lists, too, or one for
    all. A parameter is shared by all of them, or each has its own: `{"size": {"a": 1.0, "b": 2.0}}`
    in `p0` makes the parameters `size[a]` and `size[b]`, which the model takes as `size`.

    Parameters
    ----------
    model : callable
        A function model(x, *parameters) written in JAX. Its result may have any shape, and may be
        complex.
    x : array, or dict or tuple of arrays
        The first argument of `model`.
    y : array
        The data, of the shape that `model` returns. Of complex data the real and the imaginary
        parts are fitted.
    p0 : number, list of numbers, dict, Parameters or "guess", optional
        The initial parameters. With a dict or `Parameters`, model(x, **parameters) is called. If it
        is left out, the signature of the model names the parameters, and they start at 1 or, as in
        SciPy, between their bounds. "guess", or a `Parameter` without a value, searches for a
        start: of many points of a Sobol' sequence within the bounds, the best ones are refined;
        `fit.problem.notes` has the numbers.
    sigma : number or array, optional
        The standard deviations of y, or its covariance matrix. They weight the residuals.
    absolute_sigma : bool, default False
        Whether `sigma` holds the true standard deviations. If not, the covariance is scaled by the
        variance of the residuals, so that only the ratios of `sigma` matter. As in SciPy.
    bounds : tuple (lower, upper), dict, list of pairs or scipy.optimize.Bounds, optional
        Each side is a number or has one for each parameter; or a dict of pairs by name, or a list
        of them; None or an infinity where there is none. Equal bounds fix a parameter.
    fixed : list of str or dict, optional
        Parameters that keep their values: names, or values by name.
    tied : dict of callables, optional
        Parameters that are functions of others: `{"width2": lambda p: p["width1"]}`.
    linear : list of str, optional
        Parameters in which the model is jointly linear. For each value of the others they are
        computed by linear least squares (variable projection), so they need no good start.
    missing : {"raise", "drop"}, default "raise"
        Whether points whose y or x is NaN or masked are refused or left out.
    weights : number or array, optional
        Weights of the squared residuals, 1 / sigma^2: a point of weight 0 is left out. With `sigma`
        as well, both apply. (The weights of lmfit are 1 / sigma.)
    sigma_x : number or array, optional
        The standard deviations of x, in its form: the true x are fitted as well (orthogonal
        distance regression). In a dict or tuple x, a variable without one (None) is exact.
    loss : {"squared", "soft_l1", "huber", "cauchy"}, default "squared"
        The loss of each weighted residual. All but "squared" are robust: they limit the influence
        of outliers.
    scale : float, default 1.0
        The size of a weighted residual from which on a robust loss treats it as an outlier.
    **options
        Further keyword arguments of `minimize`, such as `tolerance`, `max_iterations` or
        `progress`.

    Returns
    -------
    Fit
        The parameters and their covariance.

    Raises
    ------
    ValueError
        If y has another shape than model(x, *p0), or has no point that is not missing; if y or x is
        not finite with `missing="raise"`; if `sigma` or `sigma_x` is not positive (a matrix: not
        positive definite) or has a wrong shape; if `p0`, `bounds`, `fixed`, `tied` or `linear`
        does not fit the parameters of the model, a lower bound is above the upper one, or no free
        parameter is left; if the model is not written in JAX, is not linear in `linear`, or is not
        finite at the start; if `loss` or `missing` is an unknown name. The message names the
        argument, what it must be, and what was given.
    TypeError
        For an argument that does not exist. For one of SciPy or lmfit, such as `maxfev`, the
        message says what to write instead.

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
      rest           0.45981286         0.02353     5.12 %
    """
    owner = "curve_fit"
    refuse_foreign(owner, options, loss, OWN_NAMES | MINIMIZE_OPTIONS)
    checks.flag(owner, "absolute_sigma", absolute_sigma)
    data = read_data(owner, x, y, sigma=sigma, weights=weights, sigma_x=sigma_x, missing=missing)
    models = read_models(owner, model, data)
    sets = [each.name for each in data]
    given = read_parameters(owner, models, p0, bounds, fixed, tied, sets)
    problem = build(
        owner, models, data, given, absolute_sigma=absolute_sigma, loss=loss, scale=scale
    )
    with names_points(problem):
        return Fit.of(*_solve(owner, problem, linear, options))


OWN_NAMES = frozenset(inspect.signature(curve_fit).parameters) - {"options"}


def _solve(
    owner: str, problem: FitProblem, linear: Any, options: dict[str, Any]
) -> tuple[FitProblem, Solution]:
    """Return the problem with its start, and its solution."""
    unknown = np.zeros(problem.start.size, bool)
    values = [problem.parameters[name].value for name in problem.owners]
    unknown[: len(values)] = [value is None for value in values]
    if linear is None:
        problem = guessed(problem, unknown) if unknown.any() else problem
        return problem, problem.minimize(**options)
    projection = Projection(owner, problem, linear)
    reduced, unknown = projection.reduced, unknown[projection.others]
    reduced = guessed(reduced, unknown) if unknown.any() else reduced
    solution = projection.unprojected(reduced.minimize(**options))
    start = projection.complete(reduced.start)
    notes = [*reduced.notes, projection.note]
    return dataclasses.replace(problem, start=start, notes=notes), solution
