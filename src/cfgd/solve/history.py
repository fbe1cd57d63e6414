"""The history of a run: rows of numbers, one for each recorded iteration."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from cfgd._core import checks
from cfgd._core.pytrees import FunctionOfVector, Structure
from cfgd._core.sharding import to_host
from cfgd.methods.base import State

# Values are known to eps to this power, relative to the first one. The solvers use the same power
# to accept steps whose decrease is hidden by rounding.
HIDDEN_CHANGE = 0.8


class PointRecorder(eqx.Module):
    """A user's function of x, as a function of the state."""

    fn: FunctionOfVector

    def of(self, state: State) -> Any:
        return self.fn(state.evaluation.x)

    def __call__(self, state: State) -> Array:
        return jnp.asarray(self.of(state))


@dataclasses.dataclass(frozen=True)
class StateRecorder:
    """A number of the method's state, by its name."""

    name: str

    def of(self, state: State) -> Any:
        return getattr(state, self.name)

    def __call__(self, state: State) -> Array:
        return self.of(state)


# numbers of a state that users may record; a method has those that are not None
STATE_NUMBERS = ("k", "eta", "gamma")
Recorder: TypeAlias = PointRecorder | StateRecorder


def recorders(record: Mapping[str, Any], structure: Structure) -> dict[str, Recorder]:
    """Return the entries of `record` as functions of the state."""
    return {
        name: PointRecorder(FunctionOfVector(entry, structure))
        if callable(entry)
        else StateRecorder(entry)
        for name, entry in record.items()
    }


def check_records(owner: str, records: Mapping[str, Recorder], state: State) -> int:
    """Check the recorders by tracing them, and return how many numbers they give for one state."""
    known = [name for name in STATE_NUMBERS if getattr(state, name) is not None]
    for entry in records.values():
        if isinstance(entry, StateRecorder) and entry.name not in known:
            wanted = f"name a number of the method ({', '.join(known)})"
            checks.fail(owner, "record", wanted, repr(entry.name))
    return sum(
        checks.numbers_function(owner, f"record[{name!r}]", entry.of, state)
        for name, entry in records.items()
    )


def settle_values(values: np.ndarray, least: Any, records_all: bool) -> np.ndarray:
    """Return the values of a history whose least one is that of the returned point.

    Values that are updated by recurrence, and values of steps whose decrease is hidden by rounding,
    differ by rounding errors from the value that is computed at the returned point. Values that are
    lower by no more than that are raised to it. If every iteration is recorded, the returned point
    is one of them, and the lowest of the values above its own is lowered to it.

    Parameters
    ----------
    values
        Iterations along the last axis.
    least
        The value at the returned point, for each setting of a sweep.
    records_all
        Whether every iteration has a row.
    """
    least = np.asarray(least, values.dtype)[..., None]
    if (values.min(-1, keepdims=True) == least).all():  # they agree already
        return np.array(values)
    sizes = np.maximum(np.abs(values[..., :1]), np.abs(least))
    rounding = np.finfo(values.dtype).eps ** HIDDEN_CHANGE * sizes
    settled = np.where((values < least) & (values >= least - rounding), least, values)
    if not records_all:
        return settled
    lowest = np.fmin.reduce(settled, axis=-1, keepdims=True)
    is_returned = (settled == lowest) & (lowest >= least) & (lowest - least <= rounding)
    return np.where(is_returned, least, settled)


def _mapped(fn: Callable[..., Any], *parts: dict[str, Any]) -> dict[str, Any]:
    """Return fn of the entries with the same name, sorted by name."""
    return {name: fn(*[part[name] for part in parts]) for name in sorted(parts[0])}


class History:
    """Rows in parts, one part for each chunk, which are concatenated when they are read.

    `labels` are the iterations of the rows.
    """

    def __init__(self, first: dict[str, Any]) -> None:
        self.labels = [np.zeros(1, int)]
        self.parts = [_mapped(lambda leaf: np.asarray(leaf)[None], to_host(first))]

    @classmethod
    def from_rows(cls, labels: np.ndarray, rows: dict[str, Any]) -> History:
        """Return the history with these rows, as `concatenated` returned them."""
        history = cls({})
        history.labels, history.parts = [labels], [rows]
        return history

    @property
    def last(self) -> int:
        """The iteration of the last row."""
        return int(self.labels[-1][-1])

    def drop_partial(self, every: int) -> None:
        """Drop the row of the iteration at which a run stopped, if it is no multiple of `every`."""
        if self.last % every != 0:
            labels, rows = self.concatenated()
            self.labels, self.parts = [labels[:-1]], [{name: rows[name][:-1] for name in rows}]

    def concatenated(self) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the iterations and the rows, each as one array."""
        rows = _mapped(lambda *parts: np.concatenate(parts), *self.parts)
        # a callback reads the history often: concatenate every part once
        self.parts, self.labels = [rows], [np.concatenate(self.labels)]
        return self.labels[0], rows

    def add(self, rows: dict[str, Any], labels: np.ndarray) -> None:
        """Append the rows of these iterations; what `rows` holds beyond them is padding."""
        if not len(labels):
            return
        self.labels.append(labels)
        self.parts.append(_mapped(lambda leaf: np.array(leaf[: len(labels)]), to_host(rows)))

    def replace_last(self, row: dict[str, Any]) -> None:
        """Replace the last row by another one of the same iteration."""
        _, rows = self.concatenated()
        for name, entry in row.items():
            rows[name][-1] = entry

    def as_dict(self, batched: bool) -> dict[str, np.ndarray]:
        """Return the entries with iterations as first axis; in a sweep settings come before it."""
        labels, rows = self.concatenated()
        if batched:
            rows = _mapped(lambda leaf: np.moveaxis(leaf, 1, 0), rows)
        return {"iteration": labels, **rows}
