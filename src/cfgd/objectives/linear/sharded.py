"""A linear model on CPUs whose rows several processes share: each sums its own in NumPy.

On a CPU NumPy's products are the fastest, a matrix takes half as long as a compiled one. What is
summed over the processes is what a compiled program would sum: for a look one vector of d + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from cfgd._core.arrays import to_numpy
from cfgd._core.either import Plain, Unbound, made
from cfgd._core.linalg import inner
from cfgd._core.process_group import ProcessGroup
from cfgd._core.sharding import any_sharded, is_on_cpu, is_sharded
from cfgd._core.types import Data, DType, Matrix, Samples, Scalar, Vector
from cfgd.objectives.base import Objective
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.linear.model import LinearModel
from cfgd.objectives.linear.one_pass import is_long, one_pass


def host_of(objective: Objective) -> Unbound | None:
    """The objective in NumPy, where that can be had, and each process has its own rows of it."""
    if not any_sharded(objective):
        return objective.in_numpy()
    if not isinstance(objective, LinearModel) or objective.loss.needs_jax:
        return None
    if not all(is_on_cpu(leaf) for leaf in jax.tree.leaves(objective) if is_sharded(leaf)):
        return None
    own = jax.tree.map(_own, objective)
    group = ProcessGroup.of(objective)
    total = (lambda part: part) if group.is_single else group.all_reduce_sum
    return Unbound(made(SharedRows, **vars(own) | {"X": Totals(own.X, total), "total": total}))


def _own(leaf: Any) -> Any:
    """The rows on this process, in their order; what is whole, as NumPy's."""
    if not is_sharded(leaf) or leaf.is_fully_replicated:
        return to_numpy(leaf)
    rows = sorted(leaf.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    parts = [np.asarray(shard.data) for shard in rows]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class Totals(Plain, eqx.Module):
    """A design matrix of which this process has some rows: sums over rows are those of all."""

    inner: Any
    total: Callable[[Any], Any]

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape

    @property
    def dtype(self) -> DType:
        return self.inner.dtype

    @property
    def is_dense(self) -> bool:
        return self.inner.is_dense

    def times(self, v: Data) -> Any:
        return self.inner.times(v)

    def back(self, r: Data) -> Any:
        return self.total(self.inner.back(r))

    def squares(self, weight: Data) -> Any:
        return self.total(self.inner.squares(weight))

    def gram(self, weight: Samples, l2: Data) -> Matrix:
        own = self.inner.gram(weight, np.zeros((), weight.dtype))
        return self.total(own) + l2 * np.eye(len(own), dtype=own.dtype)


class SharedRows(LinearModel):
    """Its fields are of NumPy, and X is `Totals`: only what a value is has to be said."""

    total: Callable[[Any], Any]

    def value_of(self, x: Vector, p: Data) -> Scalar:
        own = inner(self.sample_weight, self.loss.value(p, self.y))
        return self.total(np.asarray(own)[None])[0] + self.penalty(x) / 2

    def evaluate(self, x: Vector) -> Evaluation:
        if not is_long(self, self.X.inner, x):
            return self.point(x, self.predictions(x))
        return self._summed(x, *one_pass(self, self.X.inner, x))

    def point(self, x: Vector, p: Data) -> Evaluation:
        slope, _ = self.loss.derivatives(p, self.y)
        own = self.X.inner.back(self.weighted(slope)).reshape(-1)
        return self._summed(x, inner(self.sample_weight, self.loss.value(p, self.y)), own, p)

    def _summed(self, x: Vector, value: Scalar, gradient: Vector, p: Data) -> Evaluation:
        """Value and gradient in one sum."""
        sums = self.total(np.append(gradient, value))
        gradient = sums[:-1] + self.l2 * x
        value = sums[-1] + self.penalty(x) / 2
        return made(Evaluation, x=x, value=value, gradient=gradient, aux=p)
