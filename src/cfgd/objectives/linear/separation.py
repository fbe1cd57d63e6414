"""Separated classes: directions along which the likelihood of a classifier never stops growing.

The maximum likelihood estimate of a logistic or multinomial model does not exist if there is a
direction of its coefficients along which no row is predicted worse and some row better: for two
classes y_i x_i w >= 0 for all rows i, and > 0 for one (Albert and Anderson, Biometrika 71, 1984).
With > 0 for all rows the separation is complete, else quasi-complete.

A direction that is found is tested on all rows and thus proves the separation. Candidates are
single columns, the coefficients that a run has reached, and the solution of a linear program
(Konis, thesis, Oxford, 2007).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from cfgd.objectives.linear.classified_rows import (
    BLOCK_NUMBERS,
    Classes,
    RowBlock,
    Survey,
    matrix_of,
)
from cfgd.objectives.linear.intercept import WithIntercept

# Margins times unknowns up to which a linear program is solved, in a second or so.
MOST_NUMBERS = 20_000_000
# Unknowns up to which a linear program looks for the few columns of a complete separation. The
# coefficients prove the separation in any case, and a dense program of a thousand unknowns takes
# minutes.
MOST_SOUGHT = 200
# Constraints of the first linear program, and at least so many for each unknown: violated ones are
# added afterwards.
FIRST_CONSTRAINTS, PER_UNKNOWN = 200, 5
MOST_ROUNDS = 30
# In columns of unit deviation, relative to the direction: margins beyond NEAR_ZERO are positive.
# Rows with smaller ones must be orthogonal to it, to a relative singular value of SINGULAR, so that
# classes which overlap by 1e-9 of a standard deviation are not mistaken for touching ones.
NEAR_ZERO = 1e-6
SINGULAR = 1e-10
FEASIBILITY = 1e-10  # the least tolerance that HiGHS accepts


@dataclasses.dataclass(frozen=True)
class Separation:
    """A direction of the coefficients along which no row is predicted worse and some row better.

    Attributes
    ----------
    direction : array of shape (columns, predictors)
        In the units of the columns; the intercept, if there is one, is last.
    shares : array
        How much each column but the intercept contributes: the largest coefficient if columns have
        unit deviation, relative to the largest of all.
    is_complete : bool
        Whether every row can be predicted better.
    pairs : array of bool of shape (classes, classes)
        Whether some row of the first class is predicted better relative to the second one.
    """

    direction: np.ndarray
    shares: np.ndarray
    is_complete: bool
    pairs: np.ndarray


def find_separation(classes: Classes, W: np.ndarray) -> Separation | None:
    """Return a direction that separates the classes, or None if there is none.

    Where the data are too large for a linear program, only directions of single columns and of the
    coefficients are tried.

    Parameters
    ----------
    classes
        The rows.
    W : array of shape (columns, predictors)
        The coefficients that a run has reached.
    """
    if not np.any((classes.lower < 0) | (classes.upper > 0)) or not np.all(np.isfinite(W)):
        return None
    survey = Survey.of(classes, W)
    V = _single_column(classes, survey)
    is_sought = W.size <= MOST_SOUGHT if survey.is_complete else survey.is_suspicious
    if V is None and is_sought:
        V = _by_linear_program(classes, survey, W)
    if V is None and survey.is_complete:
        V = survey.scaled(W)
    return None if V is None else _described(classes, survey, V)


# ---------------------------------------------------------------------- single columns


def _single_column(classes: Classes, survey: Survey) -> np.ndarray | None:
    """Return the direction of a single column that separates the classes, with the widest gap.

    A column separates if it is at most t in some classes and at least t in the others, where t is 0
    without an intercept.
    """
    present = np.flatnonzero(np.isfinite(survey.least[:, 0]))
    least, most = survey.least[present], survey.most[present]
    order = np.argsort(least + most, 0, kind="stable")
    # the largest entry of the first classes, and the least one of the others, for every cut
    end = np.maximum.accumulate(np.take_along_axis(most, order, 0))[:-1]
    begin = np.minimum.accumulate(np.take_along_axis(least, order, 0)[::-1])[::-1][1:]
    spread = most.max(0) - least.min(0)
    is_cut = (end <= begin) & (spread > 0)
    if not classes.has_intercept:
        is_cut &= (end <= 0) & (begin >= 0)
    gaps = np.where(is_cut, (begin - end) / np.where(spread > 0, spread, 1.0), -1.0)
    for place in np.argsort(-gaps, axis=None, kind="stable"):
        cut, j = np.unravel_index(place, gaps.shape)
        if gaps[cut, j] < 0:
            break
        high = np.isin(np.arange(len(survey.least)), present[order[cut + 1 :, j]])
        at = (end[cut, j] + begin[cut, j]) / 2 if classes.has_intercept else 0.0
        found = _allowed_step(classes, high, int(j), float(at))
        if found is not None:
            return survey.scaled(found)
    absent = ~np.isin(np.arange(len(survey.least)), present)
    if not classes.has_intercept or not absent.any():
        return None
    found = _allowed_step(classes, ~absent, None, 0.0)  # of a class without rows
    return None if found is None else survey.scaled(found)


def _allowed_step(
    classes: Classes, high: np.ndarray, column: int | None, at: float
) -> np.ndarray | None:
    """Return the direction that raises the classes `high` by x_column - at; None if not allowed."""
    up = classes.contrasts.T @ np.where(high, 1.0, -1.0)
    choices = [up]
    if len(up) > 1:  # a part that is common to all classes has no effect
        choices += [up - up.max(), up - up.min()]
    for choice in choices:
        W = np.zeros(classes.lower.shape)
        if column is None:
            W[-1] = choice
        else:
            W[column] = choice
            if at != 0:
                W[-1] = -at * choice
        if classes.allow(W):
            return W
    return None


# ---------------------------------------------------------------------- the linear program


def _by_linear_program(classes: Classes, survey: Survey, W: np.ndarray) -> np.ndarray | None:
    """Return a separating direction V of scaled columns, with few of them, or None.

    Minimise sum |V_j| such that all margins are at least 0 and their mean is 1. Few of the
    constraints are active: those with the least margins along W come first, and violated ones are
    added until there are none. If some of them cannot be satisfied, neither can all of them.
    """
    unknowns = W.size
    if survey.rows * (len(classes.contrasts) - 1) * unknowns > MOST_NUMBERS:
        return None
    wanted = max(FIRST_CONSTRAINTS, PER_UNKNOWN * unknowns)
    chosen = _least_margins(classes, survey, W, wanted, np.inf)
    mean = _mean_margin(classes, survey)
    # V is a difference of two positive vectors; where V may not grow, neither may its part
    may_grow = np.concatenate([classes.upper.ravel() > 0, classes.lower.ravel() < 0])
    equality = np.concatenate([mean, -mean])[None, may_grow]
    for _ in range(MOST_ROUNDS):
        found = linprog(
            np.ones(equality.size),
            A_ub=-np.concatenate([chosen, -chosen], 1)[:, may_grow],
            b_ub=np.zeros(len(chosen)),
            A_eq=equality,
            b_eq=np.ones(1),
            method="highs",
            options={"primal_feasibility_tolerance": FEASIBILITY},
        )
        if found.status != 0:
            return None
        parts = np.zeros(2 * unknowns)
        parts[may_grow] = found.x
        V = (parts[:unknowns] - parts[unknowns:]).reshape(W.shape)
        violated = _least_margins(
            classes, survey, survey.unscaled(V), wanted, -NEAR_ZERO * _size(V)
        )
        if len(violated) == 0:
            return _proved(classes, survey, V)
        chosen = np.concatenate([chosen, violated])
    return None


def _size(V: np.ndarray) -> float:
    return float(np.max(np.abs(V)))


def _mean_margin(classes: Classes, survey: Survey) -> np.ndarray:
    """Return the mean of all margins as a linear function of the scaled coefficients."""
    total = sum(classes.map(_sum_of_margins))
    total = total - np.outer(survey.centre, total[-1])
    return (total / survey.scale[:, None]).ravel() / survey.rows


def _sum_of_margins(classes: Classes, blocks: Iterable[RowBlock]) -> np.ndarray:
    n_classes, total = len(classes.contrasts), np.zeros(classes.lower.shape)
    for block in blocks:
        each = n_classes * classes.contrasts[block.classes] - classes.contrasts.sum(0)
        total += np.asarray(block.X.back(each))
    return total


def _least_margins(
    classes: Classes, survey: Survey, W: np.ndarray, wanted: int, below: float
) -> np.ndarray:
    """Return the least margins along W, at most `wanted` and all below `below`.

    They are rows: linear functions of the scaled coefficients.
    """
    parts = list(classes.map(_least_margins_of, survey, W, wanted, below))
    values, found = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return found[np.argsort(values, kind="stable")[:wanted]]


def _least_margins_of(
    classes: Classes,
    blocks: Iterable[RowBlock],
    survey: Survey,
    W: np.ndarray,
    wanted: int,
    below: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least margins of a part, and their rows."""
    found, values = np.zeros((0, W.size)), np.zeros(0)
    for block in blocks:
        margins = classes.margins(block, W)
        i, k = np.nonzero(margins < below)
        first = np.argsort(margins[i, k], kind="stable")[:wanted]
        i, k = i[first], k[first]
        values = np.concatenate([values, margins[i, k]])
        found = np.concatenate([found, _functions(classes, survey, block, i, k)])
        least = np.argsort(values, kind="stable")[:wanted]
        found, values = found[least], values[least]
    return values, found


def _functions(
    classes: Classes, survey: Survey, block: RowBlock, i: np.ndarray, k: np.ndarray
) -> np.ndarray:
    """Return the margins of rows i relative to classes k as linear functions of V."""
    rows = matrix_of(block.X)[i]
    Z = np.asarray(rows.toarray() if scipy.sparse.issparse(rows) else rows, float)
    if isinstance(block.X, WithIntercept):
        Z = np.concatenate([Z, np.ones((len(Z), 1))], 1)
    Z = (Z - survey.centre) / survey.scale
    contrasts = classes.contrasts[block.classes[i]] - classes.contrasts[k]
    return (Z[:, :, None] * contrasts[:, None, :]).reshape(len(Z), classes.lower.size)


def _proved(classes: Classes, survey: Survey, V: np.ndarray) -> np.ndarray | None:
    """Return V made orthogonal to the rows that it does not move, if it separates then; else None.

    A linear program is solved to a tolerance, by which nearly separated classes may pass.
    """
    first = _size(V)
    for _ in range(MOST_ROUNDS):
        near = list(classes.map(_rows_near_zero, survey, V))
        if any(rows is None for rows in near):
            return None
        if not any(rows.some_margin for rows in near):
            return None
        R = np.asarray(np.linalg.qr(np.concatenate([rows.R for rows in near]), mode="r"))
        _, s, Vt = np.linalg.svd(R, full_matrices=True)
        null = Vt[int(np.sum(s > SINGULAR * np.max(s, initial=0.0))) :]
        projected = (null.T @ (null @ V.ravel())).reshape(V.shape)
        if _size(projected) <= NEAR_ZERO * first:
            return None
        # after a projection that changes nothing, rows are orthogonal or have a positive margin
        if _size(projected - V) <= SINGULAR * _size(V):
            return projected if classes.allow(_without_rounding(projected)) else None
        V = projected
    return None


class _NearZero(NamedTuple):
    """R of the QR decomposition of the rows that V does not move, and whether it moves others."""

    R: np.ndarray
    some_margin: bool


def _rows_near_zero(
    classes: Classes, blocks: Iterable[RowBlock], survey: Survey, V: np.ndarray
) -> _NearZero | None:
    """Return the rows of a part that V does not move; None if a margin is negative."""
    R, W, largest = np.zeros((0, V.size)), survey.unscaled(V), 0.0
    for block in blocks:
        margins = classes.margins(block, W)
        if np.min(margins) < -NEAR_ZERO * _size(V):
            return None
        largest = max(largest, float(np.max(margins, where=np.isfinite(margins), initial=0.0)))
        i, k = np.nonzero(margins <= NEAR_ZERO * _size(V))
        step = max(1, BLOCK_NUMBERS // V.size)
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            near = _functions(classes, survey, block, i[part], k[part])
            R = np.asarray(np.linalg.qr(np.concatenate([R, near]), mode="r"))
    return _NearZero(R, largest > NEAR_ZERO * _size(V))


def _without_rounding(V: np.ndarray) -> np.ndarray:
    """Return V with 0 for entries that are rounding errors."""
    return np.where(np.abs(V) > NEAR_ZERO * _size(V), V, 0.0)


def _described(classes: Classes, survey: Survey, V: np.ndarray) -> Separation:
    """Return the separation along V, with the pairs of classes that it separates."""
    W = survey.unscaled(V)
    pairs = np.any(list(classes.map(_pairs, W, NEAR_ZERO * _size(V))), 0)
    np.fill_diagonal(pairs, False)
    shares = np.abs(_without_rounding(V)).max(1)
    if classes.has_intercept:
        shares = shares[:-1]
    shares = shares / np.max(shares, initial=1e-300)
    return Separation(W, shares, survey.is_complete, pairs)


def _pairs(classes: Classes, blocks: Iterable[RowBlock], W: np.ndarray, above: float) -> np.ndarray:
    """Return which classes a part has rows of that are predicted better relative to which."""
    pairs = np.zeros((len(classes.contrasts), len(classes.contrasts)), bool)
    for block in blocks:
        is_better = classes.margins(block, W) > above
        for k in np.unique(block.classes):
            pairs[k] |= is_better[block.classes == k].any(0)
    return pairs
