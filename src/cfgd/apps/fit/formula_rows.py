"""A formula for the columns of a table: what it names, and its states by passes over the rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from cfgd.apps.fit.columns import term_names
from cfgd.apps.fit.encoder import Encoder
from cfgd.apps.fit.formula import Formula
from cfgd.apps.fit.formula_states import collect_states, formula_standardisation
from cfgd.apps.fit.read_formula import ParsedFormula, read_formula
from cfgd.apps.fit.reading import ReadTable, read_for_fit
from cfgd.apps.fit.reading_options import ReadingOptions
from cfgd.apps.fit.row_roles import RowRoles
from cfgd.apps.fit.rows import StreamedRows
from cfgd.apps.fit.split import Split
from cfgd.apps.fit.table import Table
from cfgd.apps.fit.table_statistics import Standardisation, TableStatistics
from cfgd.apps.fit.target import Target


def formula_of_table(
    text: str, table: Table, target: str, drop: Sequence[str], roles: RowRoles
) -> ParsedFormula:
    """Return the formula with its target; `target` is that of the command line, or empty.

    Raises
    ------
    ValueError
        If the formula names a column that the table does not have or that is used otherwise.
    """
    others = (target, *drop, *roles.names)
    parsed = read_formula(text, [name for name in table.types if name not in others])
    found = parsed.target or target
    if not found:
        raise ValueError("--formula has no target before ~: give it, or --target.")
    if target not in ("", found):
        raise ValueError(f"--target is {target!r}, and that of --formula {found!r}.")
    for name in parsed.columns:
        if name not in table.types:
            known = ", ".join(map(repr, list(table.types)[:20]))
            raise ValueError(f"--formula: {table.path} has no column {name!r}, only {known}.")
        if name in (found, *drop, *roles.names):
            raise ValueError(
                f"--formula: {name!r} is the target, a column of --drop, or one of weights, "
                "offsets or clusters."
            )
    return dataclasses.replace(parsed, target=found)


def read_table_of_formula(
    text: str, raw: Table, options: ReadingOptions, target: str, drop: list[str], roles: RowRoles
) -> tuple[ParsedFormula, ReadTable, list[str]]:
    """Read the columns that a formula names; return it, the table, and the columns to leave out.

    Columns that only the dot of `y ~ .` stands for are left out if they are ids.
    """
    parsed = formula_of_table(text, raw, target, drop, roles)
    named = [name for name in parsed.columns if name in text]
    read = (*parsed.columns, parsed.target, *roles.names, *options.id)
    unread = [name for name in raw.types if name not in read]
    table = read_for_fit(raw, options, parsed.target, unread, (*roles.names, *named))
    parsed = formula_of_table(text, table, parsed.target, list({*drop, *unread}), roles)
    used = (*parsed.columns, parsed.target)
    return parsed, table, [name for name in table.types if name not in used]


def evaluate_formula(
    parsed: ParsedFormula,
    statistics: TableStatistics,
    target: Target,
    split: Split,
    block_rows: int,
) -> tuple[Formula, Standardisation]:
    """Return the formula with its states, and the standardisation of its columns."""
    columns = statistics.columns()
    width = len(term_names(columns))
    as_they_are = Standardisation(np.zeros(width), np.ones(width))
    encoder = Encoder(
        columns,
        as_they_are,
        target,
        split,
        statistics.missing,
        block_rows,
        statistics.roles,
        cluster_codes=statistics.cluster_codes,
    )
    rows = StreamedRows(statistics.table, encoder, statistics.code_counts)
    formula = parsed.formula(columns, collect_states(parsed.factors, columns, rows))
    return formula, formula_standardisation(formula, columns, rows)
