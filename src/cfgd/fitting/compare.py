"""The comparison of two fits of the same data."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import jax
import numpy as np
from scipy import special

from cfgd._core import checks
from cfgd._core.arrays import equal_trees

if TYPE_CHECKING:
    from cfgd.fitting.fit import Fit

# Differences of AIC or BIC below 2 count as no evidence, above 10 as decisive (Burnham and
# Anderson, Model Selection and Multimodel Inference, section 2.6).
NO_EVIDENCE, DECISIVE = 2.0, 10.0


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """Two fits of the same data, the one with fewer free parameters first.

    Attributes
    ----------
    statistic, p_value : float
        The test of the model with fewer parameters against the one with more; it is valid if the
        models are nested, that is, if the smaller one is a special case of the larger one. The
        statistic is F with `dof`, or with `absolute_sigma` the difference of chi-square. The
        p-value is the probability of a statistic at least as large if the smaller model is true.
        Both are NaN for equally many parameters.
    dof : tuple of int
        How many parameters more the larger model has, and its degrees of freedom.
    aic, bic : float
        AIC and BIC of the larger model minus those of the smaller one: negative values favour the
        larger model.
    test : str
        "F" or "chi-square".
    swapped : bool
        Whether the first of the two given fits has more parameters than the second.
    """

    statistic: float
    p_value: float
    dof: tuple[int, int]
    aic: float
    bic: float
    test: str
    swapped: bool

    def __repr__(self) -> str:
        smaller, larger = ("second", "first") if self.swapped else ("first", "second")
        more, left = self.dof
        lines = []
        if more > 0:
            of = f"F({more}, {left})" if self.test == "F" else f"chi-square({more})"
            lines.append(
                f"{of} = {self.statistic:.4g}, p-value {self.p_value:.3g} (valid if the {smaller} "
                f"model is a special case of the {larger} one)"
            )
        for name, difference in (("AIC", self.aic), ("BIC", self.bic)):
            verdict = _verdict(difference, smaller, larger)
            lines.append(
                f"{name} of the {larger} minus {name} of the {smaller}: {difference:.4g}: {verdict}"
            )
        return "\n".join(lines)


def _verdict(difference: float, smaller: str, larger: str) -> str:
    if not abs(difference) >= NO_EVIDENCE:
        return "neither is better"
    how = "decisively" if abs(difference) > DECISIVE else "somewhat"
    return f"the {larger if difference < 0 else smaller} is {how} better"


def compare(first: Fit, second: Fit) -> Comparison:
    """Compare two fits of the same data.

    Parameters
    ----------
    first, second : Fit
        Two fits by least squares of the same y with the same sigma, in any order.

    Returns
    -------
    Comparison
        F test, AIC and BIC; printing it gives the result in words.

    Raises
    ------
    ValueError
        If `second` is not a `Fit`, or if the fits differ in the number of points, in y, sigma or
        `absolute_sigma`, or if the loss of one of them is not the sum of squares.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> t, y = np.arange(6.0), np.array([0.1, 1.9, 4.2, 5.8, 8.1, 9.9])
    >>> line = cfgd.curve_fit(lambda t, a, b: a + b * t, t, y, [0.0, 1.0])
    >>> constant = cfgd.curve_fit(lambda t, a: a + 0 * t, t, y, [0.0])
    >>> print(constant.compare(line))
    F(1, 4) = 2468, p-value 9.82e-07 (valid if the first model is a special case of the second one)
    AIC of the second minus AIC of the first: -36.56: the second is decisively better
    BIC of the second minus BIC of the first: -36.77: the second is decisively better
    """
    _check(first, second)
    swapped = len(first.names) > len(second.names)
    small, large = (second, first) if swapped else (first, second)
    more, left = len(large.names) - len(small.names), large.n_points - len(large.names)
    fall = small.chi_square - large.chi_square
    test = "chi-square" if large.absolute_sigma else "F"
    statistic = p_value = np.nan
    if more > 0 and test == "chi-square":
        statistic = fall
        p_value = float(special.chdtrc(more, max(fall, 0.0)))
    elif more > 0 and left > 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = float(np.divide(fall / more, large.chi_square / left))
        p_value = float(special.fdtrc(more, left, max(statistic, 0.0)))
    return Comparison(
        statistic=statistic,
        p_value=p_value,
        dof=(more, left),
        aic=large.aic - small.aic,
        bic=large.bic - small.bic,
        test=test,
        swapped=swapped,
    )


def _check(first: Fit, second: Fit) -> None:
    owner, field = "Fit.compare", "other"
    if not isinstance(second, type(first)):
        checks.fail(owner, field, "be a Fit", checks.describe(second))
    if first.n_points != second.n_points:
        wanted = f"be a fit of the same {first.n_points} points"
        checks.fail(owner, field, wanted, f"{second.n_points} points")
    if first.absolute_sigma != second.absolute_sigma:
        wanted = f"have absolute_sigma={first.absolute_sigma}, as the first fit"
        checks.fail(owner, field, wanted, second.absolute_sigma)
    if "sandwich" in (first.covariance_kind, second.covariance_kind):
        checks.fail(owner, field, "be a fit by least squares, as the first one", "a robust loss")
    if first.problem is not None and second.problem is not None:
        mine, theirs = (
            [(each.y, each.sigma) for each in problem.data]
            for problem in (first.problem, second.problem)
        )
        if not equal_trees(jax.tree.map(np.asarray, mine), jax.tree.map(np.asarray, theirs)):
            checks.fail(owner, field, "be a fit of the same y and sigma", "other data")
