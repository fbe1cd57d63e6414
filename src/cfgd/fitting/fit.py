"""The result of `curve_fit`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from cfgd._core import checks
from cfgd._core.arrays import equal_trees
from cfgd.fitting.problem import FitProblem
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
        The result of `minimize` for the vector of the free parameters.
    problem : FitProblem
        What was fitted.

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
    problem: FitProblem = dataclasses.field(compare=False)

    @classmethod
    def of(cls, problem: FitProblem, solution: Solution) -> Fit:
        """Return the fit of a problem from the solution for its free numbers."""
        size = len(problem.free)
        freedom = problem.n_points - size
        variance = 2 * solution.value / freedom if freedom > 0 else np.inf
        if not problem.objective.is_squared:
            covariance = np.full((size, size), np.nan)
        elif solution.information is None:
            checks.warn(UNKNOWN if freedom >= 0 else "There are fewer points than parameters.")
            covariance = np.full((size, size), np.inf)
        else:
            covariance = solution.covariance()
            if problem.absolute_sigma:
                covariance = covariance / variance
        return cls(
            parameters=problem.in_form_of_p0(solution.x),
            covariance=covariance,
            names=problem.free,
            deviation=float(np.sqrt(variance)),
            freedom=freedom,
            solution=solution,
            problem=problem,
        )

    @property
    def standard_errors(self) -> np.ndarray:
        """The square roots of the diagonal of the covariance."""
        return np.sqrt(np.diagonal(self.covariance))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fit):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self) if field.compare]
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
