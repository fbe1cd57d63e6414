"""Predict the target for the rows of a file, and write the predictions block by block."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from cfgd._core.files import atomic_writer, is_same_file
from cfgd.apps.fit.column_format import ColumnFormat, Reading
from cfgd.apps.fit.columns import EncodedRows, Mask, TextColumn, encode
from cfgd.apps.fit.missing_values import check_for_prediction, left_out_rows
from cfgd.apps.fit.model import Model
from cfgd.apps.fit.reading import ReadTable
from cfgd.apps.fit.reading_of_predictions import read_for_prediction
from cfgd.apps.fit.row_block import rows_of_block
from cfgd.apps.fit.row_roles import RowRoles
from cfgd.apps.fit.table import Table, is_text, to_float64, value_type
from cfgd.apps.fit.table_formats import matching_ending
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES, loss_function
from cfgd.apps.fit.workers import THIS_PROCESS, Workers

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


@dataclasses.dataclass
class Written:
    """What was written: predictions of `rows` rows, and sentences about them."""

    rows: int
    sentences: list[str]


def predict(
    model: Model,
    data: Path | Sequence[Path],
    out: Path,
    memory: float,
    on_rows_read: Callable[[int], None],
    ids: Sequence[str] = (),
    workers: Workers = THIS_PROCESS,
) -> Written:
    """Write a prediction for each row of `data`, in their order.

    `out` appears only when it is complete. The columns `ids`, and those that were ids of the
    training data, come first. A text that no training row has is taken as the pool of rare texts,
    or as the reference level. Values that the model cannot predict from (infinity, a missing value
    where its policy refuses that) raise a `ValueError`. In CSV, texts that a spreadsheet would run
    are written with an apostrophe (`spreadsheet_text`); Parquet and Feather have them as they are.
    """
    ending = matching_ending(out, OUTPUT_FORMATS)
    roles = RowRoles(offset=model.offset)
    names = list(dict.fromkeys([*(column.name for column in model.columns), *roles.names]))
    table = read_for_prediction(data, memory, _reading(model), names, ids, workers)
    _check_columns(model, table)
    if any(is_same_file(out, file) for file in table.files):
        raise ValueError(f"{out} is the data file: choose another name for the predictions.")
    known_ids = [name for name in _reading(model).ids if name in table.raw.types]
    through = list(dict.fromkeys([*ids, *known_ids]))
    in_csv = ending in CSV_FORMATS
    id_fields = [pa.field(name, value_type(table.raw.types[name])) for name in through]
    schema = pa.schema([*id_fields, *_fields(model, through)])
    if in_csv:
        labels = (spreadsheet_text(x) if isinstance(x, str) else x for x in model.labels)
        model = dataclasses.replace(model, labels=tuple(labels))
    block_rows = rows_of_block(memory, len(model.terms) + len(through))
    predictor = Predictor(model, names, through, block_rows, schema, in_csv)
    count = without = 0
    unknown: Counter[str] = Counter()
    with atomic_writer(out) as file, _writer(file, ending, schema) as writer:
        for block in table.workers.items(table.parts(), predictor):
            writer.write_batch(block.batch)
            count, without = count + block.batch.num_rows, without + block.without
            unknown.update(block.unknown)
            on_rows_read(block.batch.num_rows)
        if not count:
            raise ValueError(f"{table.path} has no rows.")
    sentences = [*table.sentences, *_unknown_texts(model, unknown)]
    if without:
        rows = "1 row has" if without == 1 else f"{without:,} rows have"
        sentences.append(f"Warning: {rows} a missing value, and no prediction.")
    return Written(count, sentences)


class PredictedBlock(NamedTuple):
    """Rows as they are written; `without` of them have no prediction.

    `unknown` counts for each column the rows with a text that no training row has.
    """

    batch: pa.RecordBatch
    without: int
    unknown: Counter[str]


@dataclasses.dataclass(frozen=True)
class Predictor:
    """Predicts the rows of a part of a table, in blocks of `block_rows`.

    `names` are the columns that the model needs, and `through` those that are written through.
    """

    model: Model
    names: list[str]
    through: list[str]
    block_rows: int
    schema: pa.Schema
    in_csv: bool

    def __call__(self, table: ReadTable) -> Iterator[PredictedBlock]:
        model, before = self.model, table.rows_before_in_file
        roles = RowRoles(offset=model.offset)
        for batch, ids in table.blocks_with_ids(self.names, self.through, self.block_rows):
            unknown: Counter[str] = Counter()
            _check_finite(model, table, batch, before)
            encoded = encode(model.columns, batch)
            _check_rows(model, table, batch, encoded, before, unknown)
            roles.check_values(table.path, batch, model.missing, before)
            about = roles.read(batch, {})
            left_out = left_out_rows(model.missing, encoded.missing) | about.unused
            X = _design_matrix(model, table, encoded.X, left_out)
            columns = predictions(model, X, left_out, about.offset)
            if self.in_csv and len(self.schema) == 1:  # readers of CSV skip an empty line
                columns = [pc.fill_null(column, np.nan) for column in columns]
            fields = zip(ids, self.schema, strict=False)
            written = [_id_column(column, field.type, self.in_csv) for column, field in fields]
            found = pa.record_batch([*written, *columns], schema=self.schema)
            yield PredictedBlock(found, int(np.sum(left_out)), unknown)
            before += batch.num_rows


def _reading(model: Model) -> Reading:
    """Return how files are read for a model: by plain numbers and texts if it does not say."""
    if model.reading is not None:
        return model.reading
    return Reading(columns=tuple(ColumnFormat(one.name, one.kind) for one in model.columns))


def _id_column(column: pa.Array, written: pa.DataType, in_csv: bool) -> pa.Array:
    """Return a column as it is written, with the type of the first file: no formula in CSV."""
    column = column.cast(value_type(column.type)).cast(written)
    if in_csv and is_text(column.type):
        texts = [None if text is None else spreadsheet_text(text) for text in column.to_pylist()]
        return pa.array(texts, column.type)
    return column


def _unknown_texts(model: Model, unknown: Counter[str]) -> list[str]:
    """Return a sentence for each column in which rows have a text that no training row has."""
    places = {
        column.name: column.place_of_unknown
        for column in model.columns
        if isinstance(column, TextColumn)
    }
    return [
        f"Warning: {rows:,} row{'s have' if rows > 1 else ' has'} a level of {name!r} that no "
        f"training row has; it is treated as {places[name]!r}."
        for name, rows in unknown.items()
    ]


def _design_matrix(model: Model, table: Table, X: np.ndarray, left_out: Mask) -> np.ndarray:
    """Return the design matrix of encoded columns, by the formula if there is one."""
    if model.formula is None:
        return X
    design, unknown = model.formula(model.columns, X)
    if np.any(unknown & ~left_out):
        calls = ", ".join(call for call in model.formula.states if call.startswith("C("))
        raise ValueError(f"{table.path}: {calls} has a level that no training row has.")
    return np.where(left_out[:, None], 0.0, design)


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


def _fields(model: Model, others: list[str]) -> list[pa.Field]:
    name = "prediction"
    while name in others:
        name += "_"
    if model.loss not in CLASSIFICATION_LOSSES:
        return [pa.field(name, pa.float64())]
    labels = _label_array(model.labels)
    names = [f"probability of {label}" for label in labels.to_pylist()]
    return [pa.field(name, labels.type), *(pa.field(name, pa.float64()) for name in names)]


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
    model: Model,
    table: Table,
    batch: pa.RecordBatch,
    encoded: EncodedRows,
    rows_before: int,
    unknown: Counter[str],
) -> None:
    """Count unknown texts; raise a `ValueError` for a missing value that the policy refuses."""
    if not encoded.unknown.any() and not encoded.missing.any():
        return
    for column in model.columns:
        rows = column.encode(batch.column(column.name))
        if rows.unknown.any():
            unknown[column.name] += int(rows.unknown.sum())
        check_for_prediction(table.path, model.missing, column.name, rows.missing, rows_before)
