"""Standard errors and the summary of a fitted linear estimator, from numbers and not its data."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
from scipy import special

from cfgd._core.box import Box
from cfgd.objectives.information import Information
from cfgd.objectives.linear.blocks import Blocks
from cfgd.objectives.linear.coefficient_table import CoefficientTable
from cfgd.objectives.linear.covariance import CoefficientCovariance, InformationSums
from cfgd.objectives.linear.huber_scale import HuberScale
from cfgd.objectives.linear.intercept import WithIntercept
from cfgd.objectives.linear.losses import LOSSES, Gamma, Huber, Logistic, Poisson, Squared
from cfgd.objectives.linear.model import LinearModel
from cfgd.objectives.linear.multinomial import Multinomial
from cfgd.solve import Solution
from cfgd.solve.separated import describe_separation, separation_of
from cfgd.status import Status

# Coefficients up to which errors of penalised and sparse models are prepared at the end of a fit,
# for about the cost of one more iteration.
MOST_COEFFICIENTS = 500
# The standard deviation of a normal distribution is this multiple of its median absolute deviation.
DEVIATION_PER_MAD = 1 / float(special.ndtri(0.75))


@dataclasses.dataclass(frozen=True)
class FitStatistics:
    """What is kept of a fit for its standard errors and summary.

    Parameters
    ----------
    names, classes
        Of the coefficients, the intercept's last, and of the classes of a multinomial model.
    shape
        That of the coefficients.
    loss
        The loss.
    l2 : array
        The penalty of each coefficient, flattened.
    count
        Rows whose weight is not zero.
    sums
        Of the rows, for the covariance; None where the solution has its information matrix, or
        where there are too many coefficients.
    information
        That of the solution.
    unit
        By what residuals and targets were divided in `sums`.
    targets
        Numbers of the targets alone, for the log-likelihood and R squared.
    """

    title: str
    names: tuple[str, ...]
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    loss: Any
    l2: np.ndarray
    count: int
    sums: InformationSums | None
    information: Information | None
    unit: float
    targets: dict[str, float]
    held: np.ndarray  # which coefficients are at a bound, and treated as constants

    @property
    def is_penalised(self) -> bool:
        return bool(np.any(self.l2 > 0))

    def covariance(self) -> CoefficientCovariance:
        """Return the covariance of the flattened coefficients; NaN for those at a bound."""
        if self.sums is not None:
            found = self.sums.without(self.held).covariance(self.l2[~self.held])
            size = len(self.l2)
            matrix = np.full((size, size), np.nan)
            matrix[np.ix_(~self.held, ~self.held)] = self.unit**2 * found.matrix
            return dataclasses.replace(found, matrix=matrix)
        if self.information is None:
            raise AttributeError(
                f"There are no standard errors of more than {MOST_COEFFICIENTS} coefficients with "
                "a penalty, of sparse data or by a method other than `auto`."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the notes of the table say it
            matrix = self.information.covariance()
        inverse = self.information.inverse()
        nullity = 0 if inverse is None else inverse.null.shape[1]
        dof = self.count - (self.n_parameters - nullity)
        return CoefficientCovariance(matrix, dof, np.nan, self.information)

    @property
    def n_parameters(self) -> int:
        """Coefficients that can be determined: of K classes K - 1 are free."""
        if isinstance(self.loss, Multinomial):
            return self.shape[0] * (self.shape[1] - 1)
        return math.prod(self.shape)

    def _is_held(self) -> np.ndarray:
        """Return which columns have all their coefficients at a bound."""
        return np.asarray(self.held.reshape(len(self.names), -1).all(1))

    def errors(self) -> np.ndarray:
        """Return the standard errors in the shape of the coefficients."""
        return self.covariance().errors.reshape(self.shape)

    def table(self, solution: Solution) -> CoefficientTable:
        """Return the table of the coefficients with what is known of the fit."""
        x = np.asarray(solution.x, float)[: math.prod(self.shape)].reshape(self.shape)
        if x.ndim == 2:
            x = x - x.mean(1, keepdims=True)
        covariance = self.covariance()
        notes = [] if solution.success else [f"Not converged: {solution.message}"]
        names = [name for name, held in zip(self.names, self._is_held(), strict=True) if not held]
        for combination in covariance.information.combinations(names):
            sentence = f"The columns are collinear: {combination} is zero in all rows"
            notes.append(f"{sentence}, and the data do not determine their coefficients.")
        if self.is_penalised:
            notes.append(
                "With a penalty the standard errors describe the variability of the shrunken "
                "coefficients and not the bias of the shrinkage: there are no p-values and no "
                "intervals."
            )
        return CoefficientTable(
            self.names,
            x,
            covariance.errors.reshape(self.shape),
            distribution="t" if self.loss.has_dispersion else "z",
            dof=covariance.dof,
            classes=self.classes if x.ndim == 2 else (),
            is_penalised=self.is_penalised,
            title=self.title,
            facts=tuple(self._facts(solution, covariance)),
            notes=tuple(notes),
        )

    def _facts(
        self, solution: Solution, covariance: CoefficientCovariance
    ) -> list[tuple[str, str]]:
        facts = [("rows", f"{self.count:,}"), ("status", solution.status.name)]
        x = np.asarray(solution.x, float).ravel()[: len(self.l2)]
        misfit = float(solution.value) - float(self.l2 @ x**2) / 2  # without the penalty
        facts.append(("residual dof", f"{covariance.dof:.6g}"))
        inverse = covariance.information.inverse()
        rank = self.n_parameters - (0 if inverse is None else inverse.null.shape[1])
        if isinstance(self.loss, Squared):
            facts.append(("R squared", f"{1 - 2 * misfit / self.targets['squares']:.6g}"))
            facts.append(("residual std", f"{math.sqrt(2 * misfit / covariance.dof):.6g}"))
        if "MAD" in self.targets:
            facts.append(("robust scale (MAD)", f"{self.targets['MAD']:.6g}"))
        likelihood = self.log_likelihood(misfit, covariance.information.factor)
        if likelihood is None or self.is_penalised or solution.status is Status.separated:
            return facts
        null = self.targets.get("null likelihood")
        if null is not None:
            facts.append(("pseudo R squared", f"{1 - likelihood / null:.6g}"))
        facts.append(("log-likelihood", f"{likelihood:.7g}"))
        facts.append(("AIC", f"{2 * rank - 2 * likelihood:.7g}"))
        facts.append(("BIC", f"{math.log(self.count) * rank - 2 * likelihood:.7g}"))
        return facts

    def log_likelihood(self, misfit: float, dispersion: float) -> float | None:
        """Return the log-likelihood for the sum of losses, as statsmodels has it; None if none."""
        n, targets = self.count, self.targets
        if isinstance(self.loss, Logistic | Multinomial):
            return -misfit
        if isinstance(self.loss, Poisson):
            return -misfit - targets["log factorials"]
        if isinstance(self.loss, Squared):
            if misfit <= 0:
                return None
            return targets["log weights"] / 2 - n / 2 * (math.log(4 * math.pi * misfit / n) + 1)
        if isinstance(self.loss, Gamma) and "log y" in targets:
            shape = 1 / dispersion
            known = n * (shape * math.log(shape) - float(special.gammaln(shape)))
            return known + (shape - 1) * targets["log y"] - shape * misfit
        return None


def statistics_of_model(
    f: LinearModel,
    solution: Solution,
    names: tuple[str, ...],
    classes: tuple[str, ...] = (),
    *,
    title: str,
) -> FitStatistics:
    """Return the statistics of a fitted `LinearModel`."""
    weight, y = np.asarray(f.sample_weight, float), np.asarray(f.y)
    used = weight > 0
    if not used.all():
        weight, y = weight[used], y[used]
    l2 = np.broadcast_to(np.asarray(f.l2, float), f.dimension)
    sums, information = None, solution.information
    held = held_of(solution, f.dimension)
    if (information is None or held.any()) and f.dimension <= MOST_COEFFICIENTS:
        host = f.on_host()
        assert host is not None
        x = np.asarray(solution.x, float).reshape(-1)
        sums = host.information_sums(host.evaluate(x))
    return FitStatistics(
        title=title,
        names=(*names, "intercept") if isinstance(f.X, WithIntercept) else names,
        classes=classes,
        shape=f.shape,
        loss=f.loss,
        l2=l2,
        count=len(y),
        sums=sums,
        information=information,
        unit=1.0,
        targets=_numbers_of_targets(f, y, weight),
        held=held,
    )


def held_of(solution: Solution, size: int) -> np.ndarray:
    """Return which coefficients are at a bound."""
    if solution.active_mask is None:
        return np.zeros(size, bool)
    return np.asarray(solution.active_mask).reshape(-1)[:size] != 0


def _numbers_of_targets(f: LinearModel, y: np.ndarray, weight: np.ndarray) -> dict[str, float]:
    """Return what the log-likelihood and R squared need of the targets alone."""
    total = float(weight.sum())
    if isinstance(f.loss, Squared):
        centre = float(weight @ y) / total if isinstance(f.X, WithIntercept) else 0.0
        squares = float(weight @ (y - centre) ** 2)
        return {"squares": squares, "log weights": float(np.log(weight).sum())}
    if isinstance(f.loss, Poisson):
        return {"log factorials": float(weight @ special.gammaln(y + 1))}
    if isinstance(f.loss, Gamma):
        return {"log y": float(np.log(y).sum())} if np.all(weight == 1) else {}
    if isinstance(f.X, WithIntercept) and isinstance(f.loss, Logistic | Multinomial):
        indices = np.asarray(y if isinstance(f.loss, Multinomial) else y > 0).astype(int)
        shares = np.bincount(indices, weight) / total
        return {"null likelihood": float(total * special.xlogy(shares, shares).sum())}
    return {}


def statistics_of_huber(
    f: HuberScale, solution: Solution, names: tuple[str, ...], *, title: str
) -> FitStatistics:
    """Return the statistics of Huber's regression whose scale is estimated."""
    x = np.asarray(solution.x, float)
    w, sigma = x[:-1], float(np.exp(x[-1]))
    unit = sigma * float(f.epsilon)  # beyond which the loss of a residual is linear
    X, y, weight = _on_host(f)
    p = np.asarray(X.times(w))
    used = weight > 0
    sums = None
    if len(w) <= MOST_COEFFICIENTS:
        sums = InformationSums(LOSSES["huber"], len(w))
        sums.add(X, y / unit, p / unit, weight)
    # f is 2 sigma epsilon^2 times the sum of losses of residuals / unit: so is the penalty
    l2 = np.broadcast_to(np.asarray(f.l2, float), w.shape) * sigma / 2
    mad = float(np.median(np.abs(y - p)[used])) * DEVIATION_PER_MAD
    return FitStatistics(
        title=title,
        names=(*names, "intercept") if isinstance(f.X, WithIntercept) else names,
        classes=(),
        shape=w.shape,
        loss=Huber(),
        l2=l2,
        count=int(used.sum()),
        sums=sums,
        information=None,
        unit=unit,
        targets={"MAD": mad},
        held=held_of(solution, len(w)),
    )


def _on_host(f: HuberScale) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return design matrix, targets and weights in NumPy."""
    X = f.X
    inner = X.inner if isinstance(X, WithIntercept) else X
    host = inner.in_scipy() if hasattr(inner, "in_scipy") else inner
    X = WithIntercept(host) if isinstance(X, WithIntercept) else host
    return X, np.asarray(f.y, float), np.asarray(f.sample_weight, float)


def named_separation(
    f: LinearModel | Blocks,
    solution: Solution,
    bounds: Any,
    names: tuple[str, ...],
    classes: tuple[str, ...],
) -> Solution:
    """Return the solution whose message names the columns and classes that are separated."""
    box = None
    if bounds is not None:
        lower, upper = (np.broadcast_to(of, f.shape).reshape(-1) for of in bounds)
        box = Box(lower, upper)
    found = separation_of(f, np.asarray(solution.x, float).reshape(-1), box)
    if found is None:
        return solution
    return dataclasses.replace(solution, details=describe_separation(found, names, classes))
