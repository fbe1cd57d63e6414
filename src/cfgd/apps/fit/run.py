"""Fit a linear model to a table, from the file to the model and everything reported about it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cfgd import distributed
from cfgd._core.version import __version__
from cfgd.apps.fit.baseline import weighted_baseline
from cfgd.apps.fit.class_weights import class_weights, read_class_weights
from cfgd.apps.fit.columns import term_names
from cfgd.apps.fit.conditioning import SINGULAR, Conditioning, conditioning, correlation_matrix
from cfgd.apps.fit.cross_validation import CrossValidation, cross_validate
from cfgd.apps.fit.fitting import (
    METHODS,
    SolverOptions,
    baseline_coefficients,
    fit_coefficients,
    is_separable,
)
from cfgd.apps.fit.formula_rows import evaluate_formula, formula_of_table
from cfgd.apps.fit.leakage import Suspect, suspects
from cfgd.apps.fit.memory import memory_budget
from cfgd.apps.fit.missing_values import POLICIES, REFUSE
from cfgd.apps.fit.model import Model
from cfgd.apps.fit.progress import ProgressReporter
from cfgd.apps.fit.quality import Quality, measure_quality
from cfgd.apps.fit.row_roles import RowRoles
from cfgd.apps.fit.rows import InMemoryRows, Rows, StreamedRows, rows_of_block
from cfgd.apps.fit.sandwich import (
    CLASSICAL,
    CLUSTER,
    KINDS,
    RobustCovariance,
    describe_errors,
    robust_covariance,
)
from cfgd.apps.fit.split import Split, held_out_rows, training_rows
from cfgd.apps.fit.table_formats import open_table
from cfgd.apps.fit.table_statistics import TableStatistics
from cfgd.apps.fit.target import CLASSIFICATION_LOSSES, LOSS_NAMES, Target, choose_target
from cfgd.apps.fit.uncertainty import covariance, in_original_units
from cfgd.objectives.linear.losses import MULTINOMIAL
from cfgd.solve import Solution


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """The arguments of `cfgd fit`; `memory` is in bytes."""

    data: Path
    target: str = ""  # by default that of the formula
    loss: str | None = None
    l2: float | None = None
    cross_validate: bool = False
    method: str = "auto"
    missing: str = REFUSE
    drop: tuple[str, ...] = ()
    test: float = 0.2
    seed: int = 0
    memory: float | None = None
    checkpoint: Path | None = None  # of the final fit; cross-validation has none
    weights: str | None = None
    offset: str | None = None
    class_weight: str | None = None
    positive: str | None = None
    formula: str | None = None
    summary: bool = False
    errors: str = CLASSICAL
    cluster: str | None = None

    @property
    def roles(self) -> RowRoles:
        """The columns of weights, offsets and clusters."""
        return RowRoles(self.weights, self.offset, self.cluster)


@dataclasses.dataclass(frozen=True)
class FitResult:
    """A fitted model with everything that is reported about it."""

    options: FitOptions
    model: Model
    target: Target
    standardised: np.ndarray  # coefficients of standardised columns, the intercept last
    standardised_errors: np.ndarray | None  # their standard errors
    error_kind: str  # classical, robust or clustered, in words
    no_errors: str  # why there are no standard errors, if there are none
    dof: float  # of Student's t for intervals; infinite for the normal distribution
    statistics: TableStatistics
    unknown_text_rows: int  # held-out rows with a text that no training row has
    streamed: bool
    passes: int  # over the file, after the first, which collects the statistics
    l2: float
    cross_validation: CrossValidation | None
    solution: Solution
    conditioning: Conditioning | None
    quality: Quality
    leaks: tuple[Suspect, ...]  # columns that alone explain the target
    seconds: float

    @property
    def separable(self) -> bool:
        """Whether the classes are separable, so that the likelihood has no maximum."""
        return self.target.loss in CLASSIFICATION_LOSSES and is_separable(self.solution)

    @property
    def success(self) -> bool:
        """Whether the solver converged to coefficients that exist."""
        return bool(self.solution.success) and not self.separable

    @property
    def measured_on(self) -> str:
        """The rows on which the quality is measured, in words."""
        rows = f"{self.quality.rows:,}"
        return f"{rows} held-out rows" if self.options.test else f"the {rows} training rows"


def fit(
    options: FitOptions,
    progress: ProgressReporter,
    on_data_checked: Callable[[], None] = lambda: None,
) -> FitResult:
    """Read, check and encode the data, fit the model, and measure its quality.

    Each of several processes reads the file and fits to its share of the rows.

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
    began = time.perf_counter()
    _check_options(options)
    memory = memory_budget(options.memory)
    progress.start_stage("reading")
    table = open_table(options.data, memory)
    parsed, drop = None, list(options.drop)
    if options.formula is not None:
        parsed = formula_of_table(options.formula, table, options.target, drop, options.roles)
        options = dataclasses.replace(options, target=parsed.target)
        drop = [name for name in table.types if name not in (*parsed.columns, options.target)]
    statistics = TableStatistics(table, options.target, drop, options.missing, options.roles)
    split = Split(options.test, options.seed)
    block_rows = rows_of_block(memory, len(statistics.names))
    statistics.collect(split, block_rows, progress.rows_read)
    target = choose_target(statistics, options.loss, options.positive)
    _check_target(options, target)
    columns, standardisation = statistics.columns(), statistics.standardisation()
    formula = None
    if parsed is not None:
        progress.start_stage("formula")
        formula, standardisation = evaluate_formula(parsed, statistics, target, split, block_rows)
    width = len(standardisation.mean)
    streamed = 8 * width * (statistics.training_count + statistics.held_out_count) > memory
    _check_streaming(options, streamed, memory)
    _check_rows(options, statistics, target, width)
    stream = StreamedRows(
        table,
        columns,
        standardisation,
        target,
        split,
        options.missing,
        rows_of_block(memory, width * target.classes),
        statistics.training_count,
        progress.rows_read,
        options.roles,
        formula,
    )
    rows: Rows = stream
    if not streamed:
        progress.start_stage("encoding", statistics.row_count)
        rows = InMemoryRows.read(stream, statistics)
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
    if condition is not None:
        _check_columns(options, condition, formula.terms if formula else term_names(columns))
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
        stop_if_separable=bool(target.labels),
        checkpoint=options.checkpoint,
    )
    w, solution = fit_coefficients(rows, training_rows, solver, baseline_coefficients(rows))
    progress.start_stage("standard errors", statistics.row_count)
    if options.errors == CLASSICAL:
        dof = float(rows.count - w.size) if target.loss == "squared" else np.inf
        found = RobustCovariance(covariance(rows, w, l2), dof)
    else:
        found = robust_covariance(rows, w, l2, options.errors, memory)
    C = found.matrix
    progress.start_stage("quality", statistics.row_count)
    measured = held_out_rows if options.test else training_rows
    quality = measure_quality(rows, measured, w)
    terms = formula.terms if formula else term_names(columns)
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
        unknown_text_rows=stream.unknown_text_rows,
        streamed=streamed,
        passes=stream.passes,
        l2=l2,
        cross_validation=validation,
        solution=solution,
        conditioning=condition,
        quality=quality,
        leaks=tuple(leaks),
        seconds=time.perf_counter() - began,
    )
    return dataclasses.replace(result, model=dataclasses.replace(model, facts=_facts(result)))


def _facts(result: FitResult) -> dict[str, Any]:
    """Return how the model was fitted, for its file."""
    condition, statistics = result.conditioning, result.statistics
    return {
        "made by": f"cfgd {__version__}",
        "data": result.options.data.name,
        "rows fitted to": statistics.training_count,
        "rows held out": statistics.held_out_count,
        "rows left out": statistics.left_out_count,
        "seed": result.options.seed,
        **_weight_facts(result),
        "l2": result.l2,
        "method": result.options.method,
        "standard errors": result.error_kind,
        "status": "separated" if result.separable else result.solution.status.name,
        "condition number": None if condition is None else condition.standardised,
        "measured on": result.measured_on,
        "quality": result.quality.model,
        "baseline": result.quality.baseline,
    }


def _weight_facts(result: FitResult) -> dict[str, Any]:
    """Return the facts about weights, offset and positive label, where there are any."""
    options, target = result.options, result.target
    facts: dict[str, Any] = {}
    if options.formula is not None:
        facts["formula"] = options.formula
    if options.weights is not None:
        facts["weights"] = options.weights
    if options.offset is not None:
        facts["offset"] = options.offset
    if target.class_weights is not None:
        given = zip(target.labels, target.class_weights.tolist(), strict=True)
        facts["class weights"] = {str(label): weight for label, weight in given}
    if target.loss == "logistic":
        facts["positive label"] = target.labels[1]
    return facts


def _check_target(options: FitOptions, target: Target) -> None:
    """Raise a `ValueError` for options that the loss of the target has no meaning for."""
    if options.offset is not None and target.loss == MULTINOMIAL:
        raise ValueError("--offset: the loss multinomial has a linear predictor for each class.")
    if options.class_weight is not None and not target.labels:
        raise ValueError(
            f"--class-weight is for class labels, and the target {target.name!r} has the loss "
            f"{target.loss}."
        )


def _check_options(options: FitOptions) -> None:
    if options.l2 is not None and options.cross_validate:
        raise ValueError("--l2 and --cross-validate: give one of them, not both.")
    if options.l2 is not None and not 0 <= options.l2 < np.inf:
        raise ValueError(f"--l2 must be a number of at least 0, got {options.l2:g}.")
    if not 0 <= options.test <= 0.9:
        raise ValueError(f"--test must be a share from 0 to 0.9, got {options.test:g}.")
    if options.memory is not None and not 0 < options.memory < np.inf:
        raise ValueError(f"--memory must be positive, got {options.memory / 1e6:g}.")
    if not options.target and options.formula is None:
        raise ValueError("--target is missing: give the column to predict, or --formula.")
    if (options.errors == CLUSTER) != (options.cluster is not None):
        raise ValueError("--errors cluster and --cluster COLUMN: give both of them or none.")
    if options.class_weight is not None:
        read_class_weights(options.class_weight)
    if options.offset is not None and distributed.start().count > 1:
        raise ValueError("--offset needs one process: leave out --processes.")
    if options.checkpoint is not None and not options.checkpoint.parent.is_dir():
        raise ValueError(f"--checkpoint must be in an existing folder, got {options.checkpoint}.")
    for option, value, known in (
        ("--method", options.method, tuple(METHODS)),
        ("--loss", options.loss, (None, *LOSS_NAMES)),
        ("--missing", options.missing, POLICIES),
        ("--errors", options.errors, KINDS),
    ):
        if value not in known:
            names = ", ".join(filter(None, known))
            raise ValueError(f"{option} must be one of {names}, got {value!r}.")


def _check_streaming(options: FitOptions, streamed: bool, memory: float) -> None:
    if streamed and distributed.start().count > 1:
        raise ValueError(
            f"--processes: the rows of {options.data} do not fit into --memory {memory / 1e6:.0f}, "
            "and only one process can stream them: increase --memory, or use one process."
        )
    if streamed and options.method == "adaptive_terminal":
        raise ValueError(
            "--method adaptive_terminal needs derivatives along every column, and the rows do not "
            "fit into --memory: use --method auto, which takes one pass over the file for each "
            "gradient."
        )


def _check_columns(options: FitOptions, condition: Conditioning, terms: list[str]) -> None:
    if condition.grade == SINGULAR and not options.l2 and not options.cross_validate:
        raise ValueError(
            f"{options.data}: the column {terms[condition.worst]!r} is a linear combination of "
            "others, so that their coefficients are not determined: leave one out with --drop, or "
            "add a penalty with --l2 or --cross-validate."
        )


def _check_rows(
    options: FitOptions, statistics: TableStatistics, target: Target, width: int
) -> None:
    coefficients, rows = width + 1, statistics.training_count
    if rows <= coefficients and not options.l2 and not options.cross_validate:
        raise ValueError(
            f"{options.data}: {rows} training rows do not determine {coefficients} coefficients: "
            "add a penalty with --l2 or --cross-validate."
        )
    if options.cross_validate and target.labels and statistics.label_counts is not None:
        for label in target.labels:
            by_fold = statistics.label_counts[label][1:]
            if (by_fold.sum() - by_fold).min() == 0:  # all of them in one fold
                raise ValueError(
                    f"--cross-validate: the target {target.name!r} is {label!r} in too few rows "
                    f"({by_fold.sum()}) to be in all folds: give a penalty with --l2."
                )
