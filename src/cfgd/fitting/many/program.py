"""The compiled program of many fits: a block of rows in, a table with one row for each fit out."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import PyTree

from cfgd._core.box import Box
from cfgd._core.types import (
    Column,
    Count,
    Matrix,
    Number,
    Numbers,
    PointFlags,
    Rows,
    Scalar,
    Vector,
)
from cfgd.fitting.model import Measured, WeightedResiduals
from cfgd.methods.compiled import batch, levenberg_marquardt as lm
from cfgd.methods.compiled.linear_systems import determined_inverse
from cfgd.methods.compiled.problem import Problem, least_squares
from cfgd.status import Status

NO_DATA = Status.no_data.code


@dataclasses.dataclass(frozen=True)
class Form:
    """What a program is compiled for, beside the shapes of its arguments.

    Attributes
    ----------
    names : tuple of str
        All parameters, in the order of a row of the table.
    size : int
        How many of them are free.
    x_treedef : object
        The structure of x, whose leaves are arrays.
    n_slots : int
        How many fits take steps at a time.
    is_bounded, absolute_sigma : bool
        Whether there are bounds, and whether `sigma` holds the true standard deviations.
    """

    names: tuple[str, ...]
    size: int
    x_treedef: Any
    n_slots: int
    is_bounded: bool
    absolute_sigma: bool

    @property
    def width(self) -> int:
        """The length of a row of the table: values, errors and four numbers of the fit."""
        return 2 * len(self.names) + len(SUMMARY)


# what a row of the table ends with
SUMMARY = ("chi_square", "n_points", "status", "iterations")


class Goal(NamedTuple):
    """Tolerance and largest number of iterations of a fit."""

    tolerance: Number
    max_iterations: Count | int


def x_key(i: int) -> str:
    """Return the name under which leaf i of x is among the data."""
    return f"x {i}"


def fixed_key(name: str) -> str:
    """Return the name of a fixed parameter among the data: it may itself be called sigma, say."""
    return f"fixed {name}"


def x_of(x_treedef: Any, data: dict[str, Any]) -> Any:
    """Return x from the data of one fit."""
    return jax.tree.unflatten(x_treedef, [data[x_key(i)] for i in range(x_treedef.num_leaves)])


def fixed_of(names: tuple[str, ...], data: dict[str, Any]) -> dict[str, Any]:
    """Return the fixed ones of the parameters, by name, from the data of one fit."""
    return {name: data[fixed_key(name)] for name in names if fixed_key(name) in data}


def start_states(form: Form, starts: Numbers, shared: dict[str, Any]) -> Numbers:
    """Return the states before the first step."""
    box = _box(form, shared)
    return batch.pack(jax.vmap(lambda z: lm.init(z, box))(starts))


def advance(
    residuals: WeightedResiduals,
    form: Form,
    shared: dict[str, Any],
    rows: dict[str, Any],
    states: Numbers,
    count: Count,
    n_left: Count,
    goal: Goal,
) -> tuple[Numbers, Any]:
    """Go on with the first `count` fits of a block until all but `n_left` have ended.

    Parameters
    ----------
    shared, rows
        What all fits share, and what each has of its own: "y" with NaN for missing points, "sigma",
        the leaves of x (`x_key`), fixed parameters (`fixed_key`), "lower" and "upper" bounds.

    Returns
    -------
    states, is_running
        The new states, and which fits have not ended.
    """
    states = batch.solve_block(
        lambda row: _OneFit(residuals, form, shared | row).problem(),
        batch.Block(rows, states),
        form.size,
        count,
        goal.tolerance,
        goal.max_iterations,
        form.n_slots,
        n_left,
    )
    unpacked = batch.unpack(states, form.size)
    return states, jax.vmap(lm.is_running, (0, None))(unpacked, goal.max_iterations)


def tabulate(
    residuals: WeightedResiduals,
    form: Form,
    shared: dict[str, Any],
    rows: dict[str, Any],
    states: Numbers,
) -> Numbers:
    """Return the rows of the table for fits that have ended."""
    n_rows = len(states)
    n_slots = min(form.n_slots, n_rows)

    def chunks(tree: PyTree) -> Any:
        """Split the rows, so that a chunk of them takes no more memory than the slots do."""
        return jax.tree.map(lambda a: a.reshape(n_rows // n_slots, n_slots, *a.shape[1:]), tree)

    def summarise(part: tuple[dict[str, Any], lm.State]) -> Numbers:
        return jax.vmap(lambda row, state: _OneFit(residuals, form, shared | row).table_row(state))(
            *part
        )

    table = lax.map(summarise, chunks((rows, batch.unpack(states, form.size))))
    return table.reshape(n_rows, form.width)


def _box(form: Form, data: dict[str, Any]) -> Box | None:
    return Box(data["lower"], data["upper"]) if form.is_bounded else None


class _OneFit:
    """One fit: its residuals as a function of the free numbers, and its row of the table."""

    def __init__(self, residuals: WeightedResiduals, form: Form, data: dict[str, Any]) -> None:
        self.residuals, self.form, self.data = residuals, form, data
        y = data["y"]
        self.present = ~jnp.isnan(y)
        self.measured = Measured(
            x=x_of(form.x_treedef, data),
            y=jnp.where(self.present, y, 0),
            sigma=data.get("sigma"),
            present=self.present,
        )
        self.fixed = fixed_of(form.names, data)

    def problem(self) -> Problem:
        return least_squares(self.weighted, _box(self.form, self.data))

    def weighted(self, z: Vector) -> Column:
        """Return the weighted residuals."""
        return self.residuals(z, self.fixed, [self.measured])[0]

    def parameters(self, z: Vector) -> Column:
        """Return all parameters: free, fixed and tied."""
        found = self.residuals.complete(z, self.fixed)
        return jnp.stack([jnp.asarray(found[name], z.dtype) for name in self.form.names])

    def table_row(self, state: lm.State) -> Column:
        state = lm.end(self.problem(), state)
        n_points = self.present.sum()
        status = jnp.where(n_points == 0, NO_DATA, state.status)
        # where there is nothing to fit, the start is no result
        has_result = (n_points > 0) & (status != lm.NONFINITE)
        chi_square = 2 * state.model.value
        numbers = jnp.stack(
            [
                jnp.where(has_result, chi_square, jnp.nan),
                n_points.astype(chi_square.dtype),
                status.astype(chi_square.dtype),
                state.iteration.astype(chi_square.dtype),
            ]
        )
        errors = self._errors(state, chi_square, n_points)
        both = jnp.concatenate([self.parameters(state.z), errors])
        return jnp.concatenate([jnp.where(has_result, both, jnp.nan), numbers])

    def _errors(self, state: lm.State, chi_square: Scalar, n_points: Count) -> Column:
        """Return the standard errors of all parameters, by the delta method for tied ones.

        They are those of `Fit`: a number at its bound counts as a constant and has none, and where
        the data do not determine a number, its error is infinite and those of the others are not.
        """
        z, H = state.z, state.model.matrix
        held = jnp.zeros_like(z, bool)
        if self.form.is_bounded:
            held = _box(self.form, self.data).mask(z) != 0  # type: ignore[union-attr]
        inverse, is_undetermined = _inverse(H, held, self.present.size)
        freedom = n_points - z.size + held.sum()
        variance = jnp.where(freedom > 0, chi_square / jnp.maximum(freedom, 1), jnp.inf)
        variance = jnp.ones_like(variance) if self.form.absolute_sigma else variance
        slopes = self._slopes(z)
        depends = slopes != 0
        squares = (slopes[:, :, None] * inverse * slopes[:, None, :]).sum((1, 2))
        errors = jnp.where(depends.any(1), jnp.sqrt(variance * squares), 0)
        errors = jnp.where((depends & is_undetermined).any(1), jnp.inf, errors)
        is_at_bound = (depends & held).any(1) & ~(depends & ~held).any(1)
        return jnp.where(is_at_bound, jnp.nan, errors)

    def _slopes(self, z: Vector) -> Rows:
        """Return the derivatives of all parameters by the free ones."""
        if self.residuals.expressions:
            return jax.jacfwd(self.parameters)(z)
        free = self.residuals.layout.free
        return jnp.array(
            [[float(name == each) for each in free] for name in self.form.names], z.dtype
        )


def _inverse(H: Matrix, held: PointFlags, n_points: int) -> tuple[Matrix, PointFlags]:
    """Return the inverse of H without the numbers that are held, and what is undetermined."""
    scale = jnp.sqrt(jnp.where(jnp.diagonal(H) > 0, jnp.diagonal(H), 1))
    unit = H / scale / scale[:, None]
    free = ~held
    unit = jnp.where(free & free[:, None], unit, jnp.eye(len(H), dtype=H.dtype))
    # rounding errors of a sum of products
    rounding = max(n_points, len(H)) * jnp.finfo(H.dtype).eps
    inverse, is_undetermined = determined_inverse(unit, rounding)
    inverse = jnp.where(free & free[:, None], inverse / scale / scale[:, None], 0)
    return inverse, is_undetermined & free
