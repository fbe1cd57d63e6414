"""A table of coefficients: estimate, standard error, test statistic, p-value and interval."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from scipy import special

from cfgd._core.failing import fail
from cfgd._core.students_t import quantile

# The text of a cell without a number.
NONE = "-"
FACTS_WIDTH = 75  # at least: that of a table with names of at most nine characters


@dataclasses.dataclass(frozen=True, eq=False)
class CoefficientTable:
    """Estimates with their standard errors; printed, a table like those of statsmodels.

    Parameters
    ----------
    names : tuple of str
        The k coefficients.
    estimates, errors : array of shape (k,) or (k, classes)
        The estimates and their standard errors: NaN where there is none, infinite where the data do
        not determine the coefficient.
    distribution : {"t", "z"}
        Of estimate / error where the coefficient is zero: Student's t with `dof` degrees of
        freedom, or the normal distribution.
    dof : float
        The degrees of freedom of the residuals, for "t".
    classes : tuple of str
        The headings of the columns of `estimates`, where it is a matrix.
    is_penalised : bool
        Whether the estimates are shrunken by a penalty. Their errors do not include the bias, so
        that there are no statistics, p-values and intervals.
    title : str
        The first line.
    facts : tuple of (str, str)
        Entries above the table, such as ("R squared", "0.93").
    notes : tuple of str
        Sentences below the table.

    >>> from cfgd.objectives.linear.coefficient_table import CoefficientTable
    >>> table = CoefficientTable(("slope", "intercept"), [1.895, 0.2], [0.117, 0.5], "t", dof=6)
    >>> print(table)
                    coef    std err          t      P>|t|     [0.025     0.975]
    ---------------------------------------------------------------------------
    slope         1.8950     0.1170     16.197      0.000     1.6087     2.1813
    intercept     0.2000     0.5000      0.400      0.703    -1.0235     1.4235
    """

    names: tuple[str, ...]
    estimates: Any
    errors: Any
    distribution: str = "z"
    dof: float = math.inf
    classes: tuple[str, ...] = ()
    is_penalised: bool = False
    title: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.distribution not in ("t", "z"):
            fail("CoefficientTable", "distribution", "be 't' or 'z'", repr(self.distribution))
        shape = (len(self.names), *([len(self.classes)] if self.classes else []))
        for name in ("estimates", "errors"):
            array = np.asarray(getattr(self, name), float)
            if array.shape != shape:
                fail("CoefficientTable", name, f"have shape {shape}", f"{array.shape}")
            object.__setattr__(self, name, array)

    @property
    def statistics(self) -> np.ndarray:
        """Estimate over standard error: t or z; NaN where there is no error or a penalty."""
        known = np.isfinite(self.errors) & (self.errors > 0) & (not self.is_penalised)
        return np.divide(
            self.estimates, self.errors, out=np.full(self.errors.shape, np.nan), where=known
        )

    @property
    def p_values(self) -> np.ndarray:
        """Probabilities of a statistic of at least this size where the coefficient is zero."""
        size = -np.abs(self.statistics)
        if self.distribution == "z" or np.isinf(self.dof):
            return 2 * special.ndtr(size)
        return 2 * special.stdtr(self.dof if self.dof > 0 else np.nan, size)

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Return lower and upper ends of the confidence intervals on a last axis of length 2.

        They are NaN where the estimates are penalised or an error does not exist, and infinite
        where an error is.
        """
        factor = quantile(level, math.inf if self.distribution == "z" else self.dof)
        reach = factor * self.errors
        if self.is_penalised:
            reach = np.full_like(reach, np.nan)
        return np.stack([self.estimates - reach, self.estimates + reach], -1)

    def __str__(self) -> str:
        """Return the table with its facts and notes as text."""
        width = max([len(name) for name in self.names] + [9])
        letter = self.distribution
        heads = ["coef", "std err"]
        if not self.is_penalised:
            heads += [letter, f"P>|{letter}|", "[0.025", "0.975]"]
        header = " " * width + "".join(f"{head:>11}" for head in heads)
        lines = [self.title, *_facts(self.facts, max(len(header), FACTS_WIDTH)), header]
        columns = (self.estimates, self.errors, self.statistics, self.p_values, self.intervals())
        for k, heading in enumerate(self.classes or ("",)):
            lines.append(f"{heading} ".lstrip().ljust(len(header), "-"))
            for i, name in enumerate(self.names):
                at = (i, k) if self.classes else (i,)
                w, error, statistic, p, (low, high) = (column[at] for column in columns)
                cells = [_number(w), _number(error)]
                if not self.is_penalised:
                    cells += [_fixed(statistic), _fixed(p), _number(low), _number(high)]
                lines.append(f"{name:<{width}}" + "".join(f"{cell:>11}" for cell in cells))
        return "\n".join([line for line in lines if line] + [*self.notes])

    __repr__ = __str__


def _facts(facts: tuple[tuple[str, str], ...], width: int) -> list[str]:
    """Return the facts in lines of two, as wide as the table; one that is too long has its own."""
    half = (width - 2) // 2
    lines: list[list[str]] = []
    for name, value in facts:
        is_short = len(name) + len(value) + 2 <= half
        room = (half if is_short else width) - len(name) - 1
        cell = f"{name}:{value:>{max(1, room)}}"
        if is_short and lines and len(lines[-1]) == 1 and len(lines[-1][0]) <= half:
            lines[-1].append(cell)
        else:
            lines.append([cell])
    return ["  ".join(line).rstrip() for line in lines]


def _number(value: float) -> str:
    """Return four decimals, or four digits where these would be too many or show nothing."""
    if not np.isfinite(value):
        return NONE
    return f"{value:.4f}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.3e}"


def _fixed(value: float) -> str:
    """Return three decimals, as statsmodels has for statistics and p-values."""
    if not np.isfinite(value):
        return NONE
    return f"{value:.3f}" if abs(value) < 1e5 else f"{value:.2e}"
