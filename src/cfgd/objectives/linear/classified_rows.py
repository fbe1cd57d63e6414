"""The rows of a classifier, and statistics of its classes from one pass over them."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from cfgd.objectives.linear.intercept import WithIntercept

# Numbers in a block of rows that are treated at a time: 2 MiB of float64.
BLOCK_NUMBERS = 2**18
# If the class of a row is at least this many times as probable as another one, the classes may be
# separated. A run that follows a separating direction to the default tolerance exceeds this by far.
CERTAIN = 1e3


class RowBlock(NamedTuple):
    """Rows of positive weight: a design matrix on the host, and the class of each row."""

    X: Any
    classes: np.ndarray


@dataclasses.dataclass(frozen=True)
class Classes:
    """The rows of a classifier and the directions in which its coefficients may go.

    Parameters
    ----------
    passes
        `map` of an engine.
    read
        Returns the rows of positive weight in blocks of the engine.
    contrasts : array of shape (classes, predictors)
        The score of class k is the k-th row times the predictors: the unit matrix for a multinomial
        model, -1/2 and 1/2 for a logistic one.
    has_intercept
        Whether the last column is an intercept.
    lower, upper : array of shape (columns, predictors)
        -1 or 0, and 0 or 1: a coefficient with a penalty or a bound cannot grow for ever.
    """

    passes: Callable[..., Iterator[Any]]
    read: Callable[[Iterable[Any]], Iterable[RowBlock]]
    contrasts: np.ndarray
    has_intercept: bool
    lower: np.ndarray
    upper: np.ndarray

    def map(self, function: Callable[..., Any], *args: Any) -> Iterator[Any]:
        """Iterate over function(classes, rows, *args) of the blocks of rows of every part."""
        alone = dataclasses.replace(self, passes=_no_passes)
        return self.passes(_apply, alone, function, args)

    def allow(self, W: np.ndarray) -> bool:
        """Return whether the coefficients may go in the direction W for ever."""
        return bool(np.all((W <= 0) | (self.upper > 0)) and np.all((W >= 0) | (self.lower < 0)))

    def margins(self, block: RowBlock, W: np.ndarray) -> np.ndarray:
        """Return how the score of each row's class changes along W relative to every class.

        The column of the own class is infinite.
        """
        scores = np.asarray(block.X.times(W)) @ self.contrasts.T
        own = block.classes[:, None]
        margins = np.take_along_axis(scores, own, 1) - scores
        np.put_along_axis(margins, own, np.inf, 1)
        return margins


def _no_passes(*_: Any) -> Iterator[Any]:
    """Replace `passes` in the classes that a pass itself gets."""
    raise TypeError("A pass cannot begin another one.")


def _apply(blocks: Iterable[Any], classes: Classes, function: Any, args: tuple[Any, ...]) -> Any:
    return function(classes, classes.read(blocks), *args)


@dataclasses.dataclass(frozen=True)
class Survey:
    """Statistics of the classes from one pass over the rows.

    `least` and `most` are the extremes of each column in each class; the columns z = (x - centre) /
    scale have unit deviation.
    """

    least: np.ndarray
    most: np.ndarray
    rows: int
    centre: np.ndarray
    scale: np.ndarray
    is_complete: bool  # the coefficients classify every row correctly, and may grow for ever
    is_suspicious: bool  # the class of some row is nearly certain

    @classmethod
    def of(cls, classes: Classes, W: np.ndarray) -> Survey:
        found = functools.reduce(_SurveySums.and_of, classes.map(_survey, W))
        rows, total, squares = found.rows, found.total, found.squares
        mean = total / max(rows, 1)
        centre = np.zeros(len(W))
        if classes.has_intercept and np.all((classes.lower[-1] < 0) & (classes.upper[-1] > 0)):
            centre[:-1] = mean[:-1]
        variance = squares / max(rows, 1) - 2 * centre * mean + centre**2
        # the variance of a constant column is rounding, and its own size is a better unit
        deviation = np.sqrt(np.where(variance > 1e-14 * mean**2, variance, mean**2))
        scale = np.where(deviation > 0, deviation, 1.0)
        return cls(
            found.least, found.most, rows, centre, scale, found.is_complete, found.is_suspicious
        )

    def scaled(self, W: np.ndarray) -> np.ndarray:
        """Return the coefficients of the columns z, the last of which is the intercept's."""
        V = W * self.scale[:, None]
        V[-1] += self.centre @ W  # 0 where nothing is centred
        return V

    def unscaled(self, V: np.ndarray) -> np.ndarray:
        """Return the coefficients of the columns x for those of z."""
        W = V / self.scale[:, None]
        W[-1] -= self.centre @ W
        return W


@dataclasses.dataclass
class _SurveySums:
    """Statistics of a part of the rows, before centres and scales are known."""

    least: np.ndarray
    most: np.ndarray
    rows: int
    total: np.ndarray
    squares: np.ndarray
    is_complete: bool
    is_suspicious: bool

    def and_of(self, other: _SurveySums) -> _SurveySums:
        """Return the statistics of the rows of both."""
        return _SurveySums(
            np.minimum(self.least, other.least),
            np.maximum(self.most, other.most),
            self.rows + other.rows,
            self.total + other.total,
            self.squares + other.squares,
            self.is_complete and other.is_complete,
            self.is_suspicious or other.is_suspicious,
        )


def _survey(classes: Classes, blocks: Iterable[RowBlock], W: np.ndarray) -> _SurveySums:
    d, n_classes = len(W), len(classes.contrasts)
    least, most = np.full((n_classes, d), np.inf), np.full((n_classes, d), -np.inf)
    rows, total, squares = 0, np.zeros(d), np.zeros(d)
    is_complete, is_suspicious = classes.allow(W), False
    for block in blocks:
        ones = np.ones(len(block.classes))
        rows, total = rows + len(ones), total + block.X.back(ones)
        squares += block.X.squares(ones)
        _add_extremes(block, least, most)
        margins = classes.margins(block, W)
        is_complete = is_complete and bool(np.all(margins > 0))
        is_certain = (margins > math.log(CERTAIN)) & np.isfinite(margins)
        is_suspicious = is_suspicious or bool(is_certain.any())
    return _SurveySums(least, most, rows, total, squares, is_complete, is_suspicious)


def _add_extremes(block: RowBlock, least: np.ndarray, most: np.ndarray) -> None:
    """Update the extremes of each column in each class."""
    X = matrix_of(block.X)
    size = max(1, BLOCK_NUMBERS // X.shape[1])
    for start in range(0, X.shape[0], size):
        rows, classes = X[start : start + size], block.classes[start : start + size]
        for k in np.unique(classes):
            own = rows[classes == k]
            low, high = own.min(0), own.max(0)
            if scipy.sparse.issparse(low):
                low, high = low.toarray(), high.toarray()
            columns = slice(0, X.shape[1])
            least[k, columns] = np.minimum(least[k, columns], np.ravel(low))
            most[k, columns] = np.maximum(most[k, columns], np.ravel(high))
            least[k, X.shape[1] :] = most[k, X.shape[1] :] = 1.0  # the intercept


def matrix_of(X: Any) -> Any:
    """Return the matrix of a design on the host, without the intercept."""
    return X.inner.X if isinstance(X, WithIntercept) else X.X
