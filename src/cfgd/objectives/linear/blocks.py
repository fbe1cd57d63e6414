"""A linear model of rows that do not fit into memory: they are streamed, one pass a look."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfgd._core import checks
from cfgd._core.types import Vector
from cfgd.objectives.curvature import Normal, normal_of
from cfgd.objectives.evaluation import Evaluation
from cfgd.objectives.external import External, asked
from cfgd.objectives.linear.block_source import OWNER, Block, source_of
from cfgd.objectives.linear.losses import LOSSES, MULTINOMIAL
from cfgd.objectives.linear.multinomial import fix_gauge
from cfgd.objectives.linear.samples import penalties
from cfgd.objectives.linear.stream import Stream

MEMORY = 256e6


class Blocks(External):
    r"""f(w) = sum_i s_i loss((Xw)_i + offset_i, y_i) + sum_j l2_j w_j^2 / 2 of streamed rows.

    `source` is a matrix, np.memmap and scipy.sparse among them, with `y`; a list of files, .npy
    with a list of others as `y`, .npz with arrays X and y, or .parquet, in which `target` names a
    column; or a function that returns an iterator of X and y, which is called for every pass. What
    goes for `y` goes for `sample_weight` and `offset`: arrays, lists of .npy files, arrays of these
    names in .npz, names of columns, or the third and fourth that a function gives, None for none.
    The losses that have a name, `l2` and `intercept` are those of `LinearModel`; value and
    minimiser are its own on the same rows, to rounding.

    A look takes one pass, in which the next block is read while one is computed with in float64,
    and all of it at most `memory` bytes, however many rows there are (of a function, as much as
    three of its blocks). Where half of `memory` holds the Hessian, 64 bytes for each of its numbers
    and at most 4,096 columns, times classes, it is made in the same pass, and `Auto` takes Tikhonov
    steps: a handful of passes in all. Beyond, `Auto` goes by gradients: with 2,000 columns that
    took 70 to 570 passes, and Tikhonov steps by products, which `Auto("tikhonov")` insists on, 120
    to 1,000, but fewer (48 beside 126) where columns were of different scales: scale them. The
    first pass is that of the checks. `Solution.evaluations` are passes.

    >>> import cfgd, numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(1000, 3))
    >>> f = cfgd.Blocks(X, X @ [1.0, -2.0, 0.5] > 0.3 * random.normal(size=1000), l2=1.0)
    >>> solution = cfgd.minimize(f, np.zeros(3))
    >>> print(solution.status.name, f.passes < 20, solution.x.round(1))
    converged True [ 3.3 -6.5  1.6]
    """

    stream: Stream

    def __init__(
        self,
        source: Any,
        y: Any = None,
        loss: str = "logistic",
        l2: Any = 0.0,
        sample_weight: Any = None,
        *,
        intercept: bool = False,
        offset: Any = None,
        target: str | None = None,
        memory: float = MEMORY,
    ) -> None:
        if loss not in (*LOSSES, MULTINOMIAL):
            known = ", ".join((*LOSSES, MULTINOMIAL))
            checks.fail(OWNER, "loss", f"be one of {known}", repr(loss))
        budget = float(checks.positive(OWNER, "memory", memory))
        rows = source_of(source, Block(None, y, sample_weight, offset), target, budget)
        intercept = checks.flag(OWNER, "intercept", intercept)
        stream = Stream(rows, LOSSES.get(loss), intercept, budget)
        shape = stream.columns, *stream.shape[1:]
        stream.l2 = penalties(OWNER, l2, np.dtype(float), shape, intercept)
        self.stream = stream
        hessian = stream.hessian if stream.has_matrix else None
        super().__init__(stream.value_and_gradient, hessian=hessian)

    @property
    def dimension(self) -> int:
        return self.stream.dimension

    @property
    def shape(self) -> tuple[int, ...]:
        return self.stream.shape

    @property
    def passes(self) -> int:
        """Over all rows so far."""
        return self.stream.passes

    @property
    def rows(self) -> int:
        return self.stream.rows

    def spent(self) -> float:
        return float(self.stream.passes)

    # ------------------------------------------------------------------ curvature

    @property
    def has_hessian(self) -> bool:
        return True

    @property
    def has_model(self) -> bool:
        return True

    @property
    def by_gradients(self) -> bool:
        return not self.stream.has_matrix

    @property
    def model_is_exact(self) -> bool:
        """Of convex losses, always; but a matrix tells more of the end than a search costs."""
        return not self.stream.has_matrix

    def model_shape(self, point: Evaluation) -> tuple[int, ...] | None:
        return (self.rows, self.dimension) if self.stream.has_matrix else None

    def affords(self, shape: tuple[int, ...]) -> bool:
        return True

    def normal(self, point: Evaluation, old: Vector) -> Normal:
        if not self.stream.loss.has_classes:
            return External.normal(self, point, old)  # of any object, as a run on the host has it
        H: Any = self.hessian_on_host(np.asarray(point.x))
        return normal_of(fix_gauge(H, self.stream.l2, self.shape[1]), old)

    def hessian_times(self, point: Evaluation, v: Vector) -> Vector:
        def times(x: np.ndarray, v: np.ndarray) -> np.ndarray:
            return self.factor * self.stream.hessian_times(x, v)

        return asked(times, v.shape, point.x, v)

    def diagonal_at(self, point: Evaluation) -> Vector:
        return asked(lambda x: self.factor * self.stream.diagonal(x), point.x.shape, point.x)

    def dispersion(self, value: float, freedom: int) -> float | None:
        if np.any(self.stream.l2 > 0):
            return None  # what is shrunk is not spread around the truth
        found = self.stream.loss.dispersion(value / self.factor, freedom)
        return None if found is None else self.factor * found

    # what comes with the pass of a point costs none
    def model_cost(self, shape: tuple[int, ...]) -> float:
        return 0.0

    def diagonal_cost(self, d: int) -> float:
        return 0.0

    @property
    def product_cost(self) -> float:
        return 0.0 if self.stream.has_matrix else 1.0
