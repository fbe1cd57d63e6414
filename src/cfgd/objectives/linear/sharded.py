"""A linear model whose rows are sharded over the processes of a group, on CPUs.

Each process sums over its own rows in NumPy, whose products are the fastest on a CPU, and the
processes add up the sums: for an evaluation one all-reduce of d + 1 numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from cfgd._core.arrays import to_numpy
from cfgd._core.linalg import inner
from cfgd._core.modules import FastModule
from cfgd._core.process_group import ProcessGroup
from cfgd._core.sharding import is_on_cpu, is_sharded
from cfgd._core.types import Data, DType, Matrix, Samples, Scalar, Vector
from cfgd.objectives.base import Traits
from cfgd.objectives.evaluation import Evaluation, Line, slope_along
from cfgd.objectives.linear.covariance import InformationSums
from cfgd.objectives.linear.line import PredictionLine
from cfgd.objectives.linear.model import LinearModel
from cfgd.objectives.linear.multinomial import matrix_of_classes
from cfgd.objectives.linear.one_pass import is_long, one_pass
from cfgd.objectives.linear.samples import count_zero_weight


def sharded_on_host(objective: LinearModel) -> LinearModel | None:
    """Return a sharded linear model in NumPy; None if its loss or its devices need JAX."""
    if objective.loss.needs_jax:
        return None
    if not all(is_on_cpu(leaf) for leaf in jax.tree.leaves(objective) if is_sharded(leaf)):
        return None
    local = jax.tree.map(_local_rows, objective)
    group = ProcessGroup.of(objective)
    total = (lambda part: part) if group.is_single else group.all_reduce_sum
    return ShardedLinearModel(local, total, objective.X.shape[0])


def _local_rows(leaf: Any) -> Any:
    """Return the rows on this process as NumPy arrays; replicated arrays are returned whole."""
    if not is_sharded(leaf) or leaf.is_fully_replicated:
        return to_numpy(leaf)
    rows = sorted(leaf.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    parts = [np.asarray(shard.data) for shard in rows]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


class SummedDesign(FastModule):
    """A design matrix of which this process has some rows; sums over rows are those of all."""

    local: Any  # Dense, perhaps WithIntercept
    total: Callable[[Any], Any]
    rows: int = eqx.field(static=True)  # of all processes

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.local.shape[1]

    @property
    def dtype(self) -> DType:
        return self.local.dtype

    @property
    def is_dense(self) -> bool:
        return self.local.is_dense

    def times(self, v: Data) -> Any:
        return self.local.times(v)

    def back(self, r: Data) -> Any:
        return self.total(self.local.back(r))

    def squares(self, weight: Data) -> Any:
        return self.total(self.local.squares(weight))

    def gram(self, weight: Samples, l2: Data) -> Matrix:
        part = self.local.gram(weight, np.zeros((), weight.dtype))
        return self.total(part) + l2 * np.eye(len(part), dtype=part.dtype)


@dataclasses.dataclass(frozen=True, eq=False)
class SummedLine(PredictionLine):
    """A line of a sharded model: its curvature is summed over the processes."""

    def _loss_curvature(self) -> Scalar:
        return self.objective.total(np.asarray(super()._loss_curvature())[None])[0]


class ShardedLinearModel(LinearModel):
    """A linear model with `SummedDesign` for X: values and evaluations are summed as well.

    Parameters
    ----------
    local
        The model of the rows of this process, with NumPy arrays.
    total
        Adds up an array over the processes.
    rows
        The number of rows of all processes; by default that of `local`.
    """

    total: Callable[[Any], Any]

    def __init__(
        self, local: LinearModel, total: Callable[[Any], Any], rows: int | None = None
    ) -> None:
        for field in dataclasses.fields(local):
            setattr(self, field.name, getattr(local, field.name))
        rows = local.X.shape[0] if rows is None else rows
        self.X, self.total = SummedDesign(local.X, total, rows), total

    @property
    def traits(self) -> Traits:
        return dataclasses.replace(super().traits, label="a LinearModel")  # as the user made it

    def value_of(self, x: Vector, p: Data) -> Scalar:
        part = inner(self.sample_weight, self.loss.value(p, self.y))
        return self.total(np.asarray(part)[None])[0] + self.penalty(x) / 2

    def evaluate(self, x: Vector) -> Evaluation:
        if not is_long(self, self.X.local, x):
            return self.from_predictions(x, self.predictions(x))
        return self._summed(x, *one_pass(self, self.X.local, x))

    def from_predictions(self, x: Vector, p: Data) -> Evaluation:
        slope, _ = self.loss.derivatives(p, self.y)
        part = self.X.local.back(self.weighted(slope)).reshape(-1)
        return self._summed(x, inner(self.sample_weight, self.loss.value(p, self.y)), part, p)

    def _summed(self, x: Vector, value: Scalar, gradient: Vector, p: Data) -> Evaluation:
        """Add up value and gradient over the processes in one sum."""
        sums = self.total(np.append(gradient, value))
        return Evaluation(x, sums[-1] + self.penalty(x) / 2, sums[:-1] + self.l2 * x, p)

    def line(self, evaluation: Evaluation, d: Vector, slope: Scalar | None = None) -> Line:
        product = self.X.times(self.coefficients(d))
        return SummedLine(self, evaluation, d, slope_along(evaluation, d, slope), product)

    def _matrix_of_classes(self, evaluation: Evaluation) -> Matrix:
        part = matrix_of_classes(self.X.local, self.loss, evaluation.aux, self.sample_weight)
        return self.total(part)

    def information_sums(self, evaluation: Evaluation) -> InformationSums:
        return self._information_sums(self.X.local, evaluation).summed(self.total)

    def _size_of_targets(self) -> Scalar:
        return np.sqrt(self.total(np.asarray(super()._size_of_targets() ** 2)[None])[0])

    def _n_samples(self) -> int:
        local = self.X.local.shape[0] - count_zero_weight(self.sample_weight)
        return round(float(self.total(np.array([local], self.X.dtype))[0]))

    def on_host(self) -> LinearModel:
        return self
