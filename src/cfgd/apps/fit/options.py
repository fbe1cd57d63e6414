"""The arguments of `cfgd fit`, and the checks of them against the data."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from cfgd.apps.fit.class_weights import read_class_weights
from cfgd.apps.fit.conditioning import SINGULAR, Conditioning
from cfgd.apps.fit.fitting import METHODS
from cfgd.apps.fit.formats import typed
from cfgd.apps.fit.missing_values import POLICIES, REFUSE
from cfgd.apps.fit.reading_options import ReadingOptions
from cfgd.apps.fit.row_roles import RowRoles
from cfgd.apps.fit.sandwich import (
    CLASSICAL,
    CLUSTER,
    KINDS,
)
from cfgd.apps.fit.table_formats import name_of
from cfgd.apps.fit.table_statistics import TableStatistics
from cfgd.apps.fit.target import LOSS_NAMES, Target
from cfgd.apps.fit.workers import Workers
from cfgd.objectives.linear.formulas import MULTINOMIAL


@dataclasses.dataclass(frozen=True)
class FitOptions(ReadingOptions):
    """The arguments of `cfgd fit`; `memory` is in bytes."""

    data: Path | tuple[Path, ...]  # files, folders and wildcards
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
    dask: str | None = None  # the address of a scheduler, or "local"

    @property
    def name(self) -> Path:
        """How messages name the data."""
        return name_of(self.data)

    @property
    def roles(self) -> RowRoles:
        """The columns of weights, offsets and clusters."""
        return RowRoles(self.weights, self.offset, self.cluster)


def check_target(options: FitOptions, target: Target) -> None:
    """Raise a `ValueError` for options that the loss of the target has no meaning for."""
    if options.offset is not None and target.loss == MULTINOMIAL:
        raise ValueError("--offset: the loss multinomial has a linear predictor for each class.")
    if options.class_weight is not None and not target.labels:
        raise ValueError(
            f"--class-weight is for class labels, and the target {target.name!r} has the loss "
            f"{target.loss}."
        )


def check_options(options: FitOptions) -> None:
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
    if options.checkpoint is not None and not options.checkpoint.parent.is_dir():
        raise ValueError(f"--checkpoint must be in an existing folder, got {options.checkpoint}.")
    for option, value, known in (
        ("--method", options.method, METHODS),
        ("--loss", options.loss, (None, *LOSS_NAMES)),
        ("--missing", options.missing, POLICIES),
        ("--errors", options.errors, KINDS),
    ):
        if value not in known:
            names = ", ".join(filter(None, known))
            raise ValueError(f"{option} must be one of {names}, got {value!r}.")


def check_streaming(options: FitOptions, streamed: bool, workers: Workers) -> None:
    """Raise a `ValueError` if the method cannot take rows that are streamed or shared."""
    if (streamed or not workers.is_alone) and options.method == "adaptive_terminal":
        where = "do not fit into --memory" if workers.is_alone else "are not in one process"
        raise ValueError(
            "--method adaptive_terminal needs derivatives along every column, and the rows "
            f"{where}: use --method auto, which takes one pass over the rows for each gradient."
        )


def check_columns(options: FitOptions, condition: Conditioning, terms: list[str]) -> None:
    if condition.grade == SINGULAR and not options.l2 and not options.cross_validate:
        where = "with --drop" if options.formula is None else "of the formula"
        constant = condition.constant_combinations(terms)
        raise ValueError(
            f"{options.name}: the column {terms[condition.worst]!r} is a linear combination of "
            f"others{constant}, so that their coefficients are not determined: leave one out "
            f"{where}, or add a penalty with --l2 or --cross-validate."
        )


def _most_levels(statistics: TableStatistics, rows: int) -> str:
    """Return which column of texts has a large share of the coefficients, or nothing."""
    texts = (column for column in statistics.columns() if column.kind == "text")
    counts = {column.name: len(column.terms) for column in texts}
    name = max(counts, key=lambda name: counts[name], default="")
    if counts.get(name, 0) < max(2, rows / 2):
        return ":"
    return (
        f", of which {counts[name]} are those of the texts of {name!r}: leave it out with "
        f"{typed('--drop', name)}, or"
    )


def check_rows(
    options: FitOptions, statistics: TableStatistics, target: Target, width: int
) -> None:
    coefficients, rows = width + 1, statistics.training_count
    if rows <= coefficients and not options.l2 and not options.cross_validate:
        raise ValueError(
            f"{options.name}: {rows} training rows do not determine {coefficients} coefficients"
            f"{_most_levels(statistics, rows)} add a penalty with --l2 or --cross-validate."
        )
    if options.cross_validate and target.labels and statistics.label_counts is not None:
        for label in target.labels:
            by_fold = statistics.label_counts[label][1:]
            if (by_fold.sum() - by_fold).min() == 0:  # all of them in one fold
                raise ValueError(
                    f"--cross-validate: the target {target.name!r} is {label!r} in too few rows "
                    f"({by_fold.sum()}) to be in all folds: give a penalty with --l2."
                )
