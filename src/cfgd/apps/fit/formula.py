"""The columns of the design matrix by a formula: factors, what they need to know, and products.

`cfgd fit --formula "y ~ a*b + poly(c, 2)"` is read by formulaic (`read_formula`), and evaluated by
this module, from the encoded columns of the table. Numbers that a factor takes from the training
rows (means, levels, the recurrence of orthogonal polynomials) are its state. They are collected
once and kept in the model file, so that held-out rows and predictions get the same columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from cfgd.apps.fit.columns import Column, Mask, TextColumn
from cfgd.apps.fit.expression import LARGEST, Expression, States


@dataclasses.dataclass(frozen=True)
class Product:
    """A column of the design matrix: the product of columns of factors.

    `parts` has the index of each factor and of the column of it.
    """

    name: str
    parts: tuple[tuple[int, int], ...]


class BaseColumns:
    """The encoded columns of the table, by name."""

    def __init__(self, columns: Sequence[Column], X: np.ndarray) -> None:
        self.columns = {column.name: column for column in columns}
        self.X, self.places = X, {}
        start = 0
        for column in columns:
            self.places[column.name] = slice(start, start + len(column.terms))
            start += len(column.terms)

    def matrix(self, name: str) -> np.ndarray:
        """Return all encoded columns of a column."""
        return self.X[:, self.places[name]]

    def numbers(self, name: str) -> np.ndarray:
        """Return a column of numbers; raise a `ValueError` for other columns."""
        column = self.columns[name]
        if isinstance(column, TextColumn) or len(column.terms) != 1:
            raise ValueError(f"the column {name!r} is not one of numbers")
        return self.matrix(name)[:, 0]


@dataclasses.dataclass(frozen=True)
class Formula:
    """A formula with the states of its factors, from encoded columns to the design matrix."""

    text: str
    factors: tuple[Expression, ...]
    states: States
    products: tuple[Product, ...]

    @property
    def columns(self) -> list[str]:
        """The columns of the table that the formula uses, each once."""
        return list(dict.fromkeys(name for of in self.factors for name in of.columns))

    @property
    def terms(self) -> list[str]:
        """The names of the columns of the design matrix."""
        return [product.name for product in self.products]

    def __call__(self, columns: Sequence[Column], X: np.ndarray) -> tuple[np.ndarray, Mask]:
        """Return the design matrix, and which rows have a level that no training row has."""
        base = BaseColumns(columns, X)
        matrices = [factor_matrix(factor, base, self.states) for factor in self.factors]
        design = np.ones((len(X), len(self.products)))
        for k, product in enumerate(self.products):
            for factor, column in product.parts:
                design[:, k] *= matrices[factor][:, column]
        unknown = np.asarray(np.isnan(design).any(1))
        for product, values in zip(self.products, design.T, strict=True):
            if np.any(np.abs(values[~unknown]) > LARGEST):
                raise ValueError(f"The formula: {product.name!r} is too large for sums of squares.")
        return design, unknown


def needs_state(call: Expression, columns: Sequence[Column]) -> bool:
    """Return whether a call of `Expression.stateful_calls` needs numbers of the training rows."""
    if call.function == "C":
        return not is_categorical(call.argument, columns)
    return call.function != "poly" or not call.is_raw


def is_categorical(factor: Expression, columns: Sequence[Column]) -> bool:
    """Return whether a factor has levels."""
    texts = [column.name for column in columns if isinstance(column, TextColumn)]
    return factor.function == "C" or factor.column in texts


def column_names(factor: Expression, columns: Sequence[Column], states: States) -> list[str]:
    """Return the names of the columns of a factor; those of a factor with levels have the base."""
    if is_categorical(factor, columns):
        name = factor.column if factor.column is not None else factor.text
        return [f"{name} = {level}" for level in _levels(factor, columns, states)]
    if factor.function == "poly":
        return [f"{factor.text}[{k + 1}]" for k in range(factor.degree)]
    if factor.column is not None:
        return next(column.terms for column in columns if column.name == factor.column)
    return [factor.text]


def _levels(factor: Expression, columns: Sequence[Column], states: States) -> list[str]:
    """Return the levels of a factor, the reference level first."""
    name = factor.column if factor.column is not None else factor.argument.column
    column = next(column for column in columns if column.name == name)
    if not isinstance(column, TextColumn):
        return [f"{level:g}" for level in states[factor.text]["levels"]]
    levels = [column.base, *column.levels]
    reference = factor.reference if factor.function == "C" else None
    if reference is not None and reference not in levels:
        raise ValueError(f"the reference {reference!r} of {factor.text!r} is no level in the data")
    return sorted(
        levels, key=lambda level: level != (column.base if reference is None else reference)
    )


def factor_matrix(factor: Expression, base: BaseColumns, states: States) -> np.ndarray:
    """Return the columns of a factor; rows of an unknown level are NaN.

    Raises
    ------
    ValueError
        If a number is not finite, such as the logarithm of 0.
    """
    if is_categorical(factor, list(base.columns.values())):
        return _indicators(factor, base, states)
    if factor.column is not None:
        return base.matrix(factor.column)
    if factor.function != "poly":
        values = factor.evaluate(base.numbers, states)
        values = np.broadcast_to(values, len(base.X))[:, None]
    else:
        x = np.broadcast_to(factor.argument.evaluate(base.numbers, states), len(base.X))
        values = _powers(x, factor.degree) if factor.is_raw else orthogonal(x, states[factor.text])
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values).all(1)))
        at = ", ".join(f"{name} = {base.numbers(name)[row]:g}" for name in factor.columns)
        raise ValueError(f"The formula: {factor.text!r} is no finite number where {at}.")
    return values


def _indicators(factor: Expression, base: BaseColumns, states: States) -> np.ndarray:
    """Return a column of zeros and ones for each level, the reference level first."""
    name = factor.column if factor.column is not None else factor.argument.column
    assert name is not None
    column = base.columns[name]
    if isinstance(column, TextColumn):
        others = base.matrix(name)
        given = np.column_stack([1 - others.sum(1), others])
        levels = [column.base, *column.levels]
        order = [
            levels.index(level) for level in _levels(factor, list(base.columns.values()), states)
        ]
        return given[:, order]
    matrix = (base.numbers(name)[:, None] == np.array(states[factor.text]["levels"])).astype(float)
    matrix[matrix.sum(1) == 0] = np.nan
    return matrix


def _powers(x: np.ndarray, degree: int) -> np.ndarray:
    with np.errstate(over="ignore"):
        return x[:, None] ** np.arange(1.0, degree + 1)


def orthogonal(x: np.ndarray, state: Any) -> np.ndarray:
    """Return polynomials of degrees 1, 2, ... that are orthonormal over the training rows.

    They follow the three-term recurrence of monic orthogonal polynomials,
    p_{k+1} = (x - a_k) p_k - (n_k / n_{k-1}) p_{k-1}, where n_k is the sum of squares of p_k and
    a_k the mean of x weighted by these squares; each is divided by the root of n_k (formulaic, R).
    """
    monic = monic_polynomials(x, state["alpha"], state["norm"])
    return np.column_stack(monic[1:]) / np.sqrt(state["norm"][1:])


def monic_polynomials(x: np.ndarray, alpha: Sequence[float], norm: Sequence[float]) -> list[Any]:
    """Return p_0, p_1, ..., one more than there are numbers `alpha`."""
    polynomials = [np.ones(len(x))]
    for k, a in enumerate(alpha):
        following = (x - a) * polynomials[k]
        if k > 0:
            following = following - norm[k] / norm[k - 1] * polynomials[k - 1]
        polynomials.append(following)
    return polynomials
