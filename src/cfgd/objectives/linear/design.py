"""The design matrix X, dense or sparse: its products, Gram matrix and sums over columns.

Products take a vector, or a matrix with one column for each class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from jaxtyping import Array, Float, Int

from cfgd._core import checks, sharding
from cfgd._core.arrays import own, standard_promotion
from cfgd._core.linalg import array_namespace, is_numpy
from cfgd._core.modules import FastModule
from cfgd._core.types import Data, DType, Matrix, Rows, Samples, Vector, Vectors
from cfgd.objectives.linear.samples import sum_of_parts

# numbers of one array in a chunk of column sums: 256 KiB of float64, which stays in the cache
CACHE_NUMBERS = 2**15

# numbers in a block of rows of a Gram matrix on the host: 2 MiB of float64
BLOCK_NUMBERS = 2**18

# the same in compiled code, for sharded or long matrices: 1 MiB of float64
SHARD_NUMBERS = 2**17

# a matrix is narrow up to this many columns, and long from this many numbers on (16 MiB).
# For a matrix with 4000 columns, v @ X.T takes XLA 24 times as long as X @ v.
NARROW, LONG = 512, 2**21

# first and second derivative of a loss: (prediction, target) -> (slope, curvature)
Derivatives: TypeAlias = Callable[[Data, Data], tuple[Data, Data]]
Entries: TypeAlias = Float[Array | np.ndarray, " entries"]
Indices: TypeAlias = Int[Array | np.ndarray, " entries"]  # of rows or columns


def design(owner: str, X: Any) -> Dense | Sparse:
    """Return X as a checked design matrix with a copy of X; a scipy.sparse matrix stays sparse."""
    if not hasattr(X, "tocoo"):
        X = checks.matrix(owner, "X", X)
        if sharding.is_sharded(X) and not sharding.is_sharded_by_rows(X):
            checks.fail(owner, "X", "be sharded by rows with a NamedSharding", X.sharding)
        return Dense(X=own(X), shards=sharding.n_shards(X))
    if len(X.shape) != 2 or 0 in X.shape:
        checks.fail(owner, "X", "be a matrix", f"shape {tuple(X.shape)}")
    csr = X.tocsr().copy()
    csr.sum_duplicates()  # sorts the indices, too
    coo = csr.tocoo()
    bad = ~np.isfinite(coo.data)
    if coo.data.dtype.kind != "c" and bad.any():
        first = int(np.argmax(bad))
        place = (int(coo.row[first]), int(coo.col[first]))
        checks.fail(owner, "X", "be finite", f"{coo.data[first]} at index {place}")
    data = checks.array(owner, "X", coo.data, "be a matrix of numbers")
    return Sparse(data, coo.row.astype(np.int32), coo.col.astype(np.int32), tuple(coo.shape))


class OfMatrix(FastModule):
    """A design matrix that holds X as one matrix."""

    X: Any  # (m, d): an array, NumPy until a run starts, or a scipy.sparse matrix

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    @property
    def dtype(self) -> DType:
        return self.X.dtype


class Dense(OfMatrix):
    """A dense design matrix."""

    shards: int = eqx.field(static=True, default=1)  # the number of shards of the rows

    @property
    def is_dense(self) -> bool:
        return True

    def rows(self, here: slice | np.ndarray) -> Dense:
        return Dense(X=self.X[here], shards=1)

    def times(self, v: Data) -> Any:
        """Return X v; for short rows XLA is faster with the vector on the left."""
        return v @ self.X.T if v.ndim == 1 and self.shape[1] <= NARROW else self.X @ v

    def back(self, r: Data) -> Any:
        """Return X'r; compiled code sums a long X by blocks of rows, in half the time."""
        m, d = self.shape
        if r.ndim != 1:
            return self.X.T @ r
        if is_numpy(self.X) or self.shards > 1 or d > NARROW or m * d < LONG:
            return r @ self.X

        def part(new: Samples, rows: Rows, r: Samples) -> Data:
            return (new * r) @ rows

        return sum_of_parts(part, m, SHARD_NUMBERS // d, (self.X, r), axis=0)

    def squares(self, weight: Data) -> Any:
        """Return sum_i weight_i X_ij^2 for every column j."""
        xp = array_namespace(self.X)
        if weight.ndim == 1:
            return xp.einsum("i,ij,ij->j", weight, self.X, self.X)
        return xp.stack([self.squares(of) for of in weight.T], 1)

    def gram(self, weight: Samples, l2: Data) -> Matrix:
        """Return X' diag(weight) X + diag(l2).

        With NumPy it is summed over blocks B of rows as B'B, for which BLAS does half the work.
        """
        m, d = self.shape
        if self.shards > 1 and not is_numpy(self.X):
            return _gram_of_shards(self, weight) + l2 * np.eye(d, dtype=self.dtype)
        if not is_numpy(self.X) or not is_numpy(weight):
            with standard_promotion():
                return (self.X.T * weight) @ self.X + l2 * np.eye(d, dtype=self.dtype)
        root, rows = np.sqrt(weight)[:, None], max(1, BLOCK_NUMBERS // d)
        total = l2 * np.eye(d, dtype=np.result_type(weight, self.X))
        for i in range(0, m, rows):
            part = root[i : i + rows] * self.X[i : i + rows]
            total += part.T @ part
        return total

    def column_sums(
        self, derivatives: Derivatives, p: Samples, y: Samples, weight: Samples, shift: Vectors
    ) -> tuple[Vectors, Vectors]:
        """Return sum_i weight_i l'(p_i + shift_j X_ij) X_ij and sum_i weight_i l''(...) X_ij^2.

        These are the slopes and curvatures of f along each coordinate j, for every row of `shift`,
        of shape (s, d). The sums are over chunks of samples, to bound the memory.
        """
        m, d = self.shape

        def part(
            new: Samples, rows: Rows, p: Samples, y: Samples, weight: Samples
        ) -> tuple[Vectors, Vectors]:
            weight = new * weight

            def at_node(shift: Vector) -> tuple[Data, Data]:
                slope, curvature = derivatives(p[:, None] + rows * shift, y[:, None])
                return weight @ (slope * rows), weight @ (curvature * rows * rows)

            return jax.lax.map(at_node, shift)

        size = max(1, min(m, CACHE_NUMBERS // d))
        return sum_of_parts(part, m, size, (self.X, p, y, weight), self.shards, axis=0)


@jax.jit
def _gram_of_shards(dense: Dense, weight: Samples) -> Matrix:
    """Return X' diag(weight) X of a sharded X by blocks of rows, without a copy of X."""
    m, d = dense.shape

    def part(new: Samples, rows: Rows, weight: Samples) -> Matrix:
        return (rows * (new * weight)[:, None]).T @ rows

    size = max(1, min(m, SHARD_NUMBERS // d))
    return sum_of_parts(part, m, size, (dense.X, weight), dense.shards, axis=0)


# the mode of indexing: indices come from a checked matrix, so XLA need not check them
IN_BOUNDS = "promise_in_bounds"


class Sparse(FastModule):
    """A sparse design matrix in coordinate format, with entries in row order."""

    data: Entries
    row: Indices
    column: Indices
    shape: tuple[int, int] = eqx.field(static=True)

    @property
    def dtype(self) -> DType:
        return self.data.dtype

    @property
    def is_dense(self) -> bool:
        return False

    def times(self, v: Data) -> Any:
        entries = _broadcastable(self.data, v) * _take(v, self.column)
        return jax.ops.segment_sum(
            entries, self.row, self.shape[0], indices_are_sorted=True, mode=IN_BOUNDS
        )

    def back(self, r: Data) -> Any:
        return self._by_column(_broadcastable(self.data, r) * _take(r, self.row))

    def squares(self, weight: Data) -> Any:
        return self._by_column(_broadcastable(self.data**2, weight) * weight[self.row])

    def column_sums(
        self, derivatives: Derivatives, p: Samples, y: Samples, weight: Samples, shift: Vectors
    ) -> tuple[Vectors, Vectors]:
        """Return the same as `Dense.column_sums`, from the stored entries."""
        p, y, by = p[self.row], y[self.row], weight[self.row] * self.data

        def at_node(shift: Vector) -> tuple[Vector, Vector]:
            slope, curvature = derivatives(p + self.data * shift[self.column], y)
            return self._by_column(slope * by), self._by_column(curvature * by * self.data)

        return jax.lax.map(at_node, shift)

    def in_scipy(self) -> InScipy:
        """Return the same matrix with the products of SciPy."""
        entries = (np.asarray(each) for each in (self.data, self.row, self.column))
        data, row, column = entries
        return InScipy(scipy.sparse.csr_array((data, (row, column)), self.shape))

    def _by_column(self, entries: Data) -> Any:
        return jax.ops.segment_sum(entries, self.column, self.shape[1], mode=IN_BOUNDS)


class InScipy(OfMatrix):
    """A sparse design matrix with the products of SciPy, for a run on the host."""

    @property
    def is_dense(self) -> bool:
        return False

    def rows(self, here: slice | np.ndarray) -> InScipy:
        return InScipy(X=self.X[here])

    def times(self, v: Data) -> Any:
        return self.X @ v

    def back(self, r: Data) -> Any:
        return r @ self.X if r.ndim == 1 else self.X.T @ r

    def squares(self, weight: Data) -> Any:
        squares = self.X.power(2)
        return weight @ squares if weight.ndim == 1 else squares.T @ weight

    def gram(self, weight: Samples, l2: Data) -> Matrix:
        """Return the same as `Dense.gram`; the result is dense, so X must have few columns."""
        total = (self.X.T @ self.X.multiply(weight[:, None])).toarray()
        total.flat[:: self.shape[1] + 1] += l2
        return total


def _take(v: Data, indices: Indices) -> Data:
    return jnp.asarray(v).at[indices].get(mode=IN_BOUNDS)


def _broadcastable(entries: Entries, v: Data) -> Data:
    """Return the entries in a shape that broadcasts with a vector, or with a matrix of columns."""
    return entries if v.ndim == 1 else entries[:, None]
