"""Predictions for the rows of a file, written as they are made."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from cfgd._core.files import atomic_writer
from cfgd.apps.fit.columns import Entries, entries
from cfgd.apps.fit.model import Model
from cfgd.apps.fit.opening import ending_of, open_table
from cfgd.apps.fit.rows import rows_of_block
from cfgd.apps.fit.table import Table, numbers
from cfgd.apps.fit.target import OF_LABELS, rule

OUTPUTS = [".csv", ".csv.gz", ".parquet", ".feather"]


def predict(model: Model, data: Path, out: Path, memory: float, say: Callable[[int], None]) -> int:
    """A row for each row of `data`, in a file that is there when it is whole; how many."""
    ending = ending_of(out, OUTPUTS)
    table = open_table(data)
    _check(model, table)
    if out.exists() and out.samefile(data):
        raise ValueError(f"{out} is the data themselves: give predictions another name.")
    names = [column.name for column in model.columns]
    size, count = rows_of_block(memory, len(model.terms)), 0
    schema = pa.schema(_fields(model))
    with atomic_writer(out) as file, _writer(file, ending, schema) as writer:
        for batch in table.blocks(names, size):
            _check_numbers(model, table, batch, count)
            found = entries(model.columns, batch)
            _check_rows(model, table, batch, found, count)
            columns = predictions(model, found.X, found.missing & (model.missing == "drop"))
            writer.write_batch(pa.record_batch(columns, schema=schema))
            count += batch.num_rows
            say(batch.num_rows)
        if not count:
            raise ValueError(f"{data} has no rows.")
    return count


def predictions(model: Model, X: np.ndarray, empty: np.ndarray) -> list[Any]:
    """The columns of the output: what is expected and, of labels, how probable each is."""
    loss = rule(model.loss, len(model.labels))
    p = X @ model.coefficients[:-1] + model.coefficients[-1]
    best = np.asarray(loss.predicted(p, (0.0, 1.0)))
    if model.loss not in OF_LABELS:
        return [pa.array(best, mask=empty)]
    chances = np.asarray(loss.probabilities(p))
    known = _as_they_were(model.labels)
    chosen = known.take(pa.array(best.astype(int), mask=empty))
    return [chosen, *(pa.array(np.ascontiguousarray(c), mask=empty) for c in chances.T)]


def _fields(model: Model) -> list[Any]:
    if model.loss not in OF_LABELS:
        return [pa.field("prediction", pa.float64())]
    known = _as_they_were(model.labels)
    chances = [pa.field(f"probability of {label}", pa.float64()) for label in known.to_pylist()]
    return [pa.field("prediction", known.type), *chances]


def _as_they_were(labels: tuple[Any, ...]) -> Any:
    """Texts, or numbers without a point where none has one."""
    whole = all(isinstance(label, float) and label.is_integer() for label in labels)
    return pa.array([int(label) for label in labels] if whole else labels)


@contextlib.contextmanager
def _writer(file: BinaryIO, ending: str, schema: Any) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        if ending == ".csv.gz":
            file = stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", mtime=0))  # type: ignore[assignment]
        if ending == ".parquet":
            yield stack.enter_context(pq.ParquetWriter(file, schema))
        elif ending == ".feather":
            yield stack.enter_context(pa.ipc.new_file(file, schema))
        else:
            yield stack.enter_context(csv.CSVWriter(file, schema))


def _check(model: Model, table: Table) -> None:
    for column in model.columns:
        if column.name not in table.types:
            shown = ", ".join(map(repr, list(table.types)[:20]))
            raise ValueError(
                f"{table.path} has no column {column.name!r}, which the model needs, only {shown}."
            )
        found = table.kind(column.name)
        if found != column.kind:
            raise ValueError(
                f"{table.path}: the column {column.name!r} must be a {column.kind} as the model "
                f"has it, got a {found}."
            )


def _check_numbers(model: Model, table: Table, batch: Any, before: int) -> None:
    for column in model.columns:
        if column.kind == "number":
            bad = np.isinf(numbers(batch.column(column.name)))
            if bad.any():
                _fail(table, column.name, before + int(np.argmax(bad)), "must be finite")


def _check_rows(model: Model, table: Table, batch: Any, found: Entries, before: int) -> None:
    """What cannot be predicted: a text that the fit has not seen, or a value that is not there."""
    fills = model.missing == "mean"
    if not found.unknown.any() and (model.missing == "drop" or not found.missing.any()):
        return
    for column in model.columns:
        _, missing, unknown = column.entries(batch.column(column.name))
        if unknown.any():
            row = int(np.argmax(unknown))
            text = batch.column(column.name)[row].as_py()
            said = f"is {text!r}, which no row of the fit has"
            _fail(table, column.name, before + row, said)
        if missing.any() and model.missing != "drop" and not (fills and column.kind == "number"):
            has = "texts have no mean" if fills else "the model was fitted with --missing refuse"
            said = f"has no value, and {has}"
            _fail(table, column.name, before + int(np.argmax(missing)), said)


def _fail(table: Table, name: str, row: int, said: str) -> None:
    raise ValueError(f"{table.path}: the column {name!r} {said}, in row {row + 1}.")
