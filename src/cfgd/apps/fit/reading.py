"""Read a table as it is: detect its formats, and convert its columns to numbers and texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cfgd.apps.fit.column_format import REFUSE_BAD, ColumnFormat, Reading, convert
from cfgd.apps.fit.column_survey import ColumnSurvey
from cfgd.apps.fit.format_decision import FormatDecision, decide_decimal
from cfgd.apps.fit.formats import typed
from cfgd.apps.fit.header import NUMBERLIKE
from cfgd.apps.fit.ids import is_id_name, is_unnamed, reason_for_id
from cfgd.apps.fit.number_text import COMMA, NAMES, POINT
from cfgd.apps.fit.reading_options import ReadingOptions
from cfgd.apps.fit.sniffing import SEPARATORS
from cfgd.apps.fit.survey import NumberSurvey, Surveys, is_surveyed, survey
from cfgd.apps.fit.table import Table, value_type

SURVEY_ROWS = 10_000  # rows that are looked at at once


class ReadTable(Table):
    """A table whose columns are converted to numbers and texts by their formats.

    `sentences` say what was detected. Columns without a format are those of the file.
    """

    format = "a table"

    def __init__(
        self,
        raw: Table,
        reading: Reading,
        left_out: Sequence[str],
        sentences: Sequence[str],
        since: str,
    ) -> None:
        self.since = since  # why a column must be of its kind, for messages
        self.raw, self.reading, self.sentences = raw, reading, list(sentences)
        self.formats = {column.name: column for column in reading.columns if column.kind != "id"}
        self.sources: dict[str, str] = {}  # for each column that of the file it comes from
        types: list[pa.DataType] = []
        for name, raw_type in raw.types.items():
            if name in left_out:
                continue
            known = self.formats.get(name)
            for column, column_type in (known.types if known else {name: raw_type}).items():
                self.sources[column] = name
                types.append(column_type)
        super().__init__(raw.path, raw.memory, list(self.sources), types)
        self.workers = raw.workers

    def parts(self) -> list[Table]:
        """Return the parts of the file, converted."""
        return [self.part(raw=part, path=part.path, **place_of(part)) for part in self.raw.parts()]

    @property
    def files(self) -> list[Path]:
        return self.raw.files

    def row_label(self, row: int) -> str:
        return self.raw.row_label(row)

    def forget_batches(self) -> None:
        """Do nothing: the batches are those of the file."""

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        return (batch for batch, _ in self.blocks_with_ids(names, [], rows))

    def blocks(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Return `batches`: those of the file are checked, cut to `rows` and kept already."""
        return self.batches(names, rows)

    def blocks_with_ids(
        self, names: list[str], ids: list[str], rows: int
    ) -> Iterator[tuple[pa.RecordBatch, list[pa.Array]]]:
        """Read the table once: yield converted columns, and the columns `ids` as they are."""
        sources = list(dict.fromkeys([*(self.sources[name] for name in names), *ids]))
        before = self.rows_before_in_file
        for batch in self.raw.blocks(sources, rows):
            found: dict[str, pa.Array] = {}
            for source in dict.fromkeys(self.sources[name] for name in names):
                column = batch.column(source)
                if source in self.formats:
                    found |= self._converted(self.formats[source], column, before)
                else:
                    found[source] = column
            converted = pa.RecordBatch.from_arrays([found[name] for name in names], names)
            yield converted, [batch.column(name) for name in ids]
            before += batch.num_rows

    def _converted(self, known: ColumnFormat, column: pa.Array, before: int) -> dict[str, pa.Array]:
        converted = convert(column, known, self.reading)
        if converted.bad.any() and self.reading.bad_values == REFUSE_BAD:
            first = int(np.argmax(converted.bad))
            noun = "date" if known.kind in ("date", "parts") else known.kind
            raise ValueError(
                f"{self.path}: the column {known.name!r} must be a {noun}{self.since}, got "
                f"{column[first].as_py()!r} in row {before + first + 1}."
            )
        return converted.columns


def place_of(part: Table) -> dict[str, Any]:
    """Return where the rows of a part are."""
    names = ("row_count", "rows_before", "rows_before_in_file")
    return {name: getattr(part, name) for name in names}


def read_for_fit(
    raw: Table,
    options: ReadingOptions,
    target: str,
    drop: Sequence[str] = (),
    used: Sequence[str] = (),
) -> ReadTable:
    """Find out what the columns of a file are, and return it with its columns converted.

    Parameters
    ----------
    target, drop
        The name of the target, and of columns that are not read.
    used
        Columns that the user names for a purpose of their own: they are no ids.

    Raises
    ------
    ValueError
        If the values of the file do not tell how to read them, or are not of one kind.
    """
    check_name(raw, "--target", target)
    for flag in ("id", "keep", "category", "number"):
        for name in getattr(options, flag):
            check_name(raw, f"--{flag}", name)
    if target in options.id:
        raise ValueError(f"--id: {target!r} is the target.")
    reader = _FitReader(
        raw, options, target, set(drop), {target, *used, *options.keep, *options.number}
    )
    return reader.read()


def check_name(raw: Table, flag: str, name: str) -> None:
    if name in raw.types:
        return
    names = list(raw.types)
    hint = ""
    if all(map(NUMBERLIKE.match, names)) or (len(names) > 1 and NUMBERLIKE.match(names[0])):
        hint = " (does the first line have the names of the columns?)"
    elif len(names) == 1 and raw.infers_types:
        separators = ", ".join(SEPARATORS.values())
        hint = f" (known separators are {separators})"
    below = [i for i, row in enumerate(raw.first_rows(), 1) if name in map(str.strip, row)]
    if below:
        hint = f" (row {below[0]} below has {name!r}: if it is the header, delete what is above it)"
    known = ", ".join(map(repr, names[:20]))
    raise ValueError(f"{flag}: {raw.path} has no column {name!r}, only {known}{hint}.")


@dataclasses.dataclass
class _FitReader:
    raw: Table
    options: ReadingOptions
    target: str
    drop: set[str]
    used: set[str]  # columns that are not ids

    def read(self) -> ReadTable:
        raw, options = self.raw, self.options
        reading = Reading(na=options.na, bad_values=options.bad_values)
        names = [name for name in raw.types if name not in self.drop]
        if raw.infers_types:
            raw.read_as_text([*options.id, *options.category])
            raw.leave_out_blank_rows(names)
        for name in names:
            if not is_surveyed(raw, name):
                raw.kind(name)  # refuses types that are no numbers
        surveys = self._survey(names, reading)
        self._check_last_row(surveys)
        decimal, doubtful = self._decimal(surveys)
        if raw.infers_types and decimal != raw.decimal:
            raw.set_decimal(decimal)
            raw.read_as_text([*options.id, *options.category])
            surveys = self._survey(names, reading)
            decimal, doubtful = self._decimal(surveys)
        ids = self._ids(surveys)
        empty = [
            name
            for name, known in surveys.items()
            if not known.present and known.rows and name not in {self.target, *ids, *options.id}
        ]
        decision = FormatDecision(raw.path, surveys, options, decimal, self.target)
        texts = [
            name
            for name, known in surveys.items()
            if isinstance(known, ColumnSurvey)
            and name not in {*ids, *empty, *options.id, *options.category}
        ]
        formats = {one.name: one for one in decision.formats(texts)}
        formats |= {name: ColumnFormat(name, "category") for name in options.category}
        for name in names:
            if name not in {*formats, *ids, *empty, *options.id}:
                formats[name] = ColumnFormat(name, "number")
        formats |= {name: ColumnFormat(name, "id") for name in (*options.id, *ids)}
        if raw.infers_types:
            raw.read_as_text(list(ids))
        columns = tuple(formats[name] for name in raw.types if name in formats)
        left_out = {*options.id, *ids, *empty}
        if not set(names) - left_out - {self.target} and left_out:
            shown = ", ".join(map(repr, sorted(left_out)))
            raise ValueError(
                f"{raw.path} has no column besides the target {self.target!r} and ids or empty "
                f"columns: {shown}."
            )
        sentences = [
            *raw.describe(),
            *_describe_blank(raw),
            *describe_doubtful(surveys, doubtful, decimal),
            *decision.all_sentences(),
            *(f"The column {name!r} is left out as an id: it {why}." for name, why in ids.items()),
            *_sentinels(surveys),
            *self._repeated(surveys, [one.name for one in columns if one.kind == "number"]),
            *(f"The column {name!r} is left out: it has no value." for name in empty),
        ]
        reading = dataclasses.replace(reading, decimal=decimal, columns=columns)
        since = f" with --decimal {options.decimal}" if options.decimal else ""
        return ReadTable(raw, reading, [*options.id, *ids, *empty], sentences, since)

    def _check_last_row(self, surveys: Surveys) -> None:
        """Raise a `ValueError` if the last row is the total of the others."""
        for name, known in surveys.items():
            if isinstance(known, ColumnSurvey) and known.total:
                raise ValueError(
                    f"{self.raw.path}: the last row ({known.rows:,}) seems to be a total: it has "
                    f"{known.total!r} in the column {name!r}: delete it."
                )

    def _compares(self, name: str) -> bool:
        """Return whether a column of numbers may be an id."""
        is_first = name == next(iter(self.raw.types))
        return name not in self.used and (is_first or is_id_name(name))

    def _survey(self, names: list[str], reading: Reading) -> Surveys:
        every = self.raw.infers_types  # the pass that checks the types of all columns
        chosen = [
            name
            for name in names
            if every
            or is_surveyed(self.raw, name)
            or self._compares(name)
            or pa.types.is_integer(value_type(self.raw.types[name]))
        ]
        marks = reading.marks
        found = survey(self.raw, chosen, self._compares, marks, SURVEY_ROWS)
        long = [
            name
            for name, known in found.items()
            if isinstance(known, NumberSurvey) and known.is_long
        ]
        if self.raw.infers_types:  # other files have integers
            self.raw.read_as_text(long)
        else:  # whose values were not compared with each other
            again = [name for name in long if name not in self.used]
            found |= survey(self.raw, again, lambda _: True, marks, SURVEY_ROWS)
        units = {name: unit for name, known in found.items() if (unit := _unit_of(known))}
        dates = [
            name
            for name, known in found.items()
            if isinstance(known, NumberSurvey)
            and known.is_compact_date
            and name not in self.options.number
        ]
        again = [*(long if self.raw.infers_types else ()), *units, *dates]
        found |= survey(self.raw, again, self._compares, marks, SURVEY_ROWS, units, dates)
        return found

    def _decimal(self, surveys: Surveys) -> tuple[str, list[str]]:
        if self.options.decimal is not None:
            return self.options.decimal, []
        return decide_decimal(self.raw.path, surveys, decimal_of_numbers(self.raw, surveys), None)

    def _ids(self, surveys: Surveys) -> dict[str, str]:
        """Return the columns that are ids, each with the reason."""
        first, found = next(iter(self.raw.types)), {}
        for name, known in surveys.items():
            values = known.uniqueness
            if name in {*self.used, *self.options.category, *self.options.id} or values is None:
                continue
            if isinstance(known, ColumnSurvey) and len(known.several_units) > 1:
                continue  # numbers, which are refused for their units
            is_other_text = isinstance(known, NumberSurvey) or (
                # no numbers, dates and times
                max(known.by_class["text"].count, known.codes) == known.present
                and known.boolean_words is None
            )
            digits = 0
            if isinstance(known, ColumnSurvey) and known.digits == known.present > known.codes:
                digits = known.longest
            if isinstance(known, NumberSurvey) and known.is_long:
                digits = len(f"{max(known.high, -known.low):.0f}")
            if not is_other_text and not is_id_name(name) and not digits:
                continue
            why = reason_for_id(name, name == first, values, digits)
            if why is not None:
                found[name] = f"{why} ({typed('--keep', name)} uses it)"
        others = [name for name in self.raw.types if name not in {*self.drop, *found, self.target}]
        if not others:  # numbers are better than no column at all
            found = {n: why for n, why in found.items() if isinstance(surveys[n], ColumnSurvey)}
        return found

    def _repeated(self, surveys: Surveys, columns: Collection[str]) -> list[str]:
        """Return a sentence about columns of numbers that have the name of an id, and repeat."""
        return [
            f"The column {name!r} is used as a number, since its values repeat "
            f"({typed('--id', name)} leaves it out)."
            for name in columns
            if name not in self.used
            and is_id_name(name)
            and not is_unnamed(name)
            and (known := surveys.get(name)) is not None
            and known.uniqueness is not None
            and not known.uniqueness.is_unique
            and (isinstance(known, NumberSurvey) or known.digits == known.present > known.codes)
        ]


def _describe_blank(raw: Table) -> list[str]:
    """Return a sentence about rows that are left out since they have no value."""
    if not raw.blank_rows:
        return []
    rows = "1 blank row is" if raw.blank_rows == 1 else f"{raw.blank_rows:,} blank rows are"
    return [f"{rows} left out."]


def describe_doubtful(surveys: Surveys, names: Sequence[str], decimal: str) -> list[str]:
    """Return sentences about columns whose decimal sign other columns, or a model, tell."""
    by_sign: dict[str, list[str]] = {POINT: [], COMMA: []}
    for name in names:
        known = surveys[name]
        for sign, found in known.group_marks.items() if isinstance(known, ColumnSurvey) else ():
            by_sign[sign] += [name] if found.count else []
    sentences = []
    for sign, columns in by_sign.items():
        shown = ", ".join(map(repr, columns[:10]))
        role = "is the decimal sign" if sign == decimal else "separates thousands"
        if columns:
            sentences.append(
                f"In {shown} the sign {sign!r} {role}, since other numbers have {NAMES[decimal]}."
            )
    return sentences


def _sentinels(surveys: Surveys) -> list[str]:
    """Return a sentence for each number or date that may mark missing values."""
    found: list[tuple[str, str, str]] = []  # column, what it has, the option
    for name, known in surveys.items():
        if isinstance(known, NumberSurvey):
            found += [
                (name, f"the value {value:g} in {count:,} rows", f"{value:g}")
                for value, count in known.sentinels.items()
            ]
        elif known.by_class["date"].count:
            found += [(name, f"the date {text}", text) for text in known.sentinels]
    return [
        f"Warning: the column {name!r} has {what}, far from all others: if it marks missing "
        f"values, add {typed('--na', text)}."
        for name, what, text in found
    ]


def _unit_of(known: ColumnSurvey | NumberSurvey) -> str:
    """Return the unit that all values of a column have, "" for none."""
    if isinstance(known, NumberSurvey) or len(known.units) != 1:
        return ""
    unit, count = next(iter(known.units.items()))
    return unit if count == known.present else ""


def decimal_of_numbers(raw: Table, surveys: Surveys) -> dict[str, str]:
    """Return the decimal sign of columns that a text file has as numbers, and one such column."""
    if not raw.infers_types:
        return {}
    found = (
        name
        for name, known in surveys.items()
        if isinstance(known, NumberSurvey) and known.has_decimals
    )
    name = next(found, None)
    return {} if name is None else {raw.decimal: f"in the column {name!r}"}
