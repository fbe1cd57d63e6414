"""The problem of a fit: parameters, data and the weighted residuals."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from cfgd._core.arrays import in_precision, numpy_in_numpy_out
from cfgd._core.compiled import bind
from cfgd._core.pytrees import match_array_type
from cfgd.fitting.datasets import DataSet
from cfgd.fitting.model import WeightedResiduals
from cfgd.objectives.parameters import Parameters
from cfgd.objectives.residuals import Residuals
from cfgd.solve.api import minimize
from cfgd.solve.solution import Solution


@dataclasses.dataclass(frozen=True, eq=False)
class FitProblem:
    """A fit before it is solved, as a function of the vector z of its free parameters.

    Attributes
    ----------
    parameters : Parameters
        All parameters, in order.
    free : list of str
        The names of the free parameters (one for each element of an array), the first entries of z.
    objective : Residuals
        The sum of squares, or of a robust loss, as a function of z.
    lower, upper : array
        The bounds of z, infinite where there are none.
    start : array
        Where the fit starts.
    n_points : int
        The number of points of y: missing ones are not counted, complex ones count twice. Neither
        measured x with errors nor their unknown true values are counted.
    absolute_sigma : bool
        Whether `sigma` holds the true standard deviations.
    data : list of DataSet
        The data, for plots.
    given : object
        `p0` with numbers in all places: results take its form.
    n_unknown_x : int
        How many numbers in z, after the free ones, are errors of x (`sigma_x`). They are unknowns
        of the fit: the covariance of the free numbers is a block of that of all of z.
    notes : list of str
        Sentences about how the problem was made, for reports.
    """

    parameters: Parameters
    free: list[str]
    objective: Residuals
    lower: np.ndarray
    upper: np.ndarray
    start: np.ndarray
    n_points: int
    absolute_sigma: bool
    data: list[DataSet]
    given: Any
    n_unknown_x: int = 0
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def freedom(self) -> int:
        """The degrees of freedom: points minus free numbers."""
        return self.n_points - len(self.free)

    @property
    def owners(self) -> list[str]:
        """The parameter to which each of the free numbers belongs."""
        return self._residuals.layout.owners

    @property
    def _residuals(self) -> WeightedResiduals:
        assert isinstance(self.objective.fn, WeightedResiduals)
        return self.objective.fn

    @property
    def _fixed(self) -> dict[str, Any]:
        return self.objective.args[0]

    def complete(self, z: Any) -> dict[str, Any]:
        """Return all parameters by name, fixed and tied ones included; traceable by JAX."""
        layout = self._residuals.layout
        if isinstance(z, np.ndarray) and not layout.ties:  # only cut into parts
            return layout.complete(z, self._fixed, {})
        found = self._complete(z)
        return {name: found[name] for name in self.parameters}  # a pytree has sorted names

    @numpy_in_numpy_out
    def _complete(self, z: Any) -> dict[str, Any]:
        return self._residuals.complete(jnp.asarray(z), _as_jax(self._fixed))

    @numpy_in_numpy_out
    def predict(self, z: Any, x: Any, index: int = 0) -> Any:
        """Return what the model of a data set is at x; traceable by JAX."""
        return self._residuals.predict(self._complete(z), x, index)

    @numpy_in_numpy_out
    def residuals(self, z: Any) -> Any:
        """Return the weighted residuals, of which the objective is the sum; traceable by JAX."""
        return self.objective.vector(jnp.asarray(z))

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        """Return the derivative of the residuals: a row for each, a column for each of z."""
        z = np.asarray(z, self.start.dtype)
        with in_precision(z.dtype):
            return np.asarray(bind(_jacobian, self.objective)(z))

    def in_form_of_p0(self, z: np.ndarray) -> Any:
        """Return the parameters as `p0` was given: a vector of all of them, or a dict."""
        p, given = self.complete(z), self.given
        if isinstance(given, dict):
            return {name: match_array_type(p[name], given.get(name, p[name])) for name in p}
        names = [name for _, name in self._residuals.calls[0].pairs]
        return match_array_type(np.array([p[name] for name in names]), given)

    def minimize(
        self,
        start: np.ndarray | None = None,
        held: Mapping[int, float] | None = None,
        **options: Any,
    ) -> Solution:
        """Return the solution for z.

        `held` keeps some numbers of z, by their index, at values. `options` are keywords of the
        function `minimize`.
        """
        start = np.array(self.start if start is None else start, self.start.dtype)
        lower, upper = self.lower.copy(), self.upper.copy()
        for i, value in (held or {}).items():
            start[i] = lower[i] = upper[i] = value
        if np.isfinite(lower).any() or np.isfinite(upper).any():
            options["bounds"] = (lower, upper)
        return minimize(self.objective, start, **options)


def _as_jax(fixed: dict[str, Any]) -> dict[str, Any]:
    return {name: jnp.asarray(value) for name, value in fixed.items()}


def _jacobian(objective: Residuals, z: Any) -> Any:
    return objective.jacobian(z)
