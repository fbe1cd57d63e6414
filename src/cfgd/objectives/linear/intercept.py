"""A design matrix with an implicit column of ones: the intercept is the last coefficient."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cfgd._core.linalg import array_namespace
from cfgd._core.modules import FastModule
from cfgd._core.types import Data, DType, Matrix, Samples, Scalar, Vectors
from cfgd.objectives.linear.design import Derivatives


class WithIntercept(FastModule):
    """A design matrix and a column of ones; the methods are those of `Dense`."""

    inner: Any  # the design matrix itself

    @property
    def shape(self) -> tuple[int, int]:
        m, d = self.inner.shape
        return m, d + 1

    @property
    def dtype(self) -> DType:
        return self.inner.dtype

    @property
    def is_dense(self) -> bool:
        return self.inner.is_dense

    def rows(self, here: slice | np.ndarray) -> WithIntercept:
        return WithIntercept(inner=self.inner.rows(here))

    def times(self, v: Data) -> Any:
        return self.inner.times(v[:-1]) + v[-1]

    def back(self, r: Data) -> Any:
        return _append(self.inner.back(r), r.sum(0))

    def squares(self, weight: Data) -> Any:
        return _append(self.inner.squares(weight), weight.sum(0))

    def gram(self, weight: Samples, l2: Data) -> Matrix:
        xp, d = array_namespace(weight), self.shape[1] - 1
        l2 = xp.broadcast_to(l2, (d + 1,))
        column = self.inner.back(weight)
        above = xp.concatenate([self.inner.gram(weight, l2[:-1]), column[:, None]], 1)
        return xp.concatenate([above, _append(column, weight.sum() + l2[-1])[None]])

    def column_sums(
        self, derivatives: Derivatives, p: Samples, y: Samples, weight: Samples, shift: Vectors
    ) -> tuple[Vectors, Vectors]:
        """Return the same as `Dense.column_sums`; the intercept shifts all predictions equally."""
        sums = self.inner.column_sums(derivatives, p, y, weight, shift[:, :-1])

        def at_node(by: Scalar) -> tuple[Any, Any]:
            slope, curvature = derivatives(p + by, y)
            return weight @ slope, weight @ curvature

        last = jax.lax.map(at_node, shift[:, -1])
        slopes, curvatures = (
            jnp.concatenate([of, more[:, None]], 1) for of, more in zip(sums, last, strict=True)
        )
        return slopes, curvatures

    def in_scipy(self) -> WithIntercept:
        return WithIntercept(self.inner.in_scipy())


def _append(entries: Any, last: Any) -> Any:
    """Append one entry, or one row, for the intercept."""
    return array_namespace(entries).concatenate([entries, last[None]])
