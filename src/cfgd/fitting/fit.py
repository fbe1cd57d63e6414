"""The result of `curve_fit`."""

from __future__ import annotations

import dataclasses
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cfgd._core.arrays import equal_trees
from cfgd._core.files import write
from cfgd._core.public_names import ListsPublicNames
from cfgd.fitting import (
    band,
    compare,
    derived,
    fit_json,
    intervals,
    notebook,
    plot,
    plot_parameters,
    report,
)
from cfgd.fitting.former_names import FormerNames
from cfgd.fitting.problem import FitProblem
from cfgd.fitting.quality import criterion, r_squared
from cfgd.fitting.uncertainty import Uncertainty, dispersion, linearise
from cfgd.fitting.verdict import at_bound, warnings_of
from cfgd.solve.solution import Solution


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Fit(ListsPublicNames, FormerNames):
    """The fitted parameters of a curve, with their covariance.

    It can be unpacked like the result of SciPy: `parameters, covariance = fit`. Two fits are equal
    if all attributes below are equal.

    Attributes
    ----------
    parameters : array or dict
        All parameters, in the form of `p0`.
    covariance : array
        The covariance of the free parameters. It is NaN for a parameter at its bound and infinite
        for one that the data do not determine; the entries of the others are those of the fit with
        that parameter fixed.
    names : list of str
        The names of the free parameters, in the order of the covariance; an array parameter `w` has
        one name for each element, `w[0]`, `w[1]`, ...
    residual_std : float
        The standard deviation of the weighted residuals.
    dof : int
        The degrees of freedom: the number of points minus that of the free parameters that are not
        at a bound.
    solution : Solution
        The result of `minimize` for the vector of the free parameters.
    values, errors : dict
        All parameters by name, and their standard errors: 0 for fixed ones, by the delta method for
        tied ones, NaN for one at its bound.
    chi_square : float
        The sum of squares of the weighted residuals.
    r_squared : float
        The share of the weighted sum of squares of y about its mean that the curve explains.
    at_bound : list of str
        The names of the free parameters at a bound.
    n_points : int
        The number of fitted points, without those that are missing or have the weight 0; complex
        ones count twice.
    absolute_sigma : bool
        Whether `sigma` holds the true standard deviations, as in SciPy.
    covariance_kind : str
        "least squares" for s^2 (J'J)^-1 with the Jacobian J of the weighted residuals, where s^2 is
        1 for `absolute_sigma`; "sandwich" for a robust loss, whose covariance is always estimated
        from the residuals.
    dispersion : float
        The scale of chi-square in tests and profiles: s^2, 1 for `absolute_sigma`, or the
        counterpart of s^2 for a robust loss. Twice the rise of the objective, divided by it, is
        compared with a chi-square distribution.
    warnings : list of str
        Sentences about problems of the fit, such as a parameter at its bound.

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
    residual_std: float
    dof: int
    solution: Solution
    values: dict[str, Any]
    errors: dict[str, Any]
    chi_square: float
    r_squared: float
    at_bound: list[str]
    n_points: int
    absolute_sigma: bool
    covariance_kind: str
    dispersion: float
    warnings: list[str]
    problem: FitProblem | None = dataclasses.field(default=None, compare=False)
    uncertainty: Uncertainty | None = dataclasses.field(default=None, compare=False)

    _internal: ClassVar[tuple[str, ...]] = (
        "freedom_of_quantile",
        "needed_problem",
        "of",
        "problem",
        "uncertainty",
    )

    @classmethod
    def of(cls, problem: FitProblem, solution: Solution) -> Fit:
        """Return the fit of a problem from the solution for its free numbers."""
        z, size = np.asarray(solution.x), len(problem.free)
        robust = not problem.objective.is_squared
        held = at_bound(problem, solution)
        dof = problem.freedom + int(np.sum(held))
        at = linearise(problem.objective, z)
        factors = dispersion(at, dof, robust=robust, absolute=problem.absolute_sigma)
        around = Uncertainty.of(at.jacobian, factors.covariance, held)
        chi_square = float(at.residuals @ at.residuals)
        names = list(problem.free)
        names_at_bound = [names[i] for i in np.flatnonzero(held[:size])]
        return cls(
            parameters=problem.in_form_of_p0(z),
            covariance=around.covariance()[:size, :size],
            names=names,
            residual_std=float(np.sqrt(chi_square / dof)) if dof > 0 else np.inf,
            dof=dof,
            solution=solution,
            values=problem.complete(z),
            errors=derived.errors_of_all(problem, z, around, held),
            chi_square=chi_square,
            r_squared=r_squared(problem.data, chi_square),
            at_bound=names_at_bound,
            n_points=problem.n_points,
            absolute_sigma=problem.absolute_sigma,
            covariance_kind="sandwich" if robust else "least squares",
            dispersion=factors.rise,
            warnings=warnings_of(problem, solution, dof, around, names_at_bound),
            problem=problem,
            uncertainty=around,
        )

    @property
    def numbers(self) -> np.ndarray:
        """The fitted values of the free parameters, in the order of `names`."""
        return np.asarray(self.solution.x, float)[: len(self.names)]

    @property
    def standard_errors(self) -> np.ndarray:
        """The square roots of the diagonal of the covariance."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def correlations(self) -> np.ndarray:
        """The correlations of the free parameters: NaN where the covariance is not finite."""
        errors = np.where(np.isfinite(self.standard_errors), self.standard_errors, np.nan)
        with np.errstate(invalid="ignore"):
            return self.covariance / errors / errors[:, None]

    @property
    def reduced_chi_square(self) -> float:
        """Chi-square over the degrees of freedom."""
        return self.chi_square / self.dof if self.dof > 0 else np.inf

    @property
    def aic(self) -> float:
        """Akaike's criterion; lower is better, and only differences between fits have a meaning.

        It is chi-square + 2 p with `absolute_sigma`, else n log(chi-square / n) + 2 p for n points
        and p free parameters: minus twice the log-likelihood of normal errors, without constants.
        NaN for a robust loss.
        """
        return criterion(self, 2.0)

    @property
    def bic(self) -> float:
        """Schwarz's criterion: that of `aic` with log(n) in place of 2."""
        return criterion(self, float(np.log(self.n_points)))

    @property
    def freedom_of_quantile(self) -> float:
        """The degrees of freedom of Student's t for this fit; infinite where sigma is known."""
        is_known = self.absolute_sigma and self.covariance_kind != "sandwich"
        return np.inf if is_known else float(self.dof)

    def derived(self, fn: Callable[[dict[str, Any]], Any]) -> derived.Derived:
        """Return value and standard error of a function of the parameters, by the delta method.

        Parameters
        ----------
        fn : callable
            A JAX function of the dict of all parameters that returns a number or an array.

        Returns
        -------
        Derived
            `value`, `error` and, for an array, its `covariance`; it unpacks as value and error.

        Raises
        ------
        ValueError
            For a fit from a file, which has no model.

        Examples
        --------
        >>> import cfgd, numpy as np
        >>> t, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
        >>> fit = cfgd.curve_fit(lambda t, a, b: a + b * t, t, y, [0.0, 1.0])
        >>> value, error = fit.derived(lambda p: p["a"] + 10 * p["b"])
        >>> print(value.round(3), error.round(3))
        19.829 0.306
        """
        return derived.derive(self, fn)

    def intervals(
        self,
        level: float = 0.95,
        method: str = "profile",
        names: list[str] | str | None = None,
    ) -> intervals.Intervals:
        """Return confidence intervals of the free parameters.

        Parameters
        ----------
        level : float, default 0.95
            The nominal coverage.
        method : {"profile", "normal"}, default "profile"
            "normal" is the estimate plus or minus a quantile of Student's t (the normal one with
            `absolute_sigma`) times the standard error. "profile" (profile likelihood) ends where
            chi-square, minimised over all other parameters, has risen by the square of that
            quantile times `dispersion`: it is accurate also for a model that is strongly nonlinear
            in the parameter, and it respects bounds.
        names : list of str, optional
            Which parameters; all free ones by default.

        Returns
        -------
        Intervals
            A mapping from names to (lower, upper). Its `notes` say which ends are infinite, are a
            bound of the parameter, or were not found (NaN).

        Raises
        ------
        ValueError
            If `level` is not in (0, 1), `method` is not one of the two, `names` has a name that is
            no free parameter, or "profile" is asked of a fit from a file, which has no model.

        Examples
        --------
        >>> import cfgd, jax.numpy as jnp, numpy as np
        >>> t = np.linspace(0, 4, 9)
        >>> y = np.array([2.94, 2.12, 1.62, 1.19, 0.97, 0.83, 0.71, 0.62, 0.55])
        >>> fit = cfgd.curve_fit(lambda t, a, b, c: a * jnp.exp(-b * t) + c, t, y, [1.0, 1.0, 0.0])
        >>> lower, upper = fit.intervals(0.9)["b"]
        >>> print(round(lower, 4), round(upper, 4))
        0.7391 0.8307
        """
        return intervals.intervals(self, level, method, names)

    def band(
        self, x: Any, level: float = 0.95, kind: str = "curve", sigma: Any = None, data_set: Any = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper limits of the curve, or of new observations, at each x.

        Parameters
        ----------
        x : array, or dict or tuple of arrays
            The points, in the form in which the model takes x.
        level : float, default 0.95
            The nominal coverage at each x.
        kind : {"curve", "observation"}, default "curve"
            Whether the band is for the mean of y or for a new y.
        sigma : array, optional
            The standard deviations of new observations, in the units of the `sigma` of the fit.
            They must be given where the fit has a `sigma` that is not one number.
        data_set : int or str, default 0
            The index or the name of a data set, in a fit of several.

        Returns
        -------
        lower, upper : array
            The limits by the delta method, in the shape of model(x).

        Raises
        ------
        ValueError
            For a fit from a file, which has no model.

        Examples
        --------
        >>> import cfgd, numpy as np
        >>> t, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
        >>> fit = cfgd.curve_fit(lambda t, a, b: a + b * t, t, y, [0.0, 1.0])
        >>> lower, upper = fit.band(np.array([2.5, 10.0]))
        >>> print(lower.round(2), upper.round(2))
        [ 4.81 18.98] [ 5.19 20.68]
        """
        return band.band(self, x, level, kind, sigma, data_set)

    def compare(self, other: Fit) -> compare.Comparison:
        """Compare with another fit of the same data: F test, AIC and BIC (see `Comparison`).

        Parameters
        ----------
        other : Fit
            Another fit of the same data.

        Returns
        -------
        Comparison
            F test, AIC and BIC; printing it gives the result in words.

        Raises
        ------
        ValueError
            If `other` is not a `Fit` of the same y and sigma with the same `absolute_sigma`, or if
            one of the two has a robust loss.

        Examples
        --------
        >>> import cfgd, numpy as np
        >>> t, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
        >>> line = cfgd.curve_fit(lambda t, a, b: a + b * t, t, y, [0.0, 1.0])
        >>> constant = cfgd.curve_fit(lambda t, a: a + 0 * t, t, y, [0.0])
        >>> print(constant.compare(line).p_value.__round__(8))
        9.8e-07
        """
        return compare.compare(self, other)

    def report(self, style: str = "text") -> str:
        """Return a report to print, or to paste into a paper.

        It says how the solver ended and has warnings, all parameters with their standard errors as
        in 1.234(56), correlations above 0.1 in size, chi-square, AIC, BIC and R^2.

        Parameters
        ----------
        style : {"text", "markdown", "latex"}, default "text"
            LaTeX needs no packages.

        Returns
        -------
        str
            The report, of several lines.

        Examples
        --------
        >>> import cfgd, numpy as np
        >>> t, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
        >>> fit = cfgd.curve_fit(lambda t, a, b: a + b * t, t, y, [0.0, 1.0], fixed={"a": 0.0})
        >>> print("\\n".join(fit.report().splitlines()[2:5]))
        Parameters
          a  0          fixed
          b  1.993(21)
        """
        return report.report(self, style)

    def plot(self, ax: Any = None, level: float = 0.95, data_set: Any = None) -> Any:
        """Plot data with errors, the curve with its band, and the residuals below.

        Parameters
        ----------
        ax : axes or a pair of axes, optional
            Where to draw: curve and residuals, or on a single one the curve alone.
        level : float, default 0.95
            The nominal coverage of the band at each x.
        data_set : int or str, optional
            The index or the name of a data set, in a fit of several; all of them by default.

        Returns
        -------
        axes or a pair of axes
            The axes of the curve and of the residuals. If x is not one array of numbers, their
            horizontal axis is the index of the point. Requires matplotlib.

        Raises
        ------
        ValueError
            For a fit from a file, which has no model.
        """
        return plot.draw(self, ax, level, data_set)

    def plot_profile(self, name: str, level: float = 0.95, ax: Any = None) -> Any:
        """Plot the profile of chi-square over a free parameter, and return the axes.

        At each value of the parameter, all others are fitted again. The rise of chi-square above
        its minimum, divided by `dispersion`, is drawn with the parabola of the normal
        approximation and the interval of this level.

        Parameters
        ----------
        name : str
            The parameter.
        level : float, default 0.95
            The level of the interval that is drawn, in (0, 1).
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
            The axes.

        Raises
        ------
        ValueError
            For a fit from a file, which has no model.
        """
        return plot_parameters.draw_profile(self, name, level, ax)

    def plot_pairs(
        self,
        names: list[str] | None = None,
        level: float = 0.95,
        method: str = "normal",
        ax: Any = None,
    ) -> Any:
        """Plot the joint confidence region of each pair of free parameters.

        Parameters
        ----------
        names : list of str, optional
            Which parameters; by default all that have a standard error.
        level : float, default 0.95
            The nominal coverage of each region.
        method : {"normal", "profile"}, default "normal"
            "normal" draws ellipses. "profile" adds the contours at which chi-square, minimised over
            all other parameters, has risen by the quantile for two parameters: about a hundred
            fits for each pair.
        ax : axes or square array of axes, optional
            One for two names, else one fewer than names along each side.

        Returns
        -------
        axes or array of axes
            The lower triangle is used.
        """
        return plot_parameters.draw_pairs(self, names, level, method, ax)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to a JSON file, from which `from_json` restores all numbers exactly.

        The model is a function and not in the file: what needs it (`derived`, `band` and profile
        intervals) is not available for the fit from the file.

        Parameters
        ----------
        path : path
            The file.
        """
        write(Path(path), fit_json.to_text(self))

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Fit:
        """Read a file that `to_json` wrote; raise a `ValueError` that names a damaged field.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        Fit
            The fit. Methods that need the model are not available, see `to_json`.
        """
        return cls(**fit_json.read(Path(path)))

    def needed_problem(self, what: str) -> FitProblem:
        """Return the problem; raise a ValueError for a fit that was stored without it."""
        if self.problem is None:
            raise ValueError(f"`Fit.{what}` needs the model, which a stored fit does not have.")
        return self.problem

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: without the model where that cannot be, such as a lambda."""
        state = dict(self.__dict__)
        try:
            pickle.dumps(self.problem)
        except Exception:  # pickle raises what the objects in it raise
            state["problem"] = None
        return state

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fit):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self) if field.compare]
        return equal_trees(
            [getattr(self, name) for name in names], [getattr(other, name) for name in names]
        )

    def __iter__(self) -> Iterator[Any]:
        return iter((self.parameters, self.covariance))

    def _repr_html_(self) -> str:
        """Return a table of the parameters and the residuals, for IPython and Jupyter."""
        return notebook.of_fit(self)

    def __repr__(self) -> str:
        return report.summary(self)
