"""What is written down of a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from cfgd._core import checks
from cfgd._core.pytrees import FunctionOfVector, Structure
from cfgd._core.sharding import to_host
from cfgd.methods.base import State


class OfPoint(eqx.Module):
    """A function of the user's x, as one of the state."""

    fn: FunctionOfVector

    def of(self, state: State) -> Any:
        return self.fn(state.point.x)

    def __call__(self, state: State) -> Array:
        return jnp.asarray(self.of(state))


@dataclasses.dataclass(frozen=True)
class OfState:
    """A number that the method keeps, by its name."""

    name: str

    def of(self, state: State) -> Any:
        return getattr(state, self.name)

    def __call__(self, state: State) -> Array:
        return self.of(state)


KEPT = ("k", "eta", "gamma")


def recorders(record: Mapping[str, Any], structure: Structure) -> dict[str, OfPoint | OfState]:
    """The entries of `record` as functions of the state."""
    return {
        name: OfPoint(FunctionOfVector(entry, structure)) if callable(entry) else OfState(entry)
        for name, entry in record.items()
    }


def check_records(owner: str, records: Mapping[str, OfPoint | OfState], state: State) -> int:
    """How many numbers the records of a state are, found out without any work."""
    known = [name for name in KEPT if getattr(state, name) is not None]
    for entry in records.values():
        if isinstance(entry, OfState) and entry.name not in known:
            wanted = f"name a number that the method keeps ({', '.join(known)})"
            checks.fail(owner, "record", wanted, repr(entry.name))
    return sum(
        checks.numbers_function(owner, f"record[{name!r}]", entry.of, state)
        for name, entry in records.items()
    )


class History:
    """Rows as the chunks give them, joined when they are asked for."""

    def __init__(self, first: dict[str, Any]) -> None:
        self.labels = [np.zeros(1, int)]
        self.parts = [jax.tree.map(lambda leaf: np.asarray(leaf)[None], to_host(first))]

    @classmethod
    def of(cls, labels: np.ndarray, rows: dict[str, Any]) -> History:
        """What `kept` gave."""
        history = cls({})
        history.labels, history.parts = [labels], [rows]
        return history

    def kept(self) -> tuple[np.ndarray, dict[str, Any]]:
        """The iterations, and the entries over them."""
        rows = jax.tree.map(lambda *parts: np.concatenate(parts), *self.parts)
        # a callback asks often: what is joined stays joined
        self.parts, self.labels = [rows], [np.concatenate(self.labels)]
        return self.labels[0], rows

    def add(self, rows: dict[str, Any], labels: np.ndarray) -> None:
        if not len(labels):
            return
        self.labels.append(labels)
        self.parts.append(jax.tree.map(lambda leaf: np.array(leaf[: len(labels)]), to_host(rows)))

    def joined(self, batched: bool) -> dict[str, np.ndarray]:
        """The entries over iterations; for a sweep, settings first."""
        labels, rows = self.kept()
        if batched:
            rows = jax.tree.map(lambda leaf: np.moveaxis(leaf, 1, 0), rows)
        return {"iteration": labels, **rows}
