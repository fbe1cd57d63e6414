"""Check that the content of a checkpoint can be a state of this run, before the run resumes.

A file with a valid checksum may still hold anything. It is compared with the state at the start of
the run: a compiled loop has the same classes, shapes and dtypes in every iteration. The state of a
solver on the host may have become one of another class; its fields are then checked by the
annotations of that class.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any, NamedTuple

import jax
import numpy as np

from cfgd._core.checks import MAX_INT32
from cfgd.methods.auto.broyden_matrix import BroydenMatrix
from cfgd.methods.auto.lbfgs_memory import Memory
from cfgd.methods.auto.state import SolverState
from cfgd.objectives.evaluation import Evaluation
from cfgd.solve.checkpoint_file import DamagedError, children_of, is_record
from cfgd.solve.compiled_chunk import Carry
from cfgd.status import STATUSES

# Fields whose type may differ from that at the start: an evaluation's `aux`, which `restore`
# computes again, and the offset of a search, which is a number or a vector.
FREE = ("aux", "offset")


class Saved(NamedTuple):
    """Everything that a run needs to resume."""

    snapshot: Any
    labels: np.ndarray
    rows: dict[str, Any]


def check_content(found: Any, start: Saved) -> None:
    """Raise a `DamagedError` unless a run that began with `start` can resume from `found`."""
    if not isinstance(found, Saved):
        raise DamagedError("it does not hold the state of a run")
    _check_history(found, start)
    if isinstance(start.snapshot, Carry):
        _compare("state", found.snapshot, start.snapshot)
        _check_stats(found.snapshot.stats)
    else:
        _check_host_runs(found.snapshot, start.snapshot)


def _check_history(found: Saved, start: Saved) -> None:
    labels = found.labels
    _want(
        isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind == "i", "labels"
    )
    _want(len(labels) > 0 and labels[0] >= 0 and bool(np.all(np.diff(labels) > 0)), "labels")
    _want(int(labels[-1]) <= MAX_INT32, "labels")
    _want(isinstance(found.rows, dict) and found.rows.keys() == start.rows.keys(), "rows")
    for name, rows in found.rows.items():
        first = start.rows[name]
        _want(isinstance(rows, np.ndarray) and rows.dtype == first.dtype, f"rows[{name!r}]")
        _want(rows.shape == (len(labels), *first.shape[1:]), f"rows[{name!r}]")


def _check_stats(stats: Any) -> None:
    for name in ("iterations", "resets", "idle"):
        _want(bool(np.all(np.asarray(getattr(stats, name)) >= 0)), f"state.stats.{name}")
    code = np.asarray(stats.code)
    _want(bool(np.all((code >= 0) & (code < len(STATUSES)))), "state.stats.code")


def _check_host_runs(found: Any, start: list[dict[str, Any]]) -> None:
    _want(isinstance(found, list) and len(found) == len(start), "state")
    for i, (run, first) in enumerate(zip(found, start, strict=True)):
        place, state = f"state[{i}]", first["state"]
        _want(isinstance(run, dict) and run.keys() == first.keys(), place)
        for name in ("cost", "floor"):
            _want(_is_number(run[name]), f"{place}.{name}")
        _want(0 <= run["cost"] < np.inf, f"{place}.cost")
        if "samples" in first:
            for name in ("samples", "drawn_at"):
                _compare(f"{place}.{name}", run[name], first[name])
            for name in ("offset", "n_drawn"):
                _want(_is_instance(run[name], int), f"{place}.{name}")
        _want(isinstance(run["state"], SolverState), place)
        _check_fields(place, run["state"])
        _compare(f"{place}.evaluation", run["state"].evaluation, state.evaluation, FREE)
        if type(run["state"]) is type(state):
            _compare(place, run["state"], state, FREE, sizes_only=True)
        else:
            _check_sizes(place, run["state"])


def _check_sizes(place: str, state: SolverState) -> None:
    """Check that the vectors of a state of another class than at the start have the length of x.

    With variable projection, those of the reduced problem have the length of its own x.
    """
    reduced = getattr(state, "reduced", None)
    scaled = state.evaluation.x if reduced is None else reduced.x
    for name, entry in children_of(state).items():
        x = scaled if name == "scaling" else state.evaluation.x
        if isinstance(entry, np.ndarray) and entry.ndim:
            _want(entry.shape == x.shape, f"{place}.{name}")
        if isinstance(entry, BroydenMatrix):
            _want(entry.triangle.shape == (x.size, x.size), f"{place}.{name}")
    if reduced is not None:
        fits = (
            reduced.x.shape == reduced.gradient.shape and reduced.x.size <= state.evaluation.x.size
        )
        _want(fits, f"{place}.reduced")


def _compare(
    place: str, found: Any, first: Any, free: tuple[str, ...] = (), sizes_only: bool = False
) -> None:
    """Check that a tree has the classes, shapes and dtypes of another one, except where `free`.

    With `sizes_only` numbers may be of any kind: the annotations have been checked.
    """
    if _is_array(first) and (np.ndim(first) > 0 or not sizes_only):
        is_same = _is_array(found) and found.shape == first.shape and found.dtype == first.dtype
        _want(is_same, place)
        return
    if is_record(first) or isinstance(first, dict | list | tuple):
        _want(type(found) is type(first), place)
        parts, wanted = children_of(found), children_of(first)
        _want(parts.keys() == wanted.keys(), place)
        for name, child in wanted.items():
            if name not in free:
                _compare(f"{place}.{name}", parts[name], child, free, sizes_only)
        return
    if not sizes_only:
        _want(type(found) is type(first), place)


def _check_fields(place: str, record: Any) -> None:
    """Check the fields of a dataclass or named tuple by their annotations."""
    hints, parts = _hints(type(record)), children_of(record)
    for name, hint in hints.items():
        _want(name in parts, f"{place}.{name}")
        _want(_is_instance(parts[name], hint), f"{place}.{name}")
        if is_record(parts[name]):
            _check_fields(f"{place}.{name}", parts[name])
    if isinstance(record, Memory):
        _want(max(record.newest, record.last) < len(record.steps), f"{place}.newest")
    if isinstance(record, Evaluation):
        _want(record.gradient.shape == record.x.shape, f"{place}.gradient")


def _hints(kind: type) -> dict[str, Any]:
    fields = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    hints = typing.get_type_hints(kind)
    return {name: hints[name] for name in fields}


def _is_instance(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_instance(value, part) for part in typing.get_args(hint))
    if hint is int:
        return type(value) is int and 0 <= value <= MAX_INT32  # counts and rows
    if hint in (bool, float):
        return type(value) is hint
    if hint is np.generic:  # jaxtyping has no shape or dtype for scalars of NumPy
        return isinstance(value, np.floating)
    return isinstance(value, hint)


def _is_number(value: Any) -> bool:
    is_scalar = isinstance(value, np.generic) and value.dtype.kind == "f"
    return type(value) is float or is_scalar


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic | jax.Array)


def _want(is_right: bool, place: str) -> None:
    if not is_right:
        raise DamagedError(f"its {place} is not that of this run")
