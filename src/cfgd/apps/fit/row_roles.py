"""Columns that say something about each row: its weight, its offset and its cluster.

They are no columns of the design matrix. Weights are those of statsmodels' WLS and `var_weights`:
the variance of a row is the dispersion divided by its weight, and a row counts as one observation
however large its weight is. For the logistic, multinomial and Poisson losses, which have no
dispersion to estimate, that is the same as counting a row of weight 2 twice (`freq_weights`).
Rows of weight 0 are left out.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cfgd.apps.fit.columns import Mask
from cfgd.apps.fit.missing_values import DROP
from cfgd.apps.fit.table import Table, to_float64

ClusterCodes: TypeAlias = dict[object, int]  # from the value of the cluster's column to its number


@dataclasses.dataclass(frozen=True)
class RoleValues:
    """What the columns say about the rows of a block; `unused`: missing values and weight 0."""

    weight: np.ndarray | None
    offset: np.ndarray | None
    cluster: np.ndarray | None
    unused: Mask
    is_weight_zero: Mask


@dataclasses.dataclass(frozen=True)
class RowRoles:
    """The names of the columns of weights, offsets and clusters; None where there is none."""

    weights: str | None = None
    offset: str | None = None
    cluster: str | None = None

    @property
    def options(self) -> list[tuple[str, str]]:
        """The options that are given, with their columns."""
        given = dataclasses.asdict(self)
        return [(f"--{role}", name) for role, name in given.items() if name is not None]

    @property
    def names(self) -> list[str]:
        """The columns, each once."""
        return list(dict.fromkeys(name for _, name in self.options))

    def check(self, table: Table, target: str) -> None:
        """Raise a `ValueError` for the target in a role, and for weights that are no numbers."""
        for option, name in self.options:
            if name == target:
                raise ValueError(f"{option}: {name!r} is the target.")
            if option != "--cluster" and table.kind(name) != "number":
                raise ValueError(f"{option}: the column {name!r} must be of numbers, got texts.")

    def check_values(
        self, path: Path, batch: pa.RecordBatch, missing: str, rows_before: int
    ) -> None:
        """Raise a `ValueError` for the first value of a block that cannot be used."""
        for option, name in self.options:
            column = batch.column(name)
            if option == "--cluster":
                faults = {"have no missing value": _is_missing(column)}
            else:
                values = to_float64(column)
                faults = {"be finite": np.isinf(values), "have no missing value": np.isnan(values)}
                if option == "--weights":
                    faults["not be negative"] = values < 0
            for wanted, mask in faults.items():
                allowed = missing == DROP and "missing" in wanted
                if mask.any() and not allowed:
                    first = int(np.argmax(mask))
                    got = "" if "missing" in wanted else f", got {column[first].as_py()}"
                    remedy = ": use --missing drop to leave out such rows" if not got else ""
                    raise ValueError(
                        f"{path}: the column {name!r} of {option} must {wanted}{got} in row "
                        f"{rows_before + first + 1}{remedy}."
                    )

    def add_clusters(self, batch: pa.RecordBatch, codes: ClusterCodes) -> None:
        """Number the clusters of a block that are new."""
        if self.cluster is not None:
            for value in _values_and_indices(batch.column(self.cluster))[0]:
                if value == value:  # NaN is a missing value
                    codes.setdefault(value, len(codes))

    def read(self, batch: pa.RecordBatch, codes: ClusterCodes) -> RoleValues:
        """Return the values of a block; `codes` has the number of every cluster."""
        unused = np.zeros(batch.num_rows, bool)
        is_weight_zero = unused.copy()
        weight = offset = cluster = None
        if self.weights is not None:
            weight = to_float64(batch.column(self.weights))
            is_weight_zero = weight == 0
            unused |= np.isnan(weight) | is_weight_zero
        if self.offset is not None:
            offset = to_float64(batch.column(self.offset))
            unused |= np.isnan(offset)
        if self.cluster is not None:
            unused |= _is_missing(batch.column(self.cluster))
            values, indices = _values_and_indices(batch.column(self.cluster))
            numbers = [codes.get(value, -1) for value in values]
            cluster = np.array([*numbers, -1])[indices]
        return RoleValues(weight, offset, cluster, unused, is_weight_zero)


def _values_and_indices(column: pa.Array) -> tuple[list[object], np.ndarray]:
    """Return the different values of a block, and which of them each row has; -1 is null."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return encoded.dictionary.to_pylist(), pc.fill_null(encoded.indices, -1).to_numpy()


def _is_missing(column: pa.Array) -> Mask:
    """Return the mask of null, NaN and empty texts."""
    values, indices = _values_and_indices(column)
    is_missing = [value in (None, "") or value != value for value in values]
    return np.array([*is_missing, True])[indices]  # the last one is that of null
