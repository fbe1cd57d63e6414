"""A linear model of rows that do not fit into memory: an evaluation is one pass over them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from cfgd._core import checks
from cfgd._core.linalg import is_numpy
from cfgd._core.process_group import ProcessGroup
from cfgd._core.types import Matrix, UserInput, Vector
from cfgd.objectives.base import DerivativeCost, Traits
from cfgd.objectives.curvature import Curvature
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.external import External
from cfgd.objectives.information import Information
from cfgd.objectives.linear.block_engine import all_processes, engine_of
from cfgd.objectives.linear.block_source import OWNER, Block
from cfgd.objectives.linear.formulas import MULTINOMIAL
from cfgd.objectives.linear.losses import LOSSES, name_of_loss
from cfgd.objectives.linear.multinomial import fix_gauge
from cfgd.objectives.linear.samples import penalties
from cfgd.objectives.linear.stream import Stream

# Bytes that an evaluation may take by default.
MEMORY = 256e6


class Blocks(External):
    r"""f(w) = sum_i s_i loss((Xw)_i + offset_i, y_i) + sum_j l2_j w_j^2 / 2 of streamed rows.

    The `source` of the rows can be:

    - a matrix, a np.memmap or a scipy.sparse matrix, with the targets in `y`;
    - a list of .npy files, with a list of .npy files as `y`;
    - a list of .npz files that hold arrays X and y;
    - a list of .parquet files, in which `target` names the column of the targets;
    - a Dask array or data frame;
    - a function that returns an iterator of pairs X and y and is called for every pass, or a list
      of such functions, which threads or the workers of a cluster share.

    `sample_weight` and `offset` are given in the form of `y`: as arrays, lists of .npy files,
    arrays of these names in .npz files, or names of columns. A function returns them as third and
    fourth entry, or None. The losses with a name, `l2` and `intercept` are those of `LinearModel`;
    value and minimiser agree with those of a `LinearModel` of the same rows up to rounding. The
    rows are not copied: they must not change while the objective is used.

    An evaluation takes one pass over the rows, in float64, in which the next block is read during
    the computation with the last one. It needs at most `memory` bytes, for any number of rows (with
    a function, as much as three of its blocks). If the Hessian has at most 4,096 rows and fits into
    half of `memory` with 64 bytes for each entry, it is formed in the same pass, and `Auto` takes
    Levenberg-Marquardt steps: a handful of passes in all. Otherwise `Auto` takes L-BFGS: with 2,000
    columns that took 70 to 570 passes. `Auto("levenberg_marquardt")`, whose steps then use products
    with the Hessian, took 120 to 1,000 passes; on columns of different scales it took fewer (48
    instead of 126), but scaling the columns helps more. One further pass checks the rows.
    `Solution.evaluations` counts passes.

    Parameters
    ----------
    source : matrix, list of files, DataFrame, callable or list of callables
        The rows: a matrix, a memory map or scipy.sparse matrix; a list of .npy, .npz or .parquet
        files; a Dask array or data frame; or functions that return iterators of blocks.
    y : array or list of files, optional
        The targets, where they do not stand in the source.
    loss : str, default "logistic"
        One of the losses of `LinearModel` that have a name.
    l2 : float or array, default 0.0
        The penalty, as in `LinearModel`.
    sample_weight : array, list of files or str, optional
        A weight of at least 0 for each row.
    intercept : bool, default False
        Whether the last coefficient is an intercept without a penalty.
    offset : array, list of files or str, optional
        What is added to the predictions.
    target : str, optional
        The column of the targets.
    memory : float, default 256000000.0
        The bytes that the blocks and the Hessian may take.
    threads : int, default 1
        The number of threads that compute with blocks of rows.
    client : dask.distributed.Client, optional
        A client whose workers make the passes over Dask collections or files. For Dask collections
        the default is the current client.
    distributed : bool, default False
        Whether every process has a part of the rows (docs/guides/processes.md).

    Raises
    ------
    ValueError
        If `source` is of another kind, its files cannot be read, or its blocks differ in their
        columns; `y`, `target`, `sample_weight` or `offset` does not belong to such a source or does
        not fit its rows; `memory` does not suffice for 64 rows; `client` is given with `threads` or
        `distributed`; or as in `LinearModel`.

    Examples
    --------
    >>> import cfgd, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(1000, 3))
    >>> f = cfgd.Blocks(X, X @ [1.0, -2.0, 0.5] > 0.3 * random.normal(size=1000), l2=1.0)
    >>> solution = cfgd.minimize(f, np.zeros(3))
    >>> print(solution.status.name, f.passes < 20, solution.x.round(1))
    converged True [ 3.3 -6.5  1.6]
    """

    stream: Stream
    process_group: ProcessGroup | None = eqx.field(static=True)

    _internal: ClassVar[tuple[str, ...]] = ("process_group", "stream")

    def __init__(
        self,
        source: UserInput,
        y: UserInput = None,
        loss: str = "logistic",
        l2: UserInput = 0.0,
        sample_weight: UserInput = None,
        *,
        intercept: bool = False,
        offset: UserInput = None,
        target: str | None = None,
        memory: float = MEMORY,
        threads: int = 1,
        client: Any = None,
        distributed: bool = False,
    ) -> None:
        checks.choice(OWNER, "loss", loss, (*LOSSES, MULTINOMIAL))
        budget = checks.one_positive(OWNER, "memory", memory)
        intercept = checks.flag(OWNER, "intercept", intercept)
        is_shared = checks.flag(OWNER, "distributed", distributed)
        self.process_group = all_processes() if is_shared else None
        engine = engine_of(
            source,
            Block(None, y, sample_weight, offset),
            target,
            budget,
            threads=checks.integer(OWNER, "threads", threads),
            client=client,
            group=self.process_group,
        )
        stream = Stream(engine, LOSSES.get(loss), intercept, budget)
        shape = stream.columns, *stream.model.shape[1:]
        stream.l2 = penalties(OWNER, l2, np.dtype(float), shape, intercept)
        self.stream = stream
        hessian = stream.hessian if stream.model.has_matrix else None
        super().__init__(stream.value_and_gradient, hessian=hessian)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stream.model.shape

    def __repr__(self) -> str:
        loss = name_of_loss(self.stream.model.loss)
        return f"<Blocks: {self.rows} rows, {self.stream.columns} columns, loss {loss!r}>"

    @property
    def passes(self) -> int:
        """The number of passes over all rows so far."""
        return self.stream.passes

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stream.survey.rows

    @property
    def traits(self) -> Traits:
        """Costs are passes over the rows; results that an evaluation also gives cost nothing."""
        has_matrix = self.stream.model.has_matrix
        return dataclasses.replace(
            super().traits,
            curvature="Hessian",
            size=(self.rows, self.stream.model.dimension),
            prefers_gradients=not has_matrix,
            diagonal_cost=DerivativeCost(),
            product_cost=0.0 if has_matrix else 1.0,
            value_cost=1.0,
        )

    def evaluate(self, x: Vector) -> Evaluation:
        """Return value and gradient; without a Hessian also its diagonal, from the same pass."""
        at = super().evaluate(x)
        if self.stream.model.has_matrix or not is_numpy(x):
            return at
        return at._replace(aux=self.stream.diagonal(np.asarray(x)))

    def hessian_times(self, evaluation: Evaluation, v: Vector) -> Vector:
        return self._call_from_jax(self.stream.hessian_times, v.shape, evaluation.x, v)

    def curvature(self, evaluation: Evaluation) -> Curvature:
        stream, model, x = self.stream, self.stream.model, evaluation.x

        def matrix() -> Matrix:
            H: Any = stream.hessian(np.asarray(x))
            if model.loss.has_classes:
                H = fix_gauge(H, stream.l2, self.shape[1])
            return H

        def information(H: Callable[[], Matrix]) -> Information | None:
            if np.any(stream.l2 > 0):
                return None  # penalised estimates are biased: no covariance
            if model.loss.has_classes:
                plain: Any = stream.hessian(np.asarray(x))
                return Information.of(plain, 1.0, classes=self.shape[1])
            dof = stream.survey.samples - model.dimension
            factor = model.loss.dispersion(float(evaluation.value), dof)
            if model.loss.has_own_information or factor is None:
                return None  # the loss would need another pass
            return Information.of(H(), factor, dof if model.loss.is_quadratic else np.inf)

        def diagonal() -> Vector:
            if evaluation.aux is not None:
                return evaluation.aux
            return self._call_from_jax(stream.diagonal, x.shape, x)

        return Curvature(
            times=lambda v: self.hessian_times(evaluation, v),
            diagonal=diagonal,
            shape=(self.rows, model.dimension) if model.has_matrix else None,
            matrix=matrix if model.has_matrix else None,
            is_exact=model.loss.is_convex,
            product_cost=self.traits.product_cost,
            rows_are_data=True,
            information=information,
        )
