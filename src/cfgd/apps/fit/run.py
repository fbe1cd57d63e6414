"""Fit a linear model to a table, from the file to the model and everything reported about it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np

from cfgd.apps.fit.baseline import weighted_baseline
from cfgd.apps.fit.class_weights import class_weights
from cfgd.apps.fit.columns import term_names
from cfgd.apps.fit.conditioning import conditioning, correlation_matrix
from cfgd.apps.fit.cross_validation import cross_validate
from cfgd.apps.fit.empty_levels import describe_empty_levels, describe_levels_without_class
from cfgd.apps.fit.encoder import Encoder
from cfgd.apps.fit.fitting import (
    SolverOptions,
    baseline_coefficients,
    fit_coefficients,
    name_separation,
)
from cfgd.apps.fit.formula_rows import evaluate_formula, read_table_of_formula
from cfgd.apps.fit.leakage import suspects
from cfgd.apps.fit.model import Model
from cfgd.apps.fit.options import (
    FitOptions,
    check_columns,
    check_options,
    check_rows,
    check_streaming,
    check_target,
)
from cfgd.apps.fit.progress import ProgressReporter
from cfgd.apps.fit.quality import measure_quality
from cfgd.apps.fit.reading import read_for_fit
from cfgd.apps.fit.result import FitResult, model_facts
from cfgd.apps.fit.row_block import rows_of_block
from cfgd.apps.fit.rows import InMemoryRows, Rows, StreamedRows
from cfgd.apps.fit.sandwich import (
    describe_errors,
)
from cfgd.apps.fit.split import Split, held_out_rows, training_rows
from cfgd.apps.fit.table_formats import open_tables
from cfgd.apps.fit.table_statistics import TableStatistics
from cfgd.apps.fit.target import choose_target
from cfgd.apps.fit.uncertainty import chosen_covariance, in_original_units
from cfgd.apps.fit.workers import Workers, workers_of
from cfgd.status import Status


def fit(
    options: FitOptions,
    progress: ProgressReporter,
    on_data_checked: Callable[[], None] = lambda: None,
) -> FitResult:
    """Read, check and encode the data, fit the model, and measure its quality.

    Each of several processes reads its share of the rows.

    Parameters
    ----------
    options
        What to fit to what.
    progress
        Receives each stage and the progress in it.
    on_data_checked
        Called once the data are known to be valid, before the long computations.

    Raises
    ------
    ValueError
        If an option or the data are invalid; the message is one sentence for the user.
    """
    check_options(options)
    options.check_reading()
    with workers_of(options.dask) as workers:
        return _fit(options, progress, on_data_checked, workers)


def _fit(
    options: FitOptions,
    progress: ProgressReporter,
    on_data_checked: Callable[[], None],
    workers: Workers,
) -> FitResult:
    began = time.perf_counter()
    memory = workers.memory_budget(options.memory)
    progress.start_stage("reading")
    raw = open_tables(options.data, memory, options.decimal, options.sheet, workers)
    parsed, drop = None, list(options.drop)
    if options.formula is not None:
        parsed, table, drop = read_table_of_formula(
            options.formula, raw, options, options.target, drop, options.roles
        )
        options = dataclasses.replace(options, target=parsed.target)
    else:
        table = read_for_fit(raw, options, options.target, drop, options.roles.names)
    statistics = TableStatistics(
        table, options.target, drop, options.missing, options.roles, options
    )
    split = Split(options.test, options.seed)
    block_rows = rows_of_block(memory, len(statistics.names))
    statistics.collect(split, block_rows, progress.rows_read)
    sentences = list(table.sentences)
    if parsed is None:
        sentences += statistics.leave_out_constants(split, block_rows, progress.rows_read)
    else:
        statistics.refuse_constants()
    target = choose_target(statistics, options.loss, options.positive)
    check_target(options, target)
    columns, standardisation = statistics.columns(), statistics.standardisation()
    formula = None
    if parsed is not None:
        progress.start_stage("formula")
        formula, standardisation = evaluate_formula(parsed, statistics, target, split, block_rows)
    width = len(standardisation.mean)
    count = statistics.training_count + statistics.held_out_count
    streamed = 8 * width * count > memory * workers.processes
    check_streaming(options, streamed, workers)
    check_rows(options, statistics, target, width)
    encoder = Encoder(
        columns,
        standardisation,
        target,
        split,
        options.missing,
        rows_of_block(memory, width * target.classes),
        options.roles,
        formula,
        statistics.cluster_codes,
    )
    stream = StreamedRows(table, encoder, statistics.code_counts, progress.rows_read)
    rows: Rows = stream
    if not streamed:
        progress.start_stage("encoding", statistics.row_count)
        rows = InMemoryRows.read(stream)
        raw.forget_batches()
    if options.weights is not None or options.offset is not None:
        progress.start_stage("baseline")
        target = dataclasses.replace(target, baseline=weighted_baseline(rows))
        rows.target = target
    if options.class_weight is not None:
        target = dataclasses.replace(
            target, class_weights=class_weights(rows, options.class_weight)
        )
        rows.target = target
    progress.start_stage("correlations", statistics.row_count)
    correlations = correlation_matrix(rows)
    condition = None if correlations is None else conditioning(correlations, standardisation)
    terms = formula.terms if formula else term_names(columns)
    if condition is not None:
        check_columns(options, condition, terms)
    on_data_checked()

    l2, validation = options.l2 or 0.0, None
    if options.cross_validate:
        progress.start_stage("cross-validation")
        validation = cross_validate(rows, memory, progress.update)
        l2 = validation.best
    progress.start_stage("fitting")
    solver = SolverOptions(
        l2,
        options.method,
        memory,
        progress.update,
        checkpoint=options.checkpoint,
    )
    w, solution = fit_coefficients(rows, training_rows, solver, baseline_coefficients(rows))
    solution = name_separation(rows, w, solution, memory, terms) if l2 == 0 else solution
    if l2 == 0 and target.loss == "poisson" and not solution.is_determined:
        empty = describe_empty_levels(rows, () if formula else columns, terms)
        if empty:
            solution = dataclasses.replace(solution, status=Status.separated, details=empty)
    elif solution.status is Status.separated:
        absent = describe_levels_without_class(rows, () if formula else columns)
        if absent:
            solution = dataclasses.replace(solution, details=f"{solution.details} {absent}")
    progress.start_stage("standard errors", statistics.row_count)
    found = chosen_covariance(rows, w, l2, options.errors, solution, memory)
    C = found.matrix
    progress.start_stage("quality", statistics.row_count)
    measured = held_out_rows if options.test else training_rows
    quality = measure_quality(rows, measured, w)
    leaks = suspects(rows, () if formula else columns, terms, standardisation, measured)

    coefficients, errors = in_original_units(w, C, standardisation, target)
    model = Model(
        target=target.name,
        loss=target.loss,
        labels=target.labels,
        missing=options.missing,
        columns=tuple(columns),
        coefficients=coefficients,
        errors=errors,
        facts={},
        offset=options.offset,
        formula=formula,
        reading=table.reading,
    )
    result = FitResult(
        options=options,
        model=model,
        target=target,
        standardised=w,
        standardised_errors=None if C is None else np.sqrt(np.diagonal(C)).reshape(w.shape),
        error_kind=describe_errors(options.errors, target.loss, options.cluster, found.clusters),
        no_errors=found.reason,
        dof=found.dof,
        statistics=statistics,
        unknown_text_rows=rows.unknown_rows,
        undefined_rows=rows.undefined_rows,
        streamed=streamed,
        passes=rows.passes,
        l2=l2,
        cross_validation=validation,
        solution=solution,
        conditioning=condition,
        quality=quality,
        leaks=tuple(leaks),
        seconds=time.perf_counter() - began,
        sentences=tuple(sentences),
    )
    return dataclasses.replace(result, model=dataclasses.replace(model, facts=model_facts(result)))
