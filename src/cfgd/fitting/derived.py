"""Functions of fitted parameters and their standard errors, by the delta method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import in_precision
from cfgd.fitting.problem import FitProblem
from cfgd.fitting.uncertainty import Uncertainty

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit


class Derived:
    """The value of a function of the parameters with its standard error.

    It unpacks as `value, error`.

    Attributes
    ----------
    value, error : array
        The function at the fitted parameters and its standard error: infinite where the data do not
        determine it.
    covariance : array
        The covariance of the entries of `value`, in row-major order.
    """

    def __init__(self, value: np.ndarray, error: np.ndarray, covariance: np.ndarray) -> None:
        self.value, self.error, self.covariance = value, error, covariance

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.value, self.error))

    def __repr__(self) -> str:
        return f"Derived(value={self.value}, error={self.error})"


class Tangent(NamedTuple):
    """A function's value, and its derivative by the free numbers with a row for each entry."""

    value: np.ndarray
    gradients: np.ndarray


def tangent(fn: Callable[[Any], Any], z: np.ndarray) -> Tangent:
    """Return a JAX function at z with its derivative; nothing is compiled as a whole."""
    z = np.asarray(z, float)
    with in_precision(z.dtype):
        value, move = jax.linearize(lambda z: jnp.asarray(fn(z)), jnp.asarray(z))
        columns = jax.vmap(move, out_axes=-1)(jnp.eye(len(z)))
        return Tangent(np.asarray(value), np.asarray(columns).reshape(-1, len(z)))


def derive(fit: Fit, fn: Callable[[dict[str, Any]], Any]) -> Derived:
    """Return value and standard error of a function of the parameters."""
    owner = "Fit.derived"
    checks.function(owner, "fn", fn, "be a function of the dict of parameters")
    problem = fit.needed_problem("derived")
    assert fit.uncertainty is not None
    with checks.traceable(owner, "fn"):
        value, gradients = tangent(lambda z: fn(problem.complete(z)), np.asarray(fit.solution.x))
    if not jnp.issubdtype(value.dtype, jnp.floating):
        checks.fail(owner, "fn", "return real numbers", f"dtype {value.dtype}")
    error = fit.uncertainty.standard_errors(gradients).reshape(value.shape)
    rows = gradients @ fit.uncertainty.factor
    covariance = rows @ rows.T
    unknown = np.isinf(error.ravel())
    covariance[unknown] = np.inf
    covariance[:, unknown] = np.inf
    return Derived(value, error, covariance)


def errors_of_all(
    problem: FitProblem, z: np.ndarray, around: Uncertainty, held: np.ndarray
) -> dict[str, Any]:
    """Return the standard errors of all parameters: NaN for one at its bound, 0 for a fixed one."""
    found: dict[str, Any] = {}
    size, diagonal = len(problem.free), around.standard_errors(np.eye(len(z)))
    diagonal = np.where(held, np.nan, diagonal)[:size]
    start = 0
    ties = [name for name, each in problem.parameters.items() if each.kind == "tied"]
    shapes = {name: np.shape(value) for name, value in problem.complete(z).items()}
    for name, shape in shapes.items():
        kind = problem.parameters[name].kind
        if kind == "free":
            end = start + int(np.prod(shape))
            found[name], start = diagonal[start:end].reshape(shape), end
        elif kind == "fixed":
            found[name] = np.zeros(shape)
        else:
            found[name] = None
    if ties:
        _, gradients = tangent(
            lambda z: jnp.concatenate([jnp.ravel(problem.complete(z)[name]) for name in ties]), z
        )
        errors = around.standard_errors(gradients)
        for name in ties:
            size = int(np.prod(shapes[name]))
            found[name], errors = errors[:size].reshape(shapes[name]), errors[size:]
    return {name: _number(error) for name, error in found.items()}


def _number(error: np.ndarray) -> Any:
    return float(error) if error.ndim == 0 else error
