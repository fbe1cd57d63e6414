"""The results of a fit as texts and table rows, for the terminal and for the report."""

from __future__ import annotations

import numpy as np

from cfgd.apps.fit.columns import MISSING, POOL, TextColumn
from cfgd.apps.fit.conditioning import SINGULAR
from cfgd.apps.fit.effects import MODEL_NAMES, effect_of
from cfgd.apps.fit.formats import format_label, format_number, typed
from cfgd.apps.fit.leakage import is_rounding
from cfgd.apps.fit.missing_values import MEAN
from cfgd.apps.fit.quality import AVERAGE_PRECISION, ROC_AUC, Quality, describe_baseline
from cfgd.apps.fit.result import FitResult
from cfgd.apps.fit.sandwich import CLASSICAL
from cfgd.apps.fit.table_statistics import SAMPLE
from cfgd.apps.fit.target import DEVIATION_PER_MAD, Target

SHOWN_INFLATION = 2  # the variance inflation factor from which on a column is named
SHOWN_LEAKS = 5  # columns that alone explain the target
SHOWN_LABELS = 12  # classes up to which the confusion matrix is shown; model.json has it, too
# training rows for each level of a text column below which there is a warning: its coefficients
# would be means of so few rows
ROWS_PER_LEVEL = 3
SHOWN_RARE = 5  # levels that are pooled
SHOWN_BASES = 10  # text columns whose reference categories are listed


def positive_label(target: Target) -> str:
    """Return the label whose odds a logistic model is about; empty for other models."""
    return format_label(target.labels[1]) if target.loss == "logistic" else ""


def quality_rows(result: FitResult) -> list[tuple[str, str, str]]:
    """Return the name of each measure and its value for the model and for the baseline."""
    model, baseline = result.quality.model, result.quality.baseline
    return [
        (
            name,
            format_number(model[name]),
            format_number(baseline[name]) if name in baseline else "",
        )
        for name in model
    ]


def confusion_rows(result: FitResult) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of the confusion matrix; nothing if there are no labels.

    A row has a label and how many rows of it the model gives each label; with weights their sum.
    """
    confusion = result.quality.confusion
    labels = [format_label(label) for label in result.target.labels]
    if confusion is None or len(labels) > SHOWN_LABELS:
        return [], []
    rows = [
        [f"actual {label}", *(f"{count:,.6g}" for count in counts)]
        for label, counts in zip(labels, confusion, strict=True)
    ]
    return ["confusion matrix", *(f"predicted {label}" for label in labels)], rows


def summary(result: FitResult) -> str:
    """Return what was fitted to how many rows in one sentence."""
    statistics, target = result.statistics, result.target
    used = len(result.model.columns)
    columns = f"{used:,} column{'' if used == 1 else 's'}"
    rows = f"{statistics.training_count:,} rows of {result.options.name.name}"
    if statistics.held_out_count:
        rows += f", with {statistics.held_out_count:,} held out for testing"
    if statistics.left_out_count:
        rows += f", and {statistics.left_out_count:,} with missing values left out"
    name = MODEL_NAMES[target.loss]
    return f"{name} of {target.name!r} on {columns} ({target.reason}), fitted to {rows}."


def _model_remarks(result: FitResult) -> list[str]:
    """Return sentences that say what the coefficients and the positive class are."""
    target = result.target
    sentences = [effect_of(target, positive_label(target)).sentence]
    if target.loss == "logistic":
        negative, positive = map(format_label, target.labels)
        sentences.insert(0, f"The positive class is {positive}, the other one {negative}.")
    elif target.loss == "huber":
        threshold = format_number(target.scale)
        sentences.append(
            f"Huber's threshold is {threshold}: the loss of a larger residual is linear instead of "
            "quadratic. The robust scale of the residuals (median absolute deviation times "
            f"{DEVIATION_PER_MAD}) is "
            f"{format_number(robust_scale(result.quality))} on {result.measured_on}."
        )
    return sentences


def robust_scale(quality: Quality) -> float:
    """Return what the standard deviation of normal residuals would be, from their median size."""
    residuals = quality.y - quality.expected
    return float(DEVIATION_PER_MAD * np.median(np.abs(residuals - np.median(residuals))))


def remarks(result: FitResult) -> list[str]:
    """Return the sentences that a reader of the coefficients should know."""
    return [
        *_leakage(result),
        *_many_levels(result),
        *result.sentences,
        *_model_remarks(result),
        *_penalty(result),
        *_missing_errors(result),
        _conditioning(result),
        *_weighting(result),
        f"The baseline {describe_baseline(result.target, result.options.roles)}; on "
        f"{result.measured_on}, {_comparison(result)}.",
        *_sample(result),
        *_reference_categories(result),
        *_imputed(result),
        *_reading(result),
    ]


def _leakage(result: FitResult) -> list[str]:
    """Return warnings of columns that may hold the target in another form."""
    sentences = [
        f"Warning: the column {leak.column!r} alone explains the target, with "
        f"{'an' if leak.measure[0] in 'aeiouR' else 'a'} {leak.measure} of {leak.value:.6g} on "
        f"{result.measured_on}. If it holds the target in another form, or something that is known "
        f"only after the target, leave it out with {typed('--drop', leak.column)}."
        for leak in result.leaks[:SHOWN_LEAKS]
    ]
    if is_rounding(result.quality):
        measure = next(iter(result.quality.model))
        sentences.append(
            f"Warning: the {measure} on {result.measured_on} is of the size of rounding errors: "
            "the columns determine the target exactly, which is unusual for measured data."
        )
    return sentences


def _weighting(result: FitResult) -> list[str]:
    """Return sentences about weights, offset and class weights."""
    options, sentences = result.options, []
    if options.weights is not None:
        zero = result.statistics.weight_zero_count
        left_out = f"; {zero:,} rows of weight 0 are left out" if zero else ""
        sentences.append(
            f"Rows are weighted by {options.weights!r}, in the fit, the standard errors and the "
            f"measures{left_out}."
        )
    if options.offset is not None:
        sentences.append(f"The offset {options.offset!r} is added to the linear predictor.")
    if result.target.class_weights is not None:
        weights = zip(result.target.labels, result.target.class_weights, strict=True)
        shown = ", ".join(f"{format_number(w)} for {format_label(label)}" for label, w in weights)
        sentences.append(
            f"Classes are weighted in the fit: {shown}. The predicted probabilities are those for "
            "classes with these weights, not for their frequencies in the data; the measures do "
            "not use class weights."
        )
    return sentences


def _comparison(result: FitResult) -> str:
    share, measure = result.quality.explained, next(iter(result.quality.model))
    if share > 0:
        return f"the {measure} of the model is {100 * share:.1f} % lower"
    return f"the {measure} of the model is not lower"


def _sample(result: FitResult) -> list[str]:
    if result.quality.rows <= SAMPLE:
        return []
    shown = "The figures"
    if result.target.loss == "logistic":
        shown = f"The {ROC_AUC}, {AVERAGE_PRECISION}, calibration and the figures"
    return [f"{shown} use only the first {SAMPLE:,} of these rows."]


def _penalty(result: FitResult) -> list[str]:
    if not result.l2:
        return []
    chosen = ", chosen by cross-validation in five folds" if result.cross_validation else ""
    sentence = (
        f"The penalty is l2 = {format_number(result.l2)}{chosen}. It shrinks the coefficients of "
        "the standardised columns"
    )
    if result.model.errors is None:
        return [f"{sentence}."]
    return [
        f"{sentence}. The standard errors describe the variability of the shrunken coefficients "
        "and not the bias of the shrinkage, so there are no 95 % intervals."
    ]


def _missing_errors(result: FitResult) -> list[str]:
    if result.model.errors is not None:
        is_classical = result.options.errors == CLASSICAL
        return [] if is_classical else [f"The standard errors are {result.error_kind}."]
    return [f"There are no standard errors: {result.no_errors}."]


def _conditioning(result: FitResult) -> str:
    condition = result.conditioning
    if condition is None:
        return "Collinearity was not checked: there are too many columns."
    worst = result.model.terms[condition.worst]
    if condition.grade == SINGULAR:
        constant = condition.constant_combinations(result.model.terms[:-1])
        return (
            f"The columns are collinear: {worst!r} is a linear combination of others{constant}, "
            "and only the penalty determines their coefficients."
        )
    inflation = ""
    if condition.inflation > SHOWN_INFLATION:
        inflation = (
            "; the highest variance inflation factor (VIF) is "
            f"{format_number(condition.inflation)}, of {worst!r}"
        )
    advice = ""
    if condition.grade in ("high", "severe") and not result.l2:
        advice = (
            " Collinear columns have large standard errors: leave out those that say the same as "
            "others with --drop, or add a penalty with --l2."
        )
    return (
        f"Collinearity is {condition.grade}: the condition number of the standardised columns is "
        f"{condition.standardised:.3g} ({condition.raw:.3g} in original units){inflation}."
        f"{advice}"
    )


def _reference_categories(result: FitResult) -> list[str]:
    columns = [column for column in result.model.columns if isinstance(column, TextColumn)]
    if not columns:
        return []
    bases = ", ".join(f"{column.base!r} for {column.name!r}" for column in columns[:SHOWN_BASES])
    more = " and so on" if len(columns) > SHOWN_BASES else ""
    several = len(columns) > 1
    return [
        f"The reference level{'s are' if several else ' is'} {bases}{more}; the coefficients of "
        f"other levels are relative to {'them' if several else 'it'}.",
        *_pools(columns),
    ]


def _imputed(result: FitResult) -> list[str]:
    """Return sentences about the missing values that were imputed."""
    counts = result.statistics.missing_counts
    if result.options.missing != MEAN:
        return []
    found = [column for column in result.model.columns if counts[column.name]]
    numbers = [column for column in found if not isinstance(column, TextColumn)]
    texts = [column for column in found if isinstance(column, TextColumn)]
    sentences = []
    for columns, how in (
        (numbers, "Missing numbers are replaced by the mean of their column"),
        (texts, f"Missing texts are the level {MISSING!r}"),
    ):
        if columns:
            shown = ", ".join(
                f"{column.name!r} ({counts[column.name]:,} rows)"
                for column in columns[:SHOWN_BASES]
            )
            more = " and other columns" if len(columns) > SHOWN_BASES else ""
            sentences.append(f"{how}: {shown}{more}.")
    return sentences


def _many_levels(result: FitResult) -> list[str]:
    """Return a warning of each text column that has few training rows for each of its levels."""
    rows, sentences = result.statistics.training_count, []
    for column in result.model.columns:
        levels = len(column.terms) + 1
        if isinstance(column, TextColumn) and levels > 2 and ROWS_PER_LEVEL * levels > rows:
            sentences.append(
                f"Warning: the column {column.name!r} has {levels:,} levels in {rows:,} training "
                f"rows: if it identifies the rows, leave it out with {typed('--id', column.name)}; "
                "if its texts are numbers or dates that were not recognised, rewrite them."
            )
    return sentences


def _pools(columns: list[TextColumn]) -> list[str]:
    """Return a sentence for each column whose rare levels are pooled."""
    sentences = []
    for column in (one for one in columns if one.rare):
        shown = ", ".join(map(repr, column.rare[:SHOWN_RARE]))
        more = ", ..." if len(column.rare) > SHOWN_RARE else ""
        sentences.append(
            f"{len(column.rare):,} rare levels of {column.name!r} are pooled as {POOL!r} ({shown}"
            f"{more}); --rare 0 pools none."
        )
    return sentences


def _reading(result: FitResult) -> list[str]:
    sentences = []
    if result.streamed:
        what = "The rows do not fit into --memory: the file was read"
        if result.options.dask is not None:
            what = "The workers of the Dask cluster have read the rows"
        sentences.append(f"{what} {result.passes + 1:,} times, block by block.")
    if result.unknown_text_rows:
        rows = result.unknown_text_rows
        sentences.append(
            f"{rows:,} held-out row{'s have' if rows > 1 else ' has'} a level that no training row "
            f"has: it is treated as the level {POOL!r} of rare levels, or as the reference level "
            "if there is none."
        )
    if result.undefined_rows:
        sentences.append(
            f"{result.undefined_rows:,} held-out rows are left out of the measures: they have a "
            "level of the formula that no training row has."
        )
    return sentences


def outcome(result: FitResult) -> str:
    """Return how the run of the solver ended."""
    solution = result.solution
    if result.separable and result.target.loss == "poisson":
        return (
            f"Not converged: the likelihood has no maximum. {solution.details} Their mean is "
            "estimated as 0, and the coefficients are arbitrary. Add a penalty, with --l2 1 or "
            "--cross-validate, leave out these rows, or the column with --drop."
        )
    if result.separable:
        return (
            f"Not converged: the classes are separated. {solution.details} The likelihood has no "
            "maximum and the coefficients are arbitrary. Add a penalty, with --l2 1 or "
            "--cross-validate, or leave out what separates them with --drop."
        )
    if solution.success:
        return f"Converged in {solution.iterations} iterations, {result.seconds:.1f} s in all."
    return (
        f"Not converged ({solution.status.name} after {solution.iterations} iterations): "
        f"{solution.details}"
    )
