"""Predict the target for the rows of a file, and write the predictions block by block."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from cfgd._core.files import atomic_writer, is_same_file
from cfgd.apps.fit.columns import EncodedRows, Mask, encode
from cfgd.apps.fit.missing_values import check_for_prediction, left_out_rows
from cfgd.apps.fit.model import Model
from cfgd.apps.fit.row_roles import RowRoles
from cfgd.apps.fit.rows import rows_of_block
from cfgd.apps.fit.table import Table, to_float64
from cfgd.apps.fit.table_formats import matching_ending, open_table
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES, loss_function

CSV_FORMATS = [".csv", ".csv.gz"]
OUTPUT_FORMATS = [*CSV_FORMATS, ".parquet", ".feather"]
MAX_INTEGER = 2**53  # up to which float64 has every integer
# Texts in which a spreadsheet sees a formula (OWASP, "CSV injection"), after any apostrophes. After
# a sign, plain words and numbers are none: "+", "-" and "-12a" are usual labels.
FORMULA = re.compile(r"'*([=@＝＠\t\r]|[+\-＋－](.*[^\w\s.,+\-]|.*\w\s*[+\-]))", re.DOTALL)


def spreadsheet_text(text: str) -> str:
    """Return a text that a spreadsheet shows and does not run: a formula gets an apostrophe.

    A text that begins with apostrophes before a formula gets one more, so that taking one away
    gives the text back.

    >>> [spreadsheet_text(text) for text in ("=1+1", "'=1+1", "+", "-12a", "'s")]
    ["'=1+1", "''=1+1", '+', '-12a', "'s"]
    """
    return f"'{text}" if FORMULA.match(text) else text


def predict(
    model: Model, data: Path, out: Path, memory: float, on_rows_read: Callable[[int], None]
) -> int:
    """Write a prediction for each row of `data`, in their order, and return how many.

    `out` appears only when it is complete. Values that the model cannot predict from (a text that
    no training row has, infinity, a missing value where its policy refuses that) raise a
    `ValueError`. In CSV, labels that a spreadsheet would run are written with an apostrophe
    (`spreadsheet_text`); Parquet and Feather have them as they are.
    """
    ending = matching_ending(out, OUTPUT_FORMATS)
    table = open_table(data, memory)
    _check_columns(model, table)
    if is_same_file(out, data):
        raise ValueError(f"{out} is the data file: choose another name for the predictions.")
    roles = RowRoles(offset=model.offset)
    names = list(dict.fromkeys([*(column.name for column in model.columns), *roles.names]))
    block_rows, count = rows_of_block(memory, len(model.terms)), 0
    schema = pa.schema(_fields(model))
    if ending in CSV_FORMATS:
        labels = (spreadsheet_text(x) if isinstance(x, str) else x for x in model.labels)
        model = dataclasses.replace(model, labels=tuple(labels))
    with atomic_writer(out) as file, _writer(file, ending, schema) as writer:
        for batch in table.blocks(names, block_rows):
            _check_finite(model, table, batch, count)
            encoded = encode(model.columns, batch)
            _check_rows(model, table, batch, encoded, count)
            roles.check_values(table.path, batch, model.missing, count)
            about = roles.read(batch, {})
            left_out = left_out_rows(model.missing, encoded.missing) | about.unused
            columns = predictions(model, encoded.X, left_out, about.offset)
            writer.write_batch(pa.record_batch(columns, schema=schema))
            count += batch.num_rows
            on_rows_read(batch.num_rows)
        if not count:
            raise ValueError(f"{data} has no rows.")
    return count


def predictions(
    model: Model, X: np.ndarray, left_out: Mask, offset: np.ndarray | None = None
) -> list[pa.Array]:
    """Return the columns of the output, with null for the rows that are left out.

    The first has the expected values or the most probable labels, the others the probability of
    each label.
    """
    loss = loss_function(model.loss, len(model.labels))
    with np.errstate(over="ignore", invalid="ignore"):
        p = X @ model.coefficients[:-1] + model.coefficients[-1]
        p = p if offset is None else p + np.where(left_out, 0.0, offset)
    if not np.isfinite(p).all():
        raise ValueError(
            f"A prediction of {model.target!r} is not finite: a coefficient of the model or a "
            "value of the table is too large."
        )
    predicted = np.asarray(loss.predicted(p, (0.0, 1.0)))
    if model.loss not in CLASSIFICATION_LOSSES:
        return [pa.array(predicted, mask=left_out)]
    probabilities = np.asarray(loss.probabilities(p))
    labels = _label_array(model.labels).take(pa.array(predicted.astype(int), mask=left_out))
    by_label = (np.ascontiguousarray(column) for column in probabilities.T)
    return [labels, *(pa.array(column, mask=left_out) for column in by_label)]


def _fields(model: Model) -> list[pa.Field]:
    if model.loss not in CLASSIFICATION_LOSSES:
        return [pa.field("prediction", pa.float64())]
    labels = _label_array(model.labels)
    names = [f"probability of {label}" for label in labels.to_pylist()]
    return [pa.field("prediction", labels.type), *(pa.field(name, pa.float64()) for name in names)]


def _label_array(labels: tuple[Any, ...]) -> pa.Array:
    """Return the labels as texts, as integers if all of them are, or else as floats."""
    are_integers = all(
        isinstance(label, float) and label.is_integer() and abs(label) <= MAX_INTEGER
        for label in labels
    )
    return pa.array([int(label) for label in labels] if are_integers else labels)


@contextlib.contextmanager
def _writer(file: BinaryIO, ending: str, schema: pa.Schema) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        if ending == ".csv.gz":
            file = stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", mtime=0))  # type: ignore[assignment]
        if ending == ".parquet":
            yield stack.enter_context(pq.ParquetWriter(file, schema))
        elif ending == ".feather":
            yield stack.enter_context(pa.ipc.new_file(file, schema))
        else:
            yield stack.enter_context(csv.CSVWriter(file, schema))


def _check_columns(model: Model, table: Table) -> None:
    roles = RowRoles(offset=model.offset)
    for name in (*(column.name for column in model.columns), *roles.names):
        if name not in table.types:
            known = ", ".join(map(repr, list(table.types)[:20]))
            raise ValueError(
                f"{table.path} has no column {name!r}, which the model needs, only {known}."
            )
    roles.check(table, "")
    for column in model.columns:
        kind = table.kind(column.name)
        if kind != column.kind:
            raise ValueError(
                f"{table.path}: the column {column.name!r} must be a {column.kind} as in the "
                f"training data, got a {kind}."
            )


def _check_finite(model: Model, table: Table, batch: pa.RecordBatch, rows_before: int) -> None:
    for column in model.columns:
        if column.kind == "number":
            infinite = np.isinf(to_float64(batch.column(column.name)))
            if infinite.any():
                row = rows_before + int(np.argmax(infinite)) + 1
                raise ValueError(
                    f"{table.path}: the column {column.name!r} must be finite, got infinity in "
                    f"row {row}."
                )


def _check_rows(
    model: Model, table: Table, batch: pa.RecordBatch, encoded: EncodedRows, rows_before: int
) -> None:
    """Raise a `ValueError` for an unknown text, or a missing value that the policy refuses."""
    if not encoded.unknown.any() and not encoded.missing.any():
        return
    for column in model.columns:
        values = batch.column(column.name)
        rows = column.encode(values)
        if rows.unknown.any():
            i = int(np.argmax(rows.unknown))
            raise ValueError(
                f"{table.path}: the column {column.name!r} is {values[i].as_py()!r} in row "
                f"{rows_before + i + 1}, which no training row has."
            )
        check_for_prediction(
            table.path, model.missing, column.name, column.kind, rows.missing, rows_before
        )
